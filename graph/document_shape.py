"""The keys of the graph document: nodes to drafts, each value typed and within its bounds.

Looks at one key at a time; what needs two places of the document (references, names, cycles, defaults) is
`document_rules`'. The tables here are the list of what the document may hold; docs/graph-file.md and `schema` follow
them, and a test compares.
"""

from collections.abc import Mapping
from typing import Any, Final

from yaml.events import ScalarEvent

from coordinate_agents.graph import commands, scope
from coordinate_agents.graph.ids import NAME_PATTERN, graph_id_problem, shown, subtask_id_problem
from coordinate_agents.graph.reading import (
    BROKEN,
    Broken,
    Findings,
    Key,
    Read,
    argument,
    checked,
    choice,
    duration,
    each,
    fields,
    integer,
    items,
    mapping,
    text,
)
from coordinate_agents.graph.relative_paths import path_problem
from coordinate_agents.graph.yaml_nodes import MappingNode, Node, SequenceNode
from coordinate_agents.worktrees.values import value_class

MAX_SUBTASKS: Final = 10_000
MAX_SPEC_BYTES: Final = 256 << 10
MAX_TITLE_CHARACTERS: Final = 500
MAX_PATTERNS: Final = 256
MAX_CHECKS: Final = 64
MAX_INTEGER: Final = 10**18 - 1

_NOT_YET: Final = dict.fromkeys(("matrix", "review", "checkout", "budget"), "not yet: the word is reserved")
_SUBTASK_HINTS: Final = {
    **_NOT_YET,
    **dict.fromkeys(("prompt", "description", "instructions", "task"), "write 'spec'"),
    **dict.fromkeys(("deps", "depends", "dependencies", "requires", "after"), "write 'dependsOn'"),
    **dict.fromkeys(("implementer", "assignee", "adapter"), "write 'agent'"),
    **dict.fromkeys(("files", "paths", "scope", "writeintent", "outputs"), "write 'writes'"),
    **dict.fromkeys(("verify", "tests", "test", "check"), "write 'checks'"),
    **dict.fromkeys(("retries", "tries"), "write 'attempts', the number of tries in all"),
    "name": "write 'id' for the name and 'title' for the text",
}
_GRAPH_HINTS: Final = {
    **_NOT_YET,
    **dict.fromkeys(("tasks", "steps", "jobs", "nodes"), "write 'subtasks'"),
    **dict.fromkeys(("concurrency", "parallel", "jobs", "maxparallel"), "write 'maxConcurrency'"),
    **dict.fromkeys(("prompt", "description", "context"), "write 'spec'"),
    **dict.fromkeys(("verify", "tests", "check"), "write 'checks'"),
    "version": "write 'schemaVersion: 1'",
    "parenttask": "this is a Task Graph v1; graph-import turns it into a graph file",
    "agents": "agents are configured in .coordinate-agents.yaml, not here",
    "name": "write 'id' for the name and 'title' for the text",
}


@value_class
class CheckDraft:
    """A check as written: `values` holds fields of `Check`; the command was a string or a list."""

    node: Node
    path: str
    values: Mapping[str, Any]
    was_string: bool


@value_class
class TaskDraft:
    """A subtask as written: `values` by field name of `Task`, before defaults."""

    node: MappingNode
    path: str
    values: dict[str, Any]


@value_class
class GraphDraft:
    """The document as written, before defaults. `tasks` in file order; broken values are absent."""

    node: MappingNode
    values: dict[str, Any]
    tasks: tuple[TaskDraft, ...]


def read_graph(findings: Findings, root: Node) -> GraphDraft | None:
    """The draft of the document; None when its root is not a mapping."""
    if not isinstance(root, MappingNode):
        findings.add(root, "", f"the document must be a mapping with `subtasks:`, not {_kind(root)}")
        return None
    values = fields(findings, root, "", known=GRAPH_KEYS, hints=_GRAPH_HINTS)
    if "subtasks" not in root.entries:
        findings.add(root, "", "`subtasks` is missing; write a list of at least one, each with an `id` and a `spec`")
    tasks = values.pop("subtasks", ())
    return GraphDraft(root, values, tasks)


def item_nodes(node: Node) -> list[Node]:
    """The nodes of a list or of the single value that stands for one."""
    return node.items if isinstance(node, SequenceNode) else [node]


