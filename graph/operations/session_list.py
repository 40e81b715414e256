"""session-list: the Sessions of this repository, or of one graph; with `all` also those that ended, and commands."""

from typing import Any, NamedTuple

import anyio

from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.session_shape import record_json
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime


class Request(NamedTuple):
    graph: str | None = None
    all: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """`sessions` oldest first; `ended` counts what is not shown without `all`. Raises: TASK_NOT_FOUND."""
    graph = pick_graph(runtime.store, request.graph).id if request.graph is not None else None
    found = sorted(
        (facts for facts in anyio.run(runtime.sessions.list) if facts.record is not None),
        key=lambda facts: (facts.record.created_at, facts.record.id) if facts.record is not None else (0.0, ""),
    )
    shown: list[dict[str, Any]] = []
    hidden = 0
    for facts in found:
        record = facts.record
        if record is None or (graph is not None and record.labels.get("taskId") != graph):
            continue
        if request.all or (record.kind == "agent" and facts.liveness not in ("ended", "absent")):
            shown.append(record_json(facts, record))
        elif record.kind == "agent":
            hidden += 1
    return Result({"sessions": shown, "ended": hidden})
