"""Changes single values in the text of a configuration file and leaves the rest, comments included, as it is.

The places come from the YAML nodes' positions. Every edit is read again and compared with what was meant; where it does
not come out (anchors, unusual layouts) the whole document is written anew from its nodes and the comments are lost,
which the answer says. Pure: text in, text out; the text must have been validated before.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

# None removes the key.
Value: TypeAlias = str | tuple[str, ...] | Mapping[str, str] | None

_PLAIN: Final = re.compile(r"(?:\.{0,2}/)?[A-Za-z][A-Za-z0-9_./-]*")
_NOT_PLAIN: Final = frozenset(("yes", "no", "on", "off", "true", "false", "null", "y", "n"))
# Characters that YAML reads only as an escape (1.2 section 5.1), and those that it takes for the end of a line.
_UNWRITTEN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class Change(NamedTuple):
    """Set the value at the path (`("agents", "backend", "command")`), making the mappings above it; None removes."""

    path: tuple[str, ...]
    value: Value


class Edited(NamedTuple):
    text: str
    keeps_comments: bool


def edit(text: str, changes: Sequence[Change]) -> Edited:
    """The text with the changes. The same text when there is nothing to change."""
    wanted = _data(text)
    for change in changes:
        _apply(wanted, change)
    wanted = _without_empty(wanted)
    if wanted == _without_empty(_data(text)):
        return Edited(text, True)
    new = text if text.strip() else "version: 1\n"
    for change in changes:
        step = _edited(new, change)
        if step is None:
            return _written_anew(text, changes)
        new = step
    if _without_empty(_data(new)) != wanted | ({"version": "1"} if not text.strip() else {}):
        return _written_anew(text, changes)
    return Edited(new, True)


def _edited(text: str, change: Change) -> str | None:
    """The text with this change; None where its layout is not one that can be edited."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or not isinstance(root, MappingNode):
        return None
    node: Node = root
    for depth, name in enumerate(change.path):
        if not isinstance(node, MappingNode):
            # `agents:` without a value: the first entry below it.
            return _filled(text, node, change, depth)
        entry = _entry(node, name)
        if entry is None:
            return text if change.value is None else _inserted(text, node, change, depth)
        is_last = depth == len(change.path) - 1
        if is_last:
            return _removed(text, node, entry) if change.value is None else _replaced(text, entry[1], change.value)
        node = entry[1]
    return text


def _entry(node: MappingNode, name: str) -> tuple[Node, Node] | None:
    return next(((key, value) for key, value in node.value if getattr(key, "value", None) == name), None)


def _replaced(text: str, node: Node, value: Value) -> str:
    start, end = node.start_mark.index, _end(node)
    space = " " if start and text[start - 1] == ":" else ""
    return text[:start] + space + _flow(value) + text[end:]


def _filled(text: str, node: Node, change: Change, depth: int) -> str | None:
    if not isinstance(node, ScalarNode) or node.value or change.value is None:
        return None
    at = node.end_mark.index
    line = text.find("\n", at)
    line = len(text) if line < 0 else line
    start = text.rfind("\n", 0, at) + 1
    outer = len(text[start:at]) - len(text[start:at].lstrip(" "))
    return text[:line] + _block(change, depth, outer + 2) + text[line:]


def _inserted(text: str, node: MappingNode, change: Change, depth: int) -> str | None:
    if node.flow_style:
        at = node.end_mark.index - 1
        comma = ", " if node.value else ""
        entry = _nested(change, depth)
        return text[:at] + comma + entry + text[at:]
    if not node.value:
        return None
    at = _end(node)
    line = text.find("\n", at)
    if line < 0:
        text, line = text + "\n", len(text)
    return text[:line] + _block(change, depth, node.value[0][0].start_mark.column) + text[line:]


def _removed(text: str, node: MappingNode, entry: tuple[Node, Node]) -> str | None:
    if node.flow_style:
        return None
    start = text.rfind("\n", 0, entry[0].start_mark.index) + 1
    if text[start : entry[0].start_mark.index].strip():
        return None
    end = text.find("\n", _end(entry[1]))
    return text[:start] + ("" if end < 0 else text[end + 1 :])