def _subtasks(findings: Findings, node: Node, path: str) -> tuple[TaskDraft, ...] | Broken:
    if not isinstance(node, SequenceNode):
        return findings.add(node, path, f"subtasks must be a list of mappings (`- id: …`), not {_kind(node)}")
    if not node.items:
        return findings.add(node, path, "subtasks is empty; a graph needs at least one")
    if len(node.items) > MAX_SUBTASKS:
        return findings.add(node, path, f"{len(node.items)} subtasks; at most {MAX_SUBTASKS}, split the graph")
    drafts = []
    for index, item in enumerate(node.items):
        where = f"subtasks[{index}]"
        if not isinstance(item, MappingNode):
            if not isinstance(item, ScalarEvent | SequenceNode):
                continue
            findings.add(item, where, f"a subtask is a mapping with `id` and `spec`, not {_kind(item)}")
            continue
        drafts.append(TaskDraft(item, where, fields(findings, item, where, known=SUBTASK_KEYS, hints=_SUBTASK_HINTS)))
    return tuple(drafts)


def _title(findings: Findings, node: Node, path: str) -> str | Broken:
    value = text(findings, node, path)
    if isinstance(value, Broken):
        return value
    value = value.strip()
    if not value:
        return findings.add(node, path, "title is empty; write one line, or leave the key out")
    if "\n" in value or "\r" in value:
        return findings.add(node, path, "title has several lines; write one, and the rest into `spec`")
    if len(value) > MAX_TITLE_CHARACTERS:
        return findings.add(node, path, f"title has {len(value)} characters; at most {MAX_TITLE_CHARACTERS}")
    return value


def _spec_problem(value: str) -> str | None:
    # A character is at most four bytes: nearly every text passes without being encoded.
    if len(value) * 4 > MAX_SPEC_BYTES and len(value.encode()) > MAX_SPEC_BYTES:
        return f"spec has {len(value.encode())} bytes; at most {MAX_SPEC_BYTES} (256 KiB)"
    return None


def _name_problem(value: str) -> str | None:
    if NAME_PATTERN.fullmatch(value):
        return None
    return f"{shown(value)} is not a name: letters a-z and A-Z, digits, '.', '_' and '-', at most 64"


def _base_problem(value: str) -> str | None:
    if not value.strip() or len(value) > 1024 or any(ord(c) < 33 or ord(c) == 127 for c in value):
        return f"base {shown(value)} is not a commit; write a branch, a tag or a hash"
    if value.startswith("-"):
        return f"base {shown(value)} begins with '-'; write a branch, a tag or a hash"
    mark = next((mark for mark in (":/", "@{", "^{/") if mark in value), None)
    if mark:
        return f"base {shown(value)} holds {mark!r}, whose meaning changes with time; write a branch, a tag or a hash"
    return None


def _pattern_problem(value: str) -> str | None:
    try:
        scope.parse_pattern(value)
    except ValueError as error:
        return str(error)
    return None


def _writes(findings: Findings, node: Node, path: str) -> tuple[str, ...] | Broken:
    if isinstance(node, ScalarEvent) and not node.style and node.value in ("", "~", "null", "Null", "NULL"):
        return findings.add(node, path, "writes is empty; write [] for a subtask that writes nothing, or leave it out")
    patterns: tuple[str, ...] | Broken = _patterns(findings, node, path)
    return patterns


def _dependencies(findings: Findings, node: Node, path: str) -> tuple[str | Broken, ...] | Broken:
    """The ids, with BROKEN in the place of each that could not be read, so that the others are still looked at."""
    nodes = items(findings, node, path)
    if isinstance(nodes, Broken):
        return BROKEN
    return tuple(text(findings, item, f"{path}[{index}]") for index, item in enumerate(nodes))


def command(findings: Findings, node: Node, path: str) -> tuple[str, ...] | Broken:
    """The argument list of a command that is written as a string or as a list."""
    if isinstance(node, SequenceNode):
        words: tuple[str, ...] | Broken = each(argument)(findings, node, path)
    else:
        line = argument(findings, node, path)
        try:
            words = line if isinstance(line, Broken) else commands.split(line)
        except ValueError as error:
            return findings.add(node, path, str(error))
    if isinstance(words, Broken):
        return words
    reason = commands.argument_problem(words)
    return words if reason is None else findings.add(node, path, reason)


def _check(findings: Findings, node: Node, path: str) -> CheckDraft | Broken:
    if isinstance(node, MappingNode):
        values = fields(findings, node, path, known=CHECK_KEYS, hints={"command": "write 'run'", "cmd": "write 'run'"})
        if "run" not in values:
            if "run" not in node.entries:
                findings.add(node, path, "a check needs `run`, a string or an argument list")
            return BROKEN
        return CheckDraft(node, path, values, isinstance(node.entries["run"][1], ScalarEvent))
    words = command(findings, node, path)
    return words if isinstance(words, Broken) else CheckDraft(node, path, {"run": words}, isinstance(node, ScalarEvent))


