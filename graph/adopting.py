"""A Session that outlived its attempt's end on the record: whether the subtask can simply go on in it.

So it is when the record had to call it lost (its folder was away, a disk was not mounted) and it is there again. Looks
only. Never adopted: a Session of somebody else, in another folder, or one that waits for its next turn.
"""

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import SessionAdopted
from coordinate_agents.graph.opened import way_out
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import SessionId

_AT_WORK = frozenset({"running", "awaiting-input"})


async def adoption(context: Context, run: TaskRun, *, who: str) -> SessionAdopted | None:
    """The adoption of the run's Session; None when it does not live or only waits for its next turn.

    Raises: SESSION_STATE_CONFLICT when something lives there that cannot be adopted: no second agent starts beside it.
    """
    if run.session is None or run.state not in ("failed", "stopped"):
        return None
    facts = await context.sessions.look(SessionId(run.session))
    record = facts.record
    if facts.liveness not in ("live", "unreachable") or record is None or record.state == "idle":
        return None
    why = "its host does not answer" if facts.liveness == "unreachable" else _mismatch(context, run, record.cwd)
    labels = record.labels
    if why is None and (labels.get("taskId"), labels.get("subtaskId")) != (context.graph_id, run.id):
        why = "it is another subtask's"
    if why is None and record.state not in _AT_WORK:
        why = f"it is {record.state}"
    if why is None and run.worktree is not None:
        damage = await context.call(context.worktrees.is_intact, run.worktree)
        why = f"the worktree is not as it was made: {damage}" if damage else None
    if why is not None:
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Session {run.session} of subtask {run.id} still lives and cannot be adopted: {why}.",
            kept="that Session, the worktree and its branch",
            next=way_out(run.session, facts),
            stage="resume",
            facts={"taskId": context.graph_id, "subtaskId": run.id, "sessionId": run.session},
        )
    child, host = record.child, record.host
    return SessionAdopted(
        run.id, run.session, pid=child.pid if child else None, host_pid=host.pid if host else None, who=who
    )


def _mismatch(context: Context, run: TaskRun, cwd: str) -> str | None:
    if run.worktree is None or run.is_fresh:
        return "the subtask starts afresh"
    return None if cwd == run.worktree.path else f"it works in {cwd}"
