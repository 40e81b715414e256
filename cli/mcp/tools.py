"""From the verb table to tools: names, argument names, JSON Schemas, hints; which tools are offered. Pure.

Nothing of the MCP SDK is needed here, so that documentation and tests can look without it. A tool's arguments are the
verb's parameters: `taskId` (GRAPH), `subtaskId`, `sessionId`, `document` (FILE: its text, or an object), otherwise the
long option in camelCase; and `root`, which may only name the repository that the server is bound to.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from coordinate_agents.graph.operations.table import VERBS, Param, Verb

PREFIX: Final = "coordinate_agents_"
ROOT: Final = "root"
DOCUMENT: Final = "document"
PATH: Final = "path"
TASK: Final = "taskId"
PAGE: Final = "page"
MAX_BYTES: Final = "maxBytes"

# Terminals, this very server, or a script for a shell.
_NO_TOOLS: Final = frozenset({"session-attach", "graph-watch", "mcp", "completion"})
# No call goes on by itself for ever (`follow`), graph-run always drives in the background (`detach`), and no client
# names a place anywhere on this machine to write to (`artefacts`, `output`).
_NOT_OFFERED: Final = frozenset({"follow", "detach", "artefacts", "output"})
_NAMES: Final[Mapping[str, str]] = {
    "graph": TASK,
    "task": TASK,
    "subtask": "subtaskId",
    "session": "sessionId",
    "file": DOCUMENT,
}

# What only a person decides unless the server was started with --allow-decisions: verbs by what follows the prefix of
# their name, and options.
DECISIONS: Final = ("review", "accept", "discard", "take-over", "trust")
_DECIDING_VERBS: Final = frozenset({"review", "accept", "trust"})
_DECIDING_OPTIONS: Final[Mapping[str, str]] = {
    "accept-shared": "accept",
    "discard": "discard",
    "take-over": "take-over",
}

# The smallest set that drives a graph from its file to its end and speaks with agents.
_CORE: Final = frozenset(
    {
        *(f"session-{name}" for name in ("open", "status", "inspect", "write", "read", "close")),
        *(f"graph-{name}" for name in ("validate", "create", "plan", "run", "status", "inspect", "wait", "stop")),
        "setup-discover",
        "setup-configure",
        "evidence-submit",
    }
)
# Data that all graph verbs of the first kind have, and all session verbs (contract section 13).
_GRAPH_KEYS: Final = ("graph", "attention", "subtasks", "frontier", "integration")
_GRAPH_VERBS: Final = frozenset(
    f"graph-{name}" for name in ("status", "run", "dispatch", "recover", "resume", "stop", "integrate", "wait", "check")
)
_TASK_VERBS: Final = frozenset(
    f"task-{name}" for name in ("create", "dispatch", "status", "inspect", "review", "resume", "stop")
)
_SESSION_VERBS: Final = frozenset(
    f"session-{name}" for name in ("open", "status", "inspect", "read", "write", "answer", "interrupt", "close")
)


class Argument(NamedTuple):
    """One argument of a tool. `param` is None for those that every tool has, or that lead to another one."""

    name: str
    schema: dict[str, Any]
    param: Param | None = None
    is_required: bool = False


class Tool(NamedTuple):
    """`decision`: what has to be allowed for it; empty for most."""

    name: str
    verb: Verb
    arguments: tuple[Argument, ...]
    decision: str = ""

    @property
    def input_schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": "object",
            "properties": {each.name: each.schema for each in self.arguments},
            "additionalProperties": False,
        }
        required = [each.name for each in self.arguments if each.is_required]
        return {**found, "required": required} if required else found

    @property
    def output_schema(self) -> dict[str, Any]:
        """The document of `--json`. Of an error `code`, `message` and `next` are always there."""
        return {
            "type": "object",
            "properties": {
                "ok": {"type": "boolean"},
                "command": {"const": self.verb.name},
                "data": {"type": "object", "properties": _data_properties(self.verb)},
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
                "exitCode": {"type": "integer"},
                "leftOut": {"type": "object"},
            },
            "required": ["ok", "command"],
        }

    @property
    def is_read_only(self) -> bool:
        """Whether it changes nothing anywhere. Verbs about the machine may write configuration or start an agent."""
        verb = self.verb
        return (verb.access in ("none", "read") and verb.name != "evidence-submit") or verb.name in (
            "graph-init",
            "setup-discover",
        )

    @property
    def hints(self) -> dict[str, bool]:
        """Under the names of the protocol's annotations."""
        return {
            "readOnlyHint": self.is_read_only,
            "destructiveHint": not self.is_read_only and self.verb.is_destructive,
            "idempotentHint": self.is_read_only or self.verb.is_repeatable,
            "openWorldHint": False,
        }


def tool_name(verb: Verb) -> str:
    return PREFIX + verb.name.replace("-", "_")