def _checks(findings: Findings, node: Node, path: str) -> tuple[CheckDraft, ...] | Broken:
    if isinstance(node, MappingNode):
        return findings.add(node, path, "checks must be a list (`- run: …`), not a mapping")
    drafts: tuple[CheckDraft, ...] | Broken = each(_check, at_most=MAX_CHECKS)(findings, node, path)
    return drafts


def _resources(findings: Findings, node: Node, path: str) -> dict[str, int] | Broken:
    found = mapping(findings, node, path)
    if isinstance(found, Broken):
        return found
    counts: dict[str, int] = {}
    for name, (key, value) in found.entries.items():
        where = f"{path}.{name[:60]}"
        read_name = checked(text, _name_problem)(findings, key, where)
        count = integer(1, 1_000_000)(findings, value, where)
        if not isinstance(read_name, Broken) and not isinstance(count, Broken):
            counts[read_name] = count
    return counts


def _section(known: Mapping[str, Key]) -> Read:
    def read(findings: Findings, node: Node, path: str) -> dict[str, Any] | Broken:
        found = mapping(findings, node, path)
        return found if isinstance(found, Broken) else fields(findings, found, path, known=known, hints={})

    return read


def _version(findings: Findings, node: Node, path: str) -> int | Broken:
    value = integer(0, MAX_INTEGER)(findings, node, path)
    if value in (1, BROKEN):
        return value  # type: ignore[no-any-return]
    return findings.add(node, path, f"schemaVersion {value} is not known; this version reads schemaVersion 1")


def _kind(node: Node) -> str:
    if isinstance(node, ScalarEvent):
        return shown(node.value) if node.value else "empty"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


_patterns: Final = each(checked(text, _pattern_problem), at_most=MAX_PATTERNS)
_names: Final = each(checked(text, _name_problem), at_most=64)

# What a subtask and `defaults` have in common.
_COMMON: Final[Mapping[str, Key]] = {
    "agent": Key("agent", checked(text, _name_problem)),
    "timeout": Key("timeout_s", duration),
    "idleTimeout": Key("idle_timeout_s", duration),
    "inputTimeout": Key("input_timeout_s", duration),
    "onIdle": Key("on_idle", choice("mark", "stop")),
    "attempts": Key("attempts", integer(1, 100)),
    "fixTurns": Key("fix_turns", integer(0, 100)),
    "commit": Key("commit", choice("agent", "runtime", "auto")),
    "expect": Key("expect", choice("commit", "nothing", "either")),
}
DEFAULTS_KEYS: Final[Mapping[str, Key]] = _COMMON
CHECK_KEYS: Final[Mapping[str, Key]] = {
    "name": Key("name", _title),
    "run": Key("run", command),
    "timeout": Key("timeout_s", duration),
    "checkIn": Key("check_in", choice("worktree", "pristine")),
    "protect": Key("protect", _patterns),
    "needs": Key("needs", _names),
}
INTEGRATION_KEYS: Final[Mapping[str, Key]] = {"checks": Key("checks", _checks)}
SUBTASK_KEYS: Final[Mapping[str, Key]] = {
    "id": Key("id", checked(text, subtask_id_problem)),
    "title": Key("title", _title),
    "spec": Key("spec", checked(text, _spec_problem)),
    "specFile": Key("spec_file", checked(text, path_problem)),
    "writes": Key("writes", _writes),
    "dependsOn": Key("depends_on", _dependencies),
    "checks": Key("checks", _checks),
    "needs": Key("needs", _names),
    "priority": Key("priority", integer(-MAX_INTEGER, MAX_INTEGER)),
    **_COMMON,
}
GRAPH_KEYS: Final[Mapping[str, Key]] = {
    "schemaVersion": Key("schema_version", _version),
    "id": Key("id", checked(text, graph_id_problem)),
    "title": Key("title", _title),
    "base": Key("base", checked(text, _base_problem)),
    "maxConcurrency": Key("max_concurrency", integer(1, 256)),
    "maxChecks": Key("max_checks", integer(1, 256)),
    "resources": Key("resources", _resources),
    "scopePolicy": Key("scope_policy", choice("observe", "warn", "strict")),
    "spec": Key("spec", checked(text, _spec_problem)),
    "defaults": Key("defaults", _section(DEFAULTS_KEYS)),
    "checks": Key("checks", _checks),
    "subtasks": Key("subtasks", _subtasks),
    "integration": Key("integration", _section(INTEGRATION_KEYS)),
}
