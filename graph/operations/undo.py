"""graph-undo: bring removed worktrees back, with everything that was set aside of them."""

from typing import Final

from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED
from coordinate_agents.graph.operations.asking import by_driver_or_lease
from coordinate_agents.graph.operations.loading import pick_graph, pick_subtask
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.removal_requests import serve_undo
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.model import INTEGRATION_SLUG
from coordinate_agents.worktrees.values import value_class

_WAIT_S: Final = 120.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Exit code 1 when one could not be brought back."""
    subtask = request.subtask
    if subtask == INTEGRATION_SLUG:
        row = pick_graph(runtime.store, request.graph)
    else:
        row, subtask = pick_subtask(runtime.store, request.graph, subtask)
    graph = row.id
    data = by_driver_or_lease(runtime, graph, "undo", {"subtask": subtask}, serve_undo, wait_s=_WAIT_S)
    has_refused = any(item["outcome"] == "refused" for item in data["items"])
    return Result({"graph": graph, **data}, EXIT_REFUSED if has_refused else EXIT_DONE)
