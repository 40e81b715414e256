"""graph-watch: the live view of a graph. The screen is the edge's (`Runtime.live_view`); what it shows is graph-status.

Leaving the view ends nothing. While it is open and nobody drives the graph, what agents left is verified as graph-wait
does it.
"""

from dataclasses import dataclass

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Request:
    graph: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`data` of graph-status when the person left. Raises: INVALID_USAGE without a terminal that can be drawn on."""
    graph = pick_graph(runtime.store, request.graph).id
    if runtime.live_view is None:
        raise GraphError(
            "INVALID_USAGE",
            "graph-watch draws on a terminal, and there is none here that it can draw on (or --json was given).",
            kept="everything as it is",
            next=f"coordinate-agents graph-status {graph}, or coordinate-agents graph-wait {graph}",
            facts={"taskId": graph},
        )
    runtime.live_view.show(graph)
    return Result(status_of(runtime, graph))
