"""graph-status: where every subtask stands, what needs a person first. Reads rows; builds no graph."""

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
    return status_of_rows(row, runtime.store.runs(graph), driver=driver, now=runtime.clock.now())