def _end(node: Node) -> int:
    """Where the node's own text ends; a block collection's mark lies behind the comments that follow it."""
    assert isinstance(node, CollectionNode | ScalarNode)
    if isinstance(node, ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, MappingNode) else last)


def _block(change: Change, depth: int, indent: int) -> str:
    """The rest of the path as lines of a block, each with a line end before it."""
    lines = ""
    *above, last = change.path[depth:]
    for name in above:
        lines += f"\n{' ' * indent}{_scalar(name)}:"
        indent += 2
    return f"{lines}\n{' ' * indent}{_scalar(last)}: {_flow(change.value)}"


def _nested(change: Change, depth: int) -> str:
    *above, last = change.path[depth:]
    opened = "".join(f"{_scalar(name)}: {{" for name in above)
    return f"{opened}{_scalar(last)}: {_flow(change.value)}{'}' * len(above)}"


def _flow(value: Value) -> str:
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_scalar(each) for each in value)}]"
    assert value is not None
    return "{" + ", ".join(f"{_scalar(name)}: {_scalar(each)}" for name, each in value.items()) + "}"


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    return _UNWRITTEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _written_anew(text: str, changes: Sequence[Change]) -> Edited:
    """The whole document from its nodes: scalars keep their style, so that `1.10` stays what it was."""
    root = yaml.compose(text, Loader=yaml.SafeLoader) if text.strip() else None
    if not isinstance(root, MappingNode):
        root = yaml.compose("version: 1\n", Loader=yaml.SafeLoader)
    assert isinstance(root, MappingNode)
    for change in changes:
        _change_node(root, change)
    return Edited(yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True, width=100), "#" not in text)


def _change_node(root: MappingNode, change: Change) -> None:
    node = root
    for name in change.path[:-1]:
        entry = _entry(node, name)
        if entry is None or not isinstance(entry[1], MappingNode):
            below = MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
            node.value = [each for each in node.value if entry is None or each[0] is not entry[0]]
            node.value.append((_text_node(name), below))
        else:
            # A copy: what an anchor shares is changed in this place only.
            below = MappingNode(entry[1].tag, list(entry[1].value), flow_style=entry[1].flow_style)
            node.value = [(key, below if key is entry[0] else value) for key, value in node.value]
        node = below
    node.value = [each for each in node.value if getattr(each[0], "value", None) != change.path[-1]]
    if change.value is not None:
        node.value.append((_text_node(change.path[-1]), _node(change.value)))


def _node(value: Value) -> Node:
    if isinstance(value, str):
        return _text_node(value)
    if isinstance(value, tuple):
        return SequenceNode("tag:yaml.org,2002:seq", [_text_node(each) for each in value], flow_style=True)
    assert value is not None
    pairs = [(_text_node(name), _text_node(each)) for name, each in value.items()]
    return MappingNode("tag:yaml.org,2002:map", pairs, flow_style=True)


def _text_node(text: str) -> ScalarNode:
    is_plain = _scalar(text) == text
    return ScalarNode("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


def _data(text: str) -> dict[str, Any]:
    """The document with every scalar as the text that is written there."""
    found = yaml.load(text, Loader=yaml.BaseLoader)
    # Through JSON, so that what an alias shares becomes two values: a change means one of them.
    return json.loads(json.dumps(found)) if isinstance(found, dict) else {}


def _apply(data: dict[str, Any], change: Change) -> None:
    for name in change.path[:-1]:
        if not isinstance(data.get(name), dict):
            data[name] = {}
        data = data[name]
    if change.value is None:
        data.pop(change.path[-1], None)
    else:
        data[change.path[-1]] = list(change.value) if isinstance(change.value, tuple) else change.value


def _without_empty(data: Any) -> Any:
    """`agents:` without an entry says the same as no `agents` at all."""
    if not isinstance(data, Mapping):
        return data
    inner = {name: _without_empty(value) for name, value in data.items()}
    return {name: value for name, value in inner.items() if value not in ("", {})}
