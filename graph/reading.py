"""Nodes to typed values, every problem collected: what the graph document and the configuration have in common.

A reader takes a node and its path, returns the value, and returns BROKEN after it has recorded a problem, so that one
look finds everything. Scalars follow YAML 1.2's core schema, except that where text is required a plain scalar that
some YAML version takes for something else (`no`, `1.10`, `2026-01-02`, `~`) is refused: two programs that read the
same file must see the same id.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from yaml.events import ScalarEvent

from coordinate_agents.graph import durations
from coordinate_agents.graph.errors import Problem
from coordinate_agents.graph.ids import shown
from coordinate_agents.graph.yaml_nodes import BrokenNode, MappingNode, Node, SequenceNode
from coordinate_agents.worktrees.values import value_class


class Broken:
    """The value of what could not be read; its problem is recorded."""


BROKEN: Final = Broken()

# Problems that one report lists; the rest is counted.
MAX_PROBLEMS: Final = 500
_MAX_HINTS: Final = 50

_NULL: Final = frozenset(["", "~", "null", "Null", "NULL"])
# Plain scalars that YAML 1.1 or 1.2 takes for a boolean, a number, a date, a merge or nothing.
_NOT_TEXT: Final = re.compile(
    r"""~|<<|=|null|Null|NULL|
    true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|
    [-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|
    [-+]?0[xX][0-9a-fA-F_]+|0[oO][0-7]+|[-+]?0[bB][01_]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|
    [-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|
    [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}.*)?""",
    re.VERBOSE,
)
# A cheap look that lets nearly every plain text pass without the pattern above.
_SUSPECT_START: Final = frozenset("~<=nNtTfFyYoO+-.0123456789")
# No leading zero: 010 is ten to some readers and eight to others.
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")


@dataclass(slots=True)
class Findings:
    """The problems found so far, in order of discovery; repeated ones (merged mappings) once."""

    _seen: dict[tuple[int, int, str], Problem] = field(default_factory=dict)
    _more: int = 0

    def add(self, node: Any, path: str, message: str) -> Broken:
        """Record what is wrong at the node."""
        mark = node.start_mark
        self.record(Problem(mark.line + 1, mark.column + 1, path, message))
        return BROKEN

    def record(self, problem: Problem) -> None:
        place = (problem.line, problem.column, problem.message)
        if place in self._seen:
            return
        if self.is_full:
            self._more += 1
        else:
            self._seen[place] = problem

    @property
    def wants_hints(self) -> bool:
        """Looking for something near costs milliseconds; after so many problems nobody reads the hints."""
        return len(self._seen) < _MAX_HINTS

    @property
    def is_full(self) -> bool:
        """Further problems are only counted, so nobody needs to look for a good hint."""
        return len(self._seen) >= MAX_PROBLEMS

    def sorted(self) -> tuple[Problem, ...]:
        """All problems by position; at most MAX_PROBLEMS and one more that counts the rest."""
        found = sorted(self._seen.values(), key=lambda each: (each.line, each.column))
        if self._more:
            found.append(Problem(found[-1].line, 1, "", f"and {self._more} more problems"))
        return tuple(found)


Read: TypeAlias = Callable[[Findings, Node, str], Any]


@value_class
class Key:
    """One known key of a mapping: the field that it fills and how it is read."""

    field: str
    read: Read


def fields(
    findings: Findings, node: MappingNode, path: str, *, known: Mapping[str, Key], hints: Mapping[str, str]
) -> dict[str, Any]:
    """The values of the known keys by field name; broken ones are left out. `x-` keys are skipped.

    `hints` maps words that people write instead to what is said about them.
    """
    values: dict[str, Any] = {}
    for name, (key_node, value) in node.entries.items():
        key = known.get(name)
        if key is None:
            if not name.startswith("x-"):
                said = f"unknown key {shown(name)}" if findings.is_full else unknown_key(name, tuple(known), hints)
                findings.add(key_node, _join(path, name), said)
            continue
        read = key.read(findings, value, f"{path}.{name}" if path else name)
        if read is not BROKEN:
            values[key.field] = read
    return values


def unknown_key(name: str, known: Sequence[str], hints: Mapping[str, str]) -> str:
    """What is said about a key that is not known: the hint, the nearest known one, or all of them."""
    what = f"unknown key {shown(name)}"
    bare = re.sub(r"[^a-z0-9]", "", name.lower())
    if bare in hints:
        return f"{what}: {hints[bare]}"
    by_bare = {key.lower(): key for key in known}
    found = [bare] if bare in by_bare else difflib.get_close_matches(bare[:60], by_bare, n=1, cutoff=0.7)
    if found:
        return f"{what}: did you mean {by_bare[found[0]]!r}? (a key of your own begins with 'x-')"
    return f"{what}: known here are {', '.join(sorted(known))}; a key of your own begins with 'x-'"


def near(text: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?` when something is near, else nothing. Looks at the first thousand: more takes seconds."""
    by_case = {each.lower(): each for each in known}
    same = by_case.get(text.lower())
    found = [same] if same else difflib.get_close_matches(text[:64], known[:1000], n=1, cutoff=0.7)
    return f"; did you mean {found[0]!r}?" if found else ""


def mapping(findings: Findings, node: Node, path: str) -> MappingNode | Broken:
    """The mapping itself; an empty value is an empty mapping."""
    if isinstance(node, MappingNode):
        return node
    if is_null(node):
        return MappingNode(node.start_mark)  # type: ignore[arg-type]
    return _wrong(findings, node, path, "a mapping (`key: value`)")


def items(findings: Findings, node: Node, path: str) -> list[Node] | Broken:
    """The nodes of a list; a single value counts as a list of one, an empty value as an empty list."""
    if isinstance(node, SequenceNode):
        return node.items
    if is_null(node):
        return []
    if isinstance(node, BrokenNode):
        return BROKEN
    return [node]


def is_null(node: Node) -> bool:
    return isinstance(node, ScalarEvent) and not node.style and node.value in _NULL


def text(findings: Findings, node: Node, path: str) -> str | Broken:
    """Text of any length, quoted or plain, but nothing that YAML may take for something else."""
    if node.__class__ is not ScalarEvent:
        return _wrong(findings, node, path, "text")
    value: str = node.value
    if node.style or (value and (value[0] not in _SUSPECT_START or not _NOT_TEXT.fullmatch(value))):
        return value
    if not value:
        return findings.add(node, path, f"{_name(path)} is empty; write text, or leave the key out")
    return findings.add(node, path, f'{shown(value)} is not text to every YAML reader: quote it, "{value[:60]}"')


def argument(findings: Findings, node: Node, path: str) -> str | Broken:
    """One word of a command line. A plain number or boolean is the text as written: `[sleep, 5]` means what it says."""
    if isinstance(node, ScalarEvent) and not is_null(node):
        return node.value
    return text(findings, node, path)


def integer(low: int, high: int) -> Read:
    """A reader of whole numbers within the bounds."""

    def read(findings: Findings, node: Node, path: str) -> int | Broken:
        if not isinstance(node, ScalarEvent) or node.style:
            return _wrong(findings, node, path, f"a whole number from {low} to {high}, without quotes")
        if not _INTEGER.fullmatch(node.value):
            what = "is not a whole number"
            if re.fullmatch(r"[-+]?[0-9]+", node.value):
                what = "has more than 18 digits" if len(node.value) > 18 else "has a leading zero"
            return findings.add(node, path, f"{shown(node.value)} {what}; write one from {low} to {high}")
        value = int(node.value)
        if not low <= value <= high:
            return findings.add(node, path, f"{value} is outside the range of {_name(path)}, {low} to {high}")
        return value

    return read


def duration(findings: Findings, node: Node, path: str) -> float | Broken:
    """A duration in seconds."""
    if not isinstance(node, ScalarEvent):
        return _wrong(findings, node, path, "a duration such as 90s, 45m or 2h")
    value = durations.seconds(node.value)
    if value is None:
        return findings.add(
            node, path, f"{shown(node.value)} is not a duration; write 90s, 45m, 2h, 1h30m or seconds, at most a year"
        )
    return value


def choice(*options: str) -> Read:
    """A reader of one of the words."""

    def read(findings: Findings, node: Node, path: str) -> str | Broken:
        if isinstance(node, ScalarEvent) and node.value in options:
            return node.value
        said = f"{shown(node.value)} is not known" if isinstance(node, ScalarEvent) else "a word is needed"
        return findings.add(node, path, f"{said}; {_name(path)} is one of {', '.join(options)}")

    return read


def texts(findings: Findings, node: Node, path: str) -> tuple[str, ...] | Broken:
    """A string or a list of strings."""
    values: tuple[str, ...] | Broken = each(text)(findings, node, path)
    return values


def each(read: Read, *, at_most: int | None = None) -> Read:
    """A reader of one value or a list of values, each read with `read`. BROKEN when one of them is."""

    def read_all(findings: Findings, node: Node, path: str) -> tuple[Any, ...] | Broken:
        nodes = items(findings, node, path)
        if isinstance(nodes, Broken):
            return BROKEN
        if at_most is not None and len(nodes) > at_most:
            return findings.add(node, path, f"{len(nodes)} values in {_name(path)}; at most {at_most}")
        listed = isinstance(node, SequenceNode)
        values = tuple(read(findings, item, f"{path}[{index}]" if listed else path) for index, item in enumerate(nodes))
        return BROKEN if BROKEN in values else values

    return read_all


def checked(read: Read, problem: Callable[[str], str | None]) -> Read:
    """A reader that also asks `problem` why the text read cannot be taken."""

    def read_checked(findings: Findings, node: Node, path: str) -> str | Broken:
        value = read(findings, node, path)
        if isinstance(value, Broken):
            return value
        reason = problem(value)
        return value if reason is None else findings.add(node, path, reason)

    return read_checked


def _wrong(findings: Findings, node: Node, path: str, wanted: str) -> Broken:
    if isinstance(node, BrokenNode):
        return BROKEN
    if isinstance(node, MappingNode):
        got = "a mapping"
    elif isinstance(node, SequenceNode):
        got = "a list"
    else:
        got = "empty" if is_null(node) else shown(node.value)
    return findings.add(node, path, f"{_name(path)} must be {wanted}, not {got}")


def _name(path: str) -> str:
    return path.rpartition(".")[2] or "the document"


def _join(path: str, name: str) -> str:
    return f"{path}.{name[:60]}" if path else name[:60]
