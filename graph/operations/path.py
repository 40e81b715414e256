"""graph-path: the worktree of a subtask, for `cd "$(cag path GRAPH SUBTASK)"`. Without a subtask: the integration's.

Of a subtask whose base waits for a merge by hand it is the worktree in which that merge stands.
"""

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.loading import pick_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, RESOLVE_PREFIX, branch_name
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_STATE_CONFLICT when there is no worktree (yet, or any more)."""
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    status = status_of(runtime, row.id)
    if subtask is None:
        made, what = status["integration"] or {}, f"The integration of graph {row.id}"
    else:
        made = next(each for each in status["subtasks"] if each["id"] == subtask)
        if made["conflictWorktree"] and (made["conflict"] or not made["worktree"]):
            made = {
                **made,
                "worktree": made["conflictWorktree"],
                "branch": branch_name(row.id, RESOLVE_PREFIX + subtask),
            }
        what = f"Subtask {subtask} of graph {row.id}"
    if not made.get("worktree") and made.get("branch"):
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"{what} has no worktree any more: it was removed.",
            kept=f"branch {made['branch']}",
            next=f"coordinate-agents graph-undo {row.id} {subtask or INTEGRATION_SLUG}",
            facts={"taskId": row.id, "subtaskId": subtask},
        )
    if not made.get("worktree"):
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"{what} has no worktree: it is {made.get('state', 'not started')}.",
            next=f"coordinate-agents graph-status {row.id}",
            facts={"taskId": row.id, "subtaskId": subtask},
        )
    return Result({"path": made["worktree"], "branch": made["branch"], "graph": row.id, "subtask": subtask})