def tools(which: str, allowed: Collection[str]) -> tuple[Tool, ...]:
    """The offered ones of a group (all, core, session, graph, task), in the order of the table."""
    return tuple(
        tool
        for tool in all_tools(allowed)
        if _is_in(which, tool.verb) and (not tool.decision or tool.decision in allowed)
    )


def all_tools(allowed: Collection[str]) -> Iterator[Tool]:
    """Every tool there could be, also those that would decide what is not allowed."""
    for verb in VERBS:
        if verb.name not in _NO_TOOLS:
            decides = verb.name.partition("-")[2]
            yield Tool(tool_name(verb), verb, _arguments(verb, allowed), decides if decides in _DECIDING_VERBS else "")


def decisions(text: str | None) -> frozenset[str]:
    """What `--allow-decisions` allows. Raises: ValueError with the words that are none."""
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    unknown = [word for word in words if word not in (*DECISIONS, "all")]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}; decisions are {', '.join(DECISIONS)}, or all")
    return frozenset(DECISIONS if "all" in words else words)


def decision_of(param: Param) -> str:
    """What an option decides; empty for most."""
    return _DECIDING_OPTIONS.get(param.name, "")


def waits_by(verb: Verb) -> Param | None:
    """The parameter that says how long the verb waits; None for one that does not."""
    return next((each for each in verb.params if each.kind == "duration" and each.name in ("wait", "timeout")), None)


def _is_in(which: str, verb: Verb) -> bool:
    if which == "all":
        return True
    if which == "core":
        return verb.name in _CORE
    return verb.name.startswith(f"{which}-") or (which == "task" and verb.name.startswith("recover-"))


def _arguments(verb: Verb, allowed: Collection[str]) -> tuple[Argument, ...]:
    found: dict[str, Argument] = {}
    for param in verb.params:
        decides = decision_of(param)
        if param.name in _NOT_OFFERED or (decides and decides not in allowed):
            continue
        for argument in _arguments_of(param):
            found[argument.name] = argument
    if "subtaskId" in found and TASK not in found:
        found[TASK] = Argument(TASK, {"type": "string", "description": "graph id, for a subtaskId without one"})
    found[ROOT] = Argument(ROOT, {"type": "string", "description": "this repository; needed for nothing"})
    if MAX_BYTES not in found:
        found[MAX_BYTES] = Argument(MAX_BYTES, {"type": "integer", "minimum": 1, "description": "room for the result"})
    if verb.name != "session-read":
        found[PAGE] = Argument(PAGE, {"type": "string", "description": "leftOut.page of an earlier result"})
    return tuple(found.values())


def _arguments_of(param: Param) -> Iterator[Argument]:
    name = argument_name(param)
    if param.kind == "path" and not param.positional:
        yield Argument(name, {"type": "string", "description": f"{param.help}; relative to the repository"}, param)
        return
    is_document = param.kind == "path"
    if is_document or param.takes_file:
        if not is_document:
            yield Argument(name, {"type": "string", "description": "graph id"}, param)
        what = "the graph file itself: its text, or the same as an object"
        yield Argument(DOCUMENT, {**_any_of("string", "object"), "description": what}, param)
        where = f"instead of {DOCUMENT}: path of a graph file, relative to the repository"
        yield Argument(PATH, {"type": "string", "description": where}, param)
        return
    yield Argument(name, _schema(param), param, param.required)


def argument_name(param: Param) -> str:
    if param.name in _NAMES:
        return _NAMES[param.name]
    return re.sub("-(.)", lambda found: found[1].upper(), param.name)


def _schema(param: Param) -> dict[str, Any]:
    one: dict[str, Any]
    match param.kind:
        case "flag":
            one = {"type": "boolean"}
        case "integer":
            one = {"type": "integer", "minimum": 0}
        case "duration":
            one = _any_of("number", "string")
        case "choice":
            one = {"type": "string", "enum": list(param.choices)}
        case _:
            one = {"type": "string"}
    # What the command line calls standard input is no way to give a text here.
    described = {"description": re.sub("; - reads standard input", "", param.help)}
    return {"type": "array", "items": one, **described} if param.multiple else {**one, **described}


def _any_of(*types: str) -> dict[str, Any]:
    """Some models are told of a tool in a dialect in which a type is one word."""
    return {"anyOf": [{"type": each} for each in types]}


def _data_properties(verb: Verb) -> dict[str, Any]:
    if verb.name in _GRAPH_VERBS:
        lists = ("attention", "subtasks")
        return {key: {"type": "array"} if key in lists else _any_of("object", "null") for key in _GRAPH_KEYS}
    if verb.name in _TASK_VERBS:
        return {"task": {"type": "object"}, "attention": {"type": "array"}}
    if verb.name in _SESSION_VERBS:
        return {"session": {"type": "object"}}
    return {}
