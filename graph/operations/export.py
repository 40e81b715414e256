"""graph-export: the whole record of a graph as one JSON document, or its picture as DOT or Mermaid text."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from coordinate_agents.graph.operations.events import event_json
from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.text import visible
from coordinate_agents.graph.view import iso, status_of_rows

FORMAT_VERSION: Final = 1
_MAX_LABEL: Final = 60


@dataclass(frozen=True, slots=True)
class Request:
    graph: str | None = None
    format: str = "json"


def execute(runtime: Runtime, request: Request) -> Result:
    """`data` is the record, or `{"format", "text"}` for a picture."""
    store = runtime.store
    row = pick_graph(store, request.graph)
    runs = store.runs(row.id)
    status = status_of_rows(row, runs, driver=holder(runtime.state_dir, row.id), now=runtime.clock.now())
    if request.format != "json":
        lines = _dot(status) if request.format == "dot" else _mermaid(status)
        return Result({"format": request.format, "text": "\n".join(lines)})
    return Result(
        {
            "format": FORMAT_VERSION,
            "status": status,
            "document": json.loads(row.document),
            "contentDigest": row.content_digest,
            "config": json.loads(row.config) if row.config else None,
            "createdAt": iso(row.created_at),
            "lastSeq": row.last_seq,
            "runs": {run.subtask_id: json.loads(run.row) for run in runs},
            "events": [{**event_json(event), "hash": event.hash} for event in store.events(row.id)],
        }
    )


def _dot(status: Mapping[str, Any]) -> Iterator[str]:
    """Graphviz; source: the DOT language, quoted ids (only a double quote and a backslash need an escape)."""
    yield f"digraph {_quoted(status['graph']['id'])} {{"
    yield "  rankdir=LR; node [shape=box];"
    for subtask in status["subtasks"]:
        label = f"{subtask['id']}\n{visible(subtask['title'], limit=_MAX_LABEL)}\n{subtask['state']}"
        yield f"  {_quoted(subtask['id'])} [label={_quoted(label)}];"
    for before, after in _edges(status):
        yield f"  {_quoted(before)} -> {_quoted(after)};"
    yield "}"


def _mermaid(status: Mapping[str, Any]) -> Iterator[str]:
    """Mermaid flowchart; nodes are numbered, since its ids allow less than ours (`end` is a keyword)."""
    yield "flowchart LR"
    numbers = {subtask["id"]: f"n{index}" for index, subtask in enumerate(status["subtasks"])}
    for subtask in status["subtasks"]:
        text = f"{subtask['id']}: {subtask['title'][:_MAX_LABEL]} ({subtask['state']})"
        yield f'  {numbers[subtask["id"]]}["{_entities(text)}"]'
    for before, after in _edges(status):
        yield f"  {numbers[before]} --> {numbers[after]}"


def _edges(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for subtask in status["subtasks"]:
        for needed in subtask["dependsOn"]:
            yield needed, subtask["id"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """Everything but plain words as a numeric entity, which Mermaid shows and never takes for markup."""
    return "".join(char if char.isalnum() or char in " .,:()/+_-" else f"#{ord(char)};" for char in text)
