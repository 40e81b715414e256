"""YAML text to nodes that keep their positions, built from the C parser's events without recursion.

Limits are checked while events arrive: `yaml.compose` on 50,000 open brackets ends the process with SIGSEGV, and a
few aliases of aliases expand to billions of nodes. Aliases are counted as often as they are used. What the format
forbids (duplicate keys, tags, a second document, an alias inside itself) becomes a Problem, and reading goes on where
that makes sense, so that one look reports all. Nothing here knows what the keys mean.

A scalar node is the parser's own event: it already holds value, style and position, and making a second object for
each of a hundred thousand scalars would double the time.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from coordinate_agents.graph.errors import Problem
from coordinate_agents.graph.yaml_errors import reader_problem, syntax_problem
from coordinate_agents.worktrees.values import value_class

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # a PyYAML built without libyaml: ten times slower, same events
    from yaml.loader import BaseLoader as _Parser  # type: ignore[assignment]

MAX_NODES: Final = 2_000_000
MAX_DEPTH: Final = 32
# Problems of form that are kept; a file with more is not a graph with mistakes.
MAX_PROBLEMS: Final = 500
# Text of all scalars together, aliases counted each time: as much as the largest file could hold without any.
MAX_TEXT: Final = 64 << 20

# Escapes that may give what cannot be stored: NUL, and half a character (libyaml refuses it, PyYAML's own reader not).
_SUSPECT_ESCAPE: Final = re.compile(r"\\(?:0|x00|u0000|U00000000|u[dD][89a-fA-F]|U0000[dD][89a-fA-F])")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_SURROGATE_PAIR: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


class Mark(Protocol):
    """A position; both count from 0."""

    line: int
    column: int


@dataclass(slots=True, eq=False)
class SequenceNode:
    """A list. `start_mark` is where it begins."""

    start_mark: Mark
    items: "list[Node]" = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MappingNode:
    """A mapping with its merge keys already applied. Keys are the text of the key scalars."""

    start_mark: Mark
    entries: "dict[str, tuple[ScalarEvent, Node]]" = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class BrokenNode:
    """Stands where a problem was already reported; readers skip it silently."""

    start_mark: Mark


Node: TypeAlias = ScalarEvent | SequenceNode | MappingNode | BrokenNode


@value_class
class Loaded:
    """`root` is None for an empty document or when reading could not go on. `problems` in order of discovery."""

    root: Node | None
    problems: tuple[Problem, ...]


def load(text: str) -> Loaded:
    """The nodes of the one document in `text` and every problem of its form."""
    build = _Builder(text)
    try:
        return Loaded(build.document(_Parser(text)), tuple(build.problems))
    except _GiveUp:
        pass
    except MarkedYAMLError as error:
        joined = _join_surrogate_pairs(text) if "Unicode character escape" in str(error.problem) else None
        if joined is not None:
            return load(joined)
        build.problems.append(syntax_problem(error, text))
    except YAMLError as error:
        build.problems.append(reader_problem(error, text))
    return Loaded(None, tuple(build.problems))


def is_plain(node: Node) -> bool:
    """Whether the node is a scalar without quotes and not a block."""
    return isinstance(node, ScalarEvent) and not node.style


def _join_surrogate_pairs(text: str) -> str | None:
    r"""JSON writes an emoji as `\ud83d\ude00`, which YAML refuses: the same text with such pairs joined.

    None unless the whole text is JSON: in YAML those twelve characters may stand in a block and mean themselves.
    """
    if not text.lstrip().startswith(("{", "[")) or not _SURROGATE_PAIR.search(text):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    joined = re.sub(r"\\\\|" + _SURROGATE_PAIR.pattern, lambda m: _joined(m.group()), text)
    return joined if joined != text else None


def _joined(escape: str) -> str:
    if escape == "\\\\":
        return escape
    return str(json.loads(f'"{escape}"'))


class _GiveUp(Exception):
    """A limit was passed: nothing after this point may be read."""


@dataclass(slots=True, eq=False)
class _Frame:
    """A collection that is still open."""

    node: SequenceNode | MappingNode
    anchor: str | None
    nodes_before: int
    text_before: int
    key: ScalarEvent | BrokenNode | None = None
    merges: "list[tuple[ScalarEvent, Node]]" = field(default_factory=list)
    duplicates: list[ScalarEvent] = field(default_factory=list)


@dataclass(slots=True)
class _Anchored:
    """What an anchor names; `node` is None while the collection is still open."""

    node: Node | None
    nodes: int
    text: int


class _Builder:
    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._is_suspect = _SUSPECT_ESCAPE.search(text) is not None
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._heights: dict[int, int] = {}
        self._nodes = 0
        self._text = 0

    def document(self, parser: Any) -> Node | None:
        """Read the whole stream; the root node of its one document."""
        root: Node | None = None
        documents = 0
        next_event = parser.get_event
        while True:
            event = next_event()
            kind = event.__class__
            if kind is ScalarEvent:
                node: Node = self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._open(event)
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                node = self._close()
            elif kind is AliasEvent:
                node = self._alias(event)
            elif kind is DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._stop(event, "a second document begins here; write one graph in one file")
                continue
            elif kind is StreamEndEvent:
                return root
            else:
                assert kind is DocumentEndEvent or not self._stack
                continue
            if self._stack:
                self._attach(node)
            else:
                root = node

    def _scalar(self, event: ScalarEvent) -> Node:
        self._nodes += 1
        self._text += len(event.value)
        if self._nodes > MAX_NODES:
            self._stop(event, f"more than {MAX_NODES} values; split the graph")
        if event.tag is not None:
            return self._broken(event, _tag_message(event.tag))
        if self._is_suspect and (found := _UNSTORABLE.search(event.value)):
            what = "a NUL character" if found.group() == "\0" else "a lone surrogate (half an emoji)"
            return self._broken(event, f"the text contains {what}; remove it")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(event, 1, len(event.value))
        return event

    def _open(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(event, f"more than {MAX_NODES} values; split the graph")
        if len(self._stack) >= MAX_DEPTH:
            self._stop(event, f"nested deeper than {MAX_DEPTH} levels")
        if event.tag is not None:
            self._problem(event, _tag_message(event.tag))
        node: SequenceNode | MappingNode
        node = (MappingNode if event.__class__ is MappingStartEvent else SequenceNode)(event.start_mark)
        self._stack.append(_Frame(node, event.anchor, self._nodes - 1, self._text))
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(None, 0, 0)

    def _close(self) -> Node:
        frame = self._stack.pop()
        if isinstance(frame.node, MappingNode):
            for second in frame.duplicates:
                self._duplicate(frame.node, second)
            for key, source in frame.merges:
                self._merge(frame.node, key, source)
        if frame.anchor is not None and self._anchors[frame.anchor].node is None:
            size = _Anchored(frame.node, self._nodes - frame.nodes_before, self._text - frame.text_before)
            self._anchors[frame.anchor] = size
        return frame.node

    def _alias(self, event: Any) -> Node:
        target = self._anchors.get(event.anchor)
        if target is None:
            return self._broken(event, f"*{event.anchor} names no anchor above it; define &{event.anchor} first")
        if target.node is None:
            return self._broken(event, f"*{event.anchor} stands inside what it names; an alias cannot contain itself")
        self._nodes += target.nodes
        self._text += target.text
        if self._nodes > MAX_NODES:
            self._stop(event, f"more than {MAX_NODES} values once aliases are expanded; split the graph")
        if self._text > MAX_TEXT:
            self._stop(event, f"more than {MAX_TEXT} characters once aliases are expanded")
        if len(self._stack) + self._height(target.node) > MAX_DEPTH:
            self._stop(event, f"nested deeper than {MAX_DEPTH} levels once aliases are expanded")
        return target.node

    def _attach(self, node: Node) -> None:
        frame = self._stack[-1]
        parent = frame.node
        if isinstance(parent, SequenceNode):
            parent.items.append(node)
            return
        key = frame.key
        if key is None:
            frame.key = self._key(node)
            return
        frame.key = None
        if isinstance(key, BrokenNode):
            return
        if key.value == "<<" and not key.style and not frame.merges:
            frame.merges.append((key, node))
        elif key.value in parent.entries or (key.value == "<<" and not key.style):
            frame.duplicates.append(key)
        else:
            parent.entries[key.value] = (key, node)

    def _key(self, node: Node) -> ScalarEvent | BrokenNode:
        if isinstance(node, ScalarEvent | BrokenNode):
            return node
        return self._broken(node, "a key must be text, not a list or a mapping")

    def _duplicate(self, node: MappingNode, second: ScalarEvent) -> None:
        first = node.entries.get(second.value)
        if first is None:
            self._problem(second, "`<<` is written twice; write `<<: [*first, *second]`")
            return
        named = node.entries.get("id")
        owner = f" in {named[1].value!r}" if named and isinstance(named[1], ScalarEvent) else ""
        lines = f"first on line {_line(first[0])}, again on line {_line(second)}"
        self._problem(second, f"key {second.value[:60]!r} is written twice{owner} ({lines}); keep one")

    def _merge(self, node: MappingNode, key: ScalarEvent, source: Node) -> None:
        """Add what `<<` names under the keys written here; of several sources the first wins."""
        sources = source.items if isinstance(source, SequenceNode) else [source]
        for each in sources:
            if isinstance(each, MappingNode):
                for name, entry in each.entries.items():
                    node.entries.setdefault(name, entry)
            elif not isinstance(each, BrokenNode):
                self._problem(key, "`<<` takes a mapping or a list of mappings, such as `<<: *common`")

    def _height(self, node: Node) -> int:
        """Levels of collections from `node` down. Recursion is bounded: no finished node exceeds MAX_DEPTH."""
        if isinstance(node, ScalarEvent | BrokenNode):
            return 0
        known = self._heights.get(id(node))
        if known is None:
            below = node.items if isinstance(node, SequenceNode) else [value for _, value in node.entries.values()]
            known = 1 + max((self._height(child) for child in below), default=0)
            self._heights[id(node)] = known
        return known

    def _broken(self, node: Any, message: str) -> BrokenNode:
        self._problem(node, message)
        return BrokenNode(node.start_mark)

    def _problem(self, node: Any, message: str) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            return
        mark = node.start_mark
        self.problems.append(Problem(mark.line + 1, mark.column + 1, self._path(), message))

    def _stop(self, node: Any, message: str) -> None:
        self._problem(node, message)
        raise _GiveUp

    def _path(self) -> str:
        path = ""
        for frame in self._stack:
            if isinstance(frame.node, SequenceNode):
                path += f"[{len(frame.node.items)}]"
            elif isinstance(frame.key, ScalarEvent):
                path += f".{frame.key.value[:60]}" if path else frame.key.value[:60]
        return path


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _tag_message(tag: str) -> str:
    return f"the tag {tag[:60]!r} is not read here; leave it out, and quote what must be text"
