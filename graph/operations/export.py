"""graph-export: the whole record of a graph as one JSON document, or its picture as DOT or Mermaid text."""

import json
from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph.operations.events import event_json
from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.pictures import MAX_LABEL, Picture, dot, mermaid
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.text import visible
from coordinate_agents.graph.view import iso, status_of_rows
from coordinate_agents.worktrees.values import value_class

FORMAT_VERSION: Final = 1


@value_class
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
        lines = (dot if request.format == "dot" else mermaid)(_picture(status, request.format))
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


def _picture(status: Mapping[str, Any], form: str) -> Picture:
    subtasks = status["subtasks"]
    labels: dict[str, tuple[str, ...]] = {}
    for each in subtasks:
        name, title, state = each["id"], visible(each["title"], limit=MAX_LABEL), each["state"]
        labels[name] = (name, title, state) if form == "dot" else (f"{name}: {title} ({state})",)
    edges = [(needed, each["id"]) for each in subtasks for needed in each["dependsOn"]]
    return Picture(status["graph"]["id"], labels, edges)
