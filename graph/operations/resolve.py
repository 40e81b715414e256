"""graph-resolve: open the merge that a subtask's base cannot be made without, take its end, or take it back."""

from coordinate_agents.graph.conflicts import PROGRAM
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_NEEDS_PERSON, GraphError
from coordinate_agents.graph.operations.asking import by_driver_or_lease
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.resolving import resolve
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.values import value_class

# Laying a large worktree out takes longer than an ordinary answer.
_WAIT_S = 20.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    continue_: bool = False
    abort: bool = False
    keep_markers: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """Exit code 5 when, after one conflict was resolved, the next one waits. Raises: as `resolving.resolve`."""
    if request.continue_ and request.abort:
        raise GraphError("INVALID_USAGE", "--continue and --abort exclude each other.")
    graph, subtask = _picked(runtime, request)
    action = "continue" if request.continue_ else "abort" if request.abort else "open"
    name, email = (runtime.worktrees.user_identity() if request.continue_ else None) or ("", "")
    asked = {
        "subtask": subtask,
        "action": action,
        "who": "user",
        "name": name,
        "email": email,
        "keepMarkers": request.keep_markers,
    }
    done = by_driver_or_lease(runtime, graph, "resolve", asked, resolve, wait_s=_WAIT_S)
    data = status_of(runtime, graph)
    data["resolve"] = {"subtask": subtask, "action": action, **done}
    is_next = action == "continue" and done["outcome"] == "opened"
    return Result(data, EXIT_NEEDS_PERSON if is_next else EXIT_DONE)


def _picked(runtime: Runtime, request: Request) -> tuple[str, str]:
    """Graph and subtask; without a subtask the only one that has a conflict."""
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    if subtask is not None:
        return row.id, subtask
    _, snapshot = load_snapshot(runtime.store, row.id)
    found = sorted(run.id for run in snapshot.runs.values() if run.state == "idle" and run.conflict is not None)
    if len(found) == 1:
        return row.id, found[0]
    what = f"several have a conflict ({listed(found, first=8)})" if found else "none has a conflict"
    raise GraphError(
        "INVALID_USAGE" if found else "TASK_STATE_CONFLICT",
        f"Name the subtask of graph {row.id}: {what}.",
        kept="everything as it is",
        next=f"{PROGRAM} graph-status {row.id}",
        facts={"taskId": row.id},
    )
