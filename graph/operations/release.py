"""graph-release: end a hold. What stood still goes on, with the next free slot."""

from coordinate_agents.graph.acts.hold import release
from coordinate_agents.graph.operations.asking import by_driver_or_alone
from coordinate_agents.graph.operations.loading import pick_subtask, require_named
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import sentence
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Not held: no change."""
    row, name = pick_subtask(runtime.store, request.graph, request.subtask)
    asked = {"subtask": require_named(row, name)}

    told = by_driver_or_alone(runtime, row.id, "graph-release", asked, release, verb="graph-release")
    data = status_of(runtime, row.id)
    is_driven = data["graph"]["driver"] is not None
    goes_on = "Released: what stood still goes on." if is_driven else "Released: it goes on when somebody drives."
    advice = [sentence(told["note"]) if told["note"] else goes_on]
    if not is_driven:
        advice.append(f"Next: coordinate-agents graph-run {row.id}")
    return Result({**data, "hold": dict(told), "about": [asked["subtask"]], "advice": advice})
