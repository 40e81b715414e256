"""Close the owned Sessions of a graph, all at once, each within its bound, and record what was stopped."""

from collections.abc import Mapping

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.events import Failure, SessionClosed, TaskStopped
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.staying import close_idle
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId


async def stop_all(context: Context, *, reason: str, only: SubtaskId | None = None) -> Mapping[SubtaskId, SessionError]:
    """Stop every running subtask (or one); those that were not stopped, with the reason, and they stay running.

    What stayed open of others is closed too. What survives a close is named in the subtask's failure. A host that holds
    its Session and does not answer may go on at any time: its subtask counts as running, so that no second agent starts
    beside it.
    """
    refused: dict[SubtaskId, SessionError] = {}
    running = [run.id for run in context.snapshot.runs.values() if run.state == "running" and only in (None, run.id)]
    async with anyio.create_task_group() as group:
        for subtask in running:
            group.start_soon(_stop, context, subtask, reason, refused)
        refused.update(await close_idle(context, reason, only=only))
    return refused


async def _stop(context: Context, subtask: SubtaskId, reason: str, refused: dict[SubtaskId, SessionError]) -> None:
    run = context.run(subtask)
    survivors: tuple[str, ...] = ()
    try:
        if run.command_session is not None:
            survivors = await _close_command(context, SessionId(run.command_session))
        for session in dict.fromkeys((run.session, run.open_session)):
            survivors += await context.turns.dispose_session(SessionId(session)) if session is not None else ()
    except SessionError as error:
        refused[subtask] = error
        return
    crash_point("stop.closed")
    if run.open_session is not None:
        context.record(SessionClosed(subtask, run.open_session, reason, survivors[:20]))
    if run.worktree is not None and not survivors:
        await context.call(context.worktrees.keep, context.graph_id, slug(subtask), run.worktree)
    failure = None
    if survivors:
        failure = Failure(
            "SESSION_CLOSE_FAILED", f"could not be ended: {', '.join(survivors[:5])}.", kept="its worktree and branch"
        )
    if context.run(subtask).state == "running":
        context.record(TaskStopped(subtask, reason, failure))


async def _close_command(context: Context, session: SessionId) -> tuple[str, ...]:
    """One that was only meant to start, before its driver died, is none to close."""
    try:
        return await context.sessions.close(session)
    except SessionError as error:
        if error.code == "SESSION_NOT_FOUND":
            return ()
        raise
