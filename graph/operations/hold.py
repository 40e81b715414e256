"""graph-hold: no prompt, start, verification or timeout of a subtask while a person works in its worktree.

The hold is recorded, so that it outlives drivers and terminals; graph-release ends it.
"""

from coordinate_agents.graph.acts.hold import hold
from coordinate_agents.graph.operations.asking import by_driver_or_alone
from coordinate_agents.graph.operations.loading import pick_subtask, require_named
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import sentence
from coordinate_agents.worktrees.values import value_class

# A verification that runs is cut short first, with the check that it is at.
_HOLD_WAIT_S = 15.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_STATE_CONFLICT for a subtask that succeeded. Held already: no change."""
    row, name = pick_subtask(runtime.store, request.graph, request.subtask)
    asked = {"subtask": require_named(row, name)}

    told = by_driver_or_alone(runtime, row.id, "graph-hold", asked, hold, verb="graph-hold", wait_s=_HOLD_WAIT_S)
    words = sentence(told["note"]) if told["note"] else "Held: nothing starts, types or verifies there."
    advice = [words, f"Next: coordinate-agents graph-release {row.id} {asked['subtask']}"]
    return Result({**status_of(runtime, row.id), "hold": dict(told), "about": [asked["subtask"]], "advice": advice})
