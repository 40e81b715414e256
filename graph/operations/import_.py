"""graph-import: a graph file made from a Task Graph v1 JSON file and its companion intent map. Needs no repository.

`parentTask` becomes id, title and spec, `implementer` the agent, `writeIntent` the write intent. Whatever has no
counterpart is kept as an `x-` key, so that nothing is lost in silence. The result was checked like any graph file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from coordinate_agents.graph import document
from coordinate_agents.graph.errors import GraphError, Problem
from coordinate_agents.graph.operations.sources import read_source
from coordinate_agents.graph.operations.table import Result

_SUBTASK_KEYS: Final = {"id": "id", "title": "title", "spec": "spec", "implementer": "agent", "dependsOn": "dependsOn"}
_PARENT_KEYS: Final = {"id": "id", "title": "title", "spec": "spec"}
# Words that some YAML version takes for something else, and everything but plain words, are quoted.
_PLAIN: Final = re.compile(
    r"(?!(?:null|true|false|yes|no|on|off|y|n)$)[A-Za-z][A-Za-z0-9_./ -]*[A-Za-z0-9_./-]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Request:
    file: str
    intent_map: str | None = None


def execute(runtime: None, request: Request) -> Result:
    """`document` is the text of the graph file. Raises: TASK_GRAPH_INVALID."""
    graph = _mapping(_read(request.file), request.file)
    intents = _mapping(_read(request.intent_map), request.intent_map) if request.intent_map else {}
    notes: list[str] = []
    content = _converted(graph, intents, request, notes)
    text = "\n".join(_yaml(content, "")) + "\n"
    document.parse(text.encode(), name=f"{request.file} (converted)", stem=None, read_spec_file=None)
    return Result({"document": text, "notes": notes})


def _converted(
    graph: Mapping[str, Any], intents: Mapping[str, Any], request: Request, notes: list[str]
) -> dict[str, Any]:
    parent = _mapping(graph.get("parentTask", {}), f"{request.file}: parentTask")
    found: dict[str, Any] = {"schemaVersion": 1}
    found.update((ours, parent[theirs]) for theirs, ours in _PARENT_KEYS.items() if theirs in parent)
    for key in ("maxConcurrency", "base"):
        if key in graph:
            found[key] = graph[key]
    if "scopePolicy" in intents:
        found["scopePolicy"] = intents["scopePolicy"]
    if "implementer" in parent:
        found["defaults"] = {"agent": parent["implementer"]}
    _keep(found, parent, {*_PARENT_KEYS, "implementer"}, "parentTask", notes)
    _keep(found, graph, {"schemaVersion", "parentTask", "subtasks", "maxConcurrency", "base"}, "the graph", notes)
    if intents and intents.get("parentTaskId", parent.get("id")) != parent.get("id"):
        raise _invalid(f"{request.intent_map} belongs to {intents['parentTaskId']!r}, not to {parent.get('id')!r}")
    writes = _writes(intents, request)
    found["subtasks"] = [_subtask(each, writes, request, notes) for each in _list(graph, "subtasks", request.file)]
    unknown = writes.keys() - {each.get("id") for each in found["subtasks"]}
    if unknown:
        raise _invalid(f"{request.intent_map} names subtasks that the graph has not: {', '.join(sorted(unknown))}")
    return found


def _subtask(raw: Any, writes: Mapping[str, Any], request: Request, notes: list[str]) -> dict[str, Any]:
    given = _mapping(raw, f"{request.file}: subtasks")
    found = {ours: given[theirs] for theirs, ours in _SUBTASK_KEYS.items() if theirs in given}
    known = {*_SUBTASK_KEYS, "writeIntent"}
    intent = writes.get(str(given.get("id")), given.get("writeIntent"))
    if intent is not None:
        found["writes"] = intent
        if intent == []:
            notes.append(f"{given.get('id')}: its write intent is empty, so it is expected to make no commit")
    _keep(found, given, known, str(given.get("id")), notes)
    return found


def _keep(into: dict[str, Any], given: Mapping[str, Any], known: set[str], where: str, notes: list[str]) -> None:
    """Keep what has no counterpart under an `x-` key, and say so."""
    for key in sorted(given.keys() - known):
        name = key if key.startswith("x-") else f"x-{key}"
        into[name] = given[key]
        notes.append(f"{where}: {key} has no counterpart; kept as {name}")
    notes.sort()


def _writes(intents: Mapping[str, Any], request: Request) -> dict[str, Any]:
    if not intents:
        return {}
    name = request.intent_map or ""
    entries = [_mapping(each, f"{name}: subtasks") for each in _list(intents, "subtasks", name)]
    return {str(each.get("id")): each.get("writeIntent", []) for each in entries}


def _read(file: str) -> Any:
    source = read_source(file)
    try:
        return json.loads(source.text.decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise _invalid(f"{source.name} is not JSON", Problem(error.lineno, error.colno, "", error.msg)) from error
    except (ValueError, RecursionError) as error:
        raise _invalid(f"{source.name} is not JSON: {error}") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _mapping(value: Any, where: str | None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"{where}: an object is needed, not {json.dumps(value)[:60]}")
    return value


def _list(value: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = value.get(key)
    if not isinstance(found, list):
        raise _invalid(f"{where}: {key} must be a list")
    return found


def _invalid(message: str, *problems: Problem) -> GraphError:
    return GraphError("TASK_GRAPH_INVALID", f"{message}.", kept="everything as it is", problems=problems)


def _yaml(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """The mapping as block YAML: plain words plain, several lines as a literal block, the rest as JSON."""
    for key, item in value.items():
        if isinstance(item, list) and item and all(isinstance(each, dict) for each in item):
            yield f"{indent}{_scalar(key)}:"
            for each in item:
                lines = list(_yaml(each, f"{indent}    "))
                yield f"{indent}  - {lines[0].strip()}"
                yield from lines[1:]
        elif isinstance(item, dict) and item:
            yield f"{indent}{_scalar(key)}:"
            yield from _yaml(item, f"{indent}  ")
        elif isinstance(item, str) and _fits_block(item):
            yield f"{indent}{_scalar(key)}: |{'' if item.endswith(chr(10)) else '-'}"
            yield from (f"{indent}  {line}" if line else "" for line in item.removesuffix("\n").split("\n"))
        else:
            yield f"{indent}{_scalar(key)}: {_scalar(item)}"


def _scalar(item: Any) -> str:
    if isinstance(item, str) and _PLAIN.fullmatch(item):
        return item
    if isinstance(item, list):
        return f"[{', '.join(_scalar(each) for each in item)}]"
    return json.dumps(item, ensure_ascii=False)


def _fits_block(text: str) -> bool:
    """Several lines that a literal block carries exactly."""
    return (
        "\n" in text.strip("\n")
        and all(char.isprintable() or char == "\n" for char in text)
        and not text.startswith((" ", "\n"))
        and not text.endswith("\n\n")
    )
