"""Close the owned Sessions of a graph, all at once, each within its bound, and record what was stopped."""

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import Failure, TaskStopped
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.sessions.model import SessionId


async def stop_all(context: Context, *, reason: str, only: SubtaskId | None = None) -> None:
    """Stop every running subtask (or one). What survives a close is named in the subtask's failure."""
    running = [run.id for run in context.snapshot.runs.values() if run.state == "running" and only in (None, run.id)]
    async with anyio.create_task_group() as group:
        for subtask in running:
            group.start_soon(_stop, context, subtask, reason)


async def _stop(context: Context, subtask: SubtaskId, reason: str) -> None:
    run = context.run(subtask)
    survivors: tuple[str, ...] = ()
    for session in (run.command_session, run.session):
        if session is not None:
            survivors += await context.sessions.close(SessionId(session))
    if run.worktree is not None and not survivors:
        await context.call(context.worktrees.keep, context.graph_id, slug(subtask), run.worktree)
    failure = None
    if survivors:
        failure = Failure(
            "SESSION_CLOSE_FAILED", f"could not be ended: {', '.join(survivors[:5])}.", kept="its worktree and branch"
        )
    if context.run(subtask).state == "running":
        context.record(TaskStopped(subtask, reason, failure))
