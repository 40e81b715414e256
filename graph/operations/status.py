"""graph-status: where every subtask stands, what needs a person first. Reads rows; builds no graph."""

import json
from typing import Any, NamedTuple

from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.view import status_of_rows


class Request(NamedTuple):
    graph: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_NOT_FOUND, INVALID_USAGE when several graphs could be meant."""
    row = pick_graph(runtime.store, request.graph)
    return Result(status_of(runtime, row.id))


def status_of(runtime: Runtime, graph: str) -> dict[str, Any]:
    """`data` of graph-status as it is recorded now; what every driving verb answers with. Raises: TASK_NOT_FOUND."""
    # The lease first: a driver that ends between the two looks is then still named, and never a finished graph without
    # its last events.
    driver = holder(runtime.state_dir, graph)
    row = pick_graph(runtime.store, graph)
    data = status_of_rows(row, runtime.store.runs(graph), driver=driver, now=runtime.clock.now())
    for subtask in data["subtasks"]:
        session = subtask["session"]
        if session is not None and session["state"] == "idle" and _has_ended(runtime, session["id"]):
            session["state"] = "exited"
    return data


def _has_ended(runtime: Runtime, session: str) -> bool:
    """Whether the idle Session wrote its last record since: its host ends it by itself, and nobody folds that in."""
    try:
        record = json.loads((runtime.state_dir / "sessions" / session / "record.json").read_bytes())
    except (OSError, ValueError):
        return True
    return not isinstance(record, dict) or record.get("end") is not None
