"""The JSON Schema (2020-12) of the graph document, for editors and for programs that write one.

It says what can be said of one value at a time; references between subtasks, cycles and the safety of ids as file
names are `document_rules`' and `ids`'. It never refuses what `document.parse` accepts; a test compares both, and the
keys, with the tables of `document_shape`.
"""

from typing import Any, Final

from coordinate_agents.graph import model
from coordinate_agents.graph.document_shape import MAX_CHECKS, MAX_PATTERNS, MAX_SUBTASKS, MAX_TITLE_CHARACTERS
from coordinate_agents.graph.durations import DURATION_PATTERN
from coordinate_agents.graph.ids import NAME_PATTERN

SCHEMA_URI: Final = "https://json-schema.org/draft/2020-12/schema"

_OWN_KEYS: Final = {"^x-": True}
_NOT_BLANK: Final = {"type": "string", "pattern": r"\S"}


def json_schema() -> dict[str, Any]:
    """The schema as a fresh object, ready for json.dumps."""
    return {
        "$schema": SCHEMA_URI,
        "title": "Graph document of coordinate-agents",
        **_closed(_graph_properties(), required=["subtasks"]),
        "$defs": _definitions(),
    }


def _graph_properties() -> dict[str, Any]:
    return {
        "schemaVersion": _said({"const": 1}, "The version of this format."),
        "id": _said(
            {"type": "string", "pattern": _whole(model.GRAPH_ID_PATTERN.pattern)},
            "The graph's id and the taskId of its Sessions and events. Default: the file's name without its ending.",
        ),
        "title": _ref("title"),
        "base": _said(_NOT_BLANK, "The commit that subtasks start from, resolved once. Default: HEAD."),
        "maxConcurrency": _said(_integer(1, 256), "Subtasks at a time. Default: 4."),
        "maxChecks": _said(_integer(1, 256), "Checks at a time. Default: a quarter of the processors, at least 1."),
        "resources": _said(
            {
                "type": ["object", "null"],
                "propertyNames": {"pattern": _whole(NAME_PATTERN.pattern)},
                "additionalProperties": _integer(1, 1_000_000),
            },
            "Counted tokens that subtasks and checks take with `needs`.",
        ),
        "scopePolicy": _said({"enum": ["observe", "warn", "strict"]}, "What a path outside `writes` means."),
        "spec": _said({"type": "string"}, "Context that every agent gets."),
        "defaults": {**_closed(_common()), "type": ["object", "null"]},
        "checks": _said(_ref("checks"), "Run on every subtask's commit and on the integration."),
        "subtasks": {"type": "array", "minItems": 1, "maxItems": MAX_SUBTASKS, "items": _ref("subtask")},
        "integration": {**_closed({"checks": _ref("checks")}), "type": ["object", "null"]},
    }


def _definitions() -> dict[str, Any]:
    patterns = {"type": "string", "minLength": 1, "maxLength": 512}
    name = {"type": "string", "pattern": _whole(NAME_PATTERN.pattern)}
    return {
        "title": {**_NOT_BLANK, "maxLength": MAX_TITLE_CHARACTERS + 2},
        "duration": _said(
            {
                "anyOf": [
                    {"type": "string", "pattern": _whole(DURATION_PATTERN)},
                    {"type": "number", "exclusiveMinimum": 0, "maximum": 366 * 86400},
                ]
            },
            "90s, 45m, 2h, 1h30m, or seconds.",
        ),
        "name": name,
        "names": _one_or_many(_ref("name"), 64, or_null=True),
        "patterns": _one_or_many(patterns, MAX_PATTERNS, or_null=True),
        "writes": _one_or_many(patterns, MAX_PATTERNS),
        "command": {
            "anyOf": [
                _said(_NOT_BLANK, "Split into words as a shell does; never run by one."),
                {"type": "boolean"},
                {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}},
            ]
        },
        "check": {"anyOf": [_ref("command"), _closed(_check_properties(), required=["run"])]},
        "checks": {
            "anyOf": [
                {"type": "array", "maxItems": MAX_CHECKS, "items": _ref("check")},
                _NOT_BLANK,
                {"type": ["boolean", "null"]},
            ]
        },
        "subtask": _subtask(),
    }


def _check_properties() -> dict[str, Any]:
    return {
        "name": _ref("title"),
        "run": _ref("command"),
        "timeout": _ref("duration"),
        "checkIn": _said({"enum": ["worktree", "pristine"]}, "Where it runs. pristine: a fresh checkout."),
        "protect": _said(
            _ref("patterns"), "Paths that judge: once changed, the check runs where they are as in the base."
        ),
        "needs": _ref("names"),
    }


def _subtask() -> dict[str, Any]:
    identifier = {"type": "string", "pattern": _whole(model.SUBTASK_ID_PATTERN.pattern), "maxLength": 64}
    properties = {
        "id": _said(identifier, "Unique in the graph, also without regard to case."),
        "title": _ref("title"),
        "spec": _said({"type": "string"}, "What is to be done."),
        "specFile": _said(_NOT_BLANK, "A file with the spec, relative to the graph file; read once."),
        "writes": _said(_ref("writes"), "Patterns of the paths that it will write. []: nothing. Absent: unknown."),
        "dependsOn": _one_or_many(identifier, None, or_null=True),
        "checks": _ref("checks"),
        "needs": _ref("names"),
        "priority": _said(_integer(-(10**18) + 1, 10**18 - 1), "Higher starts first. Default: 0."),
        **_common(),
    }
    wanted = [{"required": [key]} for key in ("title", "spec", "specFile")]
    both = {"not": {"required": ["spec", "specFile"]}}
    return {**_closed(properties, required=["id"]), "anyOf": wanted, **both}


def _common() -> dict[str, Any]:
    return {
        "agent": _ref("name"),
        "timeout": _said(_ref("duration"), "Bounds one attempt. Default: 45m."),
        "idleTimeout": _said(_ref("duration"), "Without output for so long it counts as stalled. Default: 10m."),
        "inputTimeout": _said(_ref("duration"), "Bounds waiting for a person. Default: 12h."),
        "onIdle": _said({"enum": ["mark", "stop"]}, "What happens to a stalled one. Default: mark."),
        "attempts": _said(_integer(1, 100), "Tries in all. Default: 1."),
        "fixTurns": _said(_integer(0, 100), "How often failing facts go back to the agent. Default: 1."),
        "commit": _said({"enum": ["agent", "runtime", "auto"]}, "Who commits. Default: the adapter's."),
        "expect": _said({"enum": ["commit", "nothing", "either"]}, "Default: commit; with `writes: []` nothing."),
    }


def _closed(properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    """An object with these keys, keys that begin with `x-`, and no others."""
    made = {
        "type": "object",
        "properties": properties,
        "patternProperties": dict(_OWN_KEYS),
        "additionalProperties": False,
    }
    return {**made, "required": required} if required else made


def _one_or_many(item: dict[str, Any], at_most: int | None, *, or_null: bool = False) -> dict[str, Any]:
    many: dict[str, Any] = {"type": "array", "items": item}
    if at_most is not None:
        many["maxItems"] = at_most
    return {"anyOf": [item, many, *([{"type": "null"}] if or_null else [])]}


def _integer(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _said(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"
