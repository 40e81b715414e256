"""Task Graph v1 (JSON of an earlier tool, with its companion intent map) to the text of a graph file.

`parentTask` becomes the graph, `implementer` the agent, `writeIntent` becomes `writes`. What has no counterpart is kept
under keys that begin with `x-`, so that nothing of the source is lost and nothing of it acts. The text is written here
rather than by a YAML library because every text must be quoted as `reading` wants it. Reads no files.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinate_agents.graph import document
from coordinate_agents.graph.errors import GraphError, Problem
from coordinate_agents.graph.ids import shown
from coordinate_agents.graph.yaml_text import decode

_PARENT_KEYS: Final = ("id", "title", "spec", "implementer")
_SUBTASK_KEYS: Final = ("id", "title", "spec", "implementer", "dependsOn")
# Characters that may stand neither in a block nor unescaped in quotes.
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\u2028\u2029]")


def to_graph_file(v1_json: bytes, intent_json: bytes | None) -> str:
    """The graph file, which `document.parse` accepts.

    Raises: GraphError(TASK_GRAPH_INVALID) with all problems: of the two sources by path, or, when an id or a reference
    of the source is not allowed here, of the file that would have been written.
    """
    problems: list[Problem] = []
    source = _load(problems, v1_json, "graph")
    intents = _Intents(problems, None if intent_json is None else _load(problems, intent_json, "intent map"))
    if problems:
        raise _invalid("cannot be imported", problems)
    text = _graph_file(problems, source, intents)
    if problems:
        raise _invalid("cannot be imported", problems)
    try:
        document.parse(text.encode(), name="imported graph", stem=None, read_spec_file=None)
    except GraphError as error:
        raise _invalid("holds what a graph file does not allow", error.problems) from None
    return text


class _Intents:
    """What the companion map says about each subtask."""

    def __init__(self, problems: list[Problem], source: Any) -> None:
        self.parent: str | None = None
        self.scope_policy: str | None = None
        self.writes: dict[str, list[str]] = {}
        if source is None:
            return
        if not isinstance(source, Mapping):
            problems.append(_problem("intent map", "must be an object with `subtasks`"))
            return
        self.parent = source.get("parentTaskId")
        self.scope_policy = source.get("scopePolicy")
        for index, each in enumerate(_list(problems, source, "subtasks", "intent map")):
            path = f"intent map.subtasks[{index}]"
            intent = each.get("writeIntent") if isinstance(each, Mapping) else None
            if not isinstance(intent, list) or not all(isinstance(one, str) for one in intent):
                problems.append(_problem(path, "must be an object with `id` and `writeIntent`, a list of texts"))
            elif not isinstance(each.get("id"), str) or each["id"] in self.writes:
                problems.append(_problem(path, "`id` must be a text that is used once"))
            else:
                self.writes[each["id"]] = intent


def _graph_file(problems: list[Problem], source: Any, intents: _Intents) -> str:
    parent = source.get("parentTask") if isinstance(source, Mapping) else None
    if not isinstance(parent, Mapping):
        problems.append(_problem("parentTask", "a Task Graph v1 is an object with `parentTask` and `subtasks`"))
        return ""
    if source.get("schemaVersion", 1) != 1:
        problems.append(_problem("schemaVersion", f"{shown(str(source['schemaVersion']))} is not read; 1 is"))
    if intents.parent is not None and intents.parent != parent.get("id"):
        said = f"the intent map is for {shown(str(intents.parent))}, the graph is {shown(str(parent.get('id')))}"
        problems.append(_problem("parentTaskId", said))
    lines = ["schemaVersion: 1", *_pair("id", parent.get("id"), 0)]
    lines += [line for key in ("title", "spec") if key in parent for line in _pair(key, parent[key], 0)]
    if "maxConcurrency" in source:
        lines += _pair("maxConcurrency", source["maxConcurrency"], 0)
    if intents.scope_policy is not None:
        lines += _pair("scopePolicy", intents.scope_policy, 0)
    if "implementer" in parent:
        lines += ["defaults:", *_pair("agent", parent["implementer"], 2)]
    lines += _own_keys(parent, _PARENT_KEYS, 0)
    lines += _own_keys(source, ("schemaVersion", "parentTask", "subtasks", "maxConcurrency"), 0)
    lines.append("subtasks:")
    lines += _subtasks(problems, source, intents)
    return "\n".join(lines) + "\n"


def _subtasks(problems: list[Problem], source: Mapping[str, Any], intents: _Intents) -> list[str]:
    lines: list[str] = []
    left = dict(intents.writes)
    for index, task in enumerate(_list(problems, source, "subtasks", "")):
        if not isinstance(task, Mapping):
            problems.append(_problem(f"subtasks[{index}]", "must be an object with `id` and `spec`"))
            continue
        body = [*_pair("id", task.get("id"), 4)]
        body += [line for key in ("title", "spec") if key in task for line in _pair(key, task[key], 4)]
        if "implementer" in task:
            body += _pair("agent", task["implementer"], 4)
        body += _pair("dependsOn", task.get("dependsOn") or [], 4)
        intent = left.pop(str(task.get("id")), None)
        if intent is not None:
            body += _pair("writes", intent, 4)
        body += _own_keys(task, _SUBTASK_KEYS, 4)
        lines += ["  - " + body[0].lstrip(), *body[1:]]
    for name in left:
        problems.append(_problem("intent map", f"names {shown(name)}, which is no subtask of the graph"))
    return lines


def _own_keys(source: Mapping[str, Any], known: Sequence[str], indent: int) -> list[str]:
    """What has no counterpart, under `x-` keys."""
    return [
        line
        for key, value in source.items()
        if key not in known
        for line in _pair(key if key.startswith("x-") else f"x-{key}", value, indent)
    ]


def _pair(key: str, value: Any, indent: int) -> list[str]:
    """The lines of `key: value`: a text of several lines as a block, everything else in one line of JSON."""
    start = " " * indent + (key if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", key) else _quoted(key)) + ":"
    if isinstance(value, str) and _fits_block(value):
        keep = "" if value.endswith("\n") else "-"
        body = [" " * (indent + 2) + line if line else "" for line in value.removesuffix("\n").split("\n")]
        return [f"{start} |{keep}", *body]
    return [f"{start} {_quoted(value)}"]


def _fits_block(text: str) -> bool:
    """Whether a literal block gives back exactly this text."""
    if "\n" not in text.strip("\n") or text.startswith((" ", "\n", "\t")) or text.endswith("\n\n"):
        return False
    return not _UNPRINTABLE.search(text) and all(c in "\n\t" or ord(c) >= 32 for c in text)


def _quoted(value: Any) -> str:
    """JSON, which is YAML once characters that YAML does not print are escaped."""
    made = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", made)


def _load(problems: list[Problem], data: bytes, what: str) -> Any:
    text = decode(data)
    if isinstance(text, Problem):
        problems.append(text)
        return None
    try:
        return json.loads(text, object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        problems.append(Problem(error.lineno, error.colno, what, f"not JSON: {error.msg}"))
    except RecursionError:
        problems.append(_problem(what, "nested too deep"))
    except ValueError as error:
        problems.append(_problem(what, str(error)))
    return None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {shown(key)} is written twice in one object; keep one")
        found[key] = value
    return found


def _list(problems: list[Problem], source: Mapping[str, Any], key: str, what: str) -> list[Any]:
    value = source.get(key)
    if isinstance(value, list):
        return value
    problems.append(_problem(f"{what}.{key}".lstrip("."), "must be a list"))
    return []


def _problem(path: str, message: str) -> Problem:
    return Problem(1, 1, path, f"{path}: {message}")


def _invalid(what: str, problems: Sequence[Problem]) -> GraphError:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return GraphError(
        "TASK_GRAPH_INVALID",
        f"The Task Graph v1 {what}: {problems[0].message}{more}",
        kept="Nothing was written.",
        stage="import",
        problems=tuple(problems),
    )
