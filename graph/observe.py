"""Look at the world as it is, before a driver goes on with what another one left. Changes no record."""

from coordinate_agents.graph import recovery
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import SessionFacts, SessionId
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, branch_ref


async def look_at_running(context: Context) -> list[tuple[TaskRun, SessionFacts | None]]:
    """Every running subtask with its Session's facts where they matter.

    A check or setup command that a dead driver left is closed here: its result would belong to nobody, and the step
    that needs it runs it again.
    """
    found = []
    for subtask in recovery.unfinished(context.snapshot):
        run = context.run(subtask)
        await close_command(context, run.command_session, run.command_marker)
        facts = (
            await context.sessions.look(SessionId(run.session)) if recovery.needs_look(run) and run.session else None
        )
        found.append((run, facts))
    for worktree in await context.call(context.worktrees.left_pristine, context.graph_id):
        await context.call(context.worktrees.remove_pristine, worktree)
    integration = context.snapshot.summary.integration
    await close_command(context, integration.command_session, integration.command_marker)
    return found


async def integration_stands(context: Context) -> bool:
    """Whether the recorded integration's branch is at its commit and its worktree is in its place."""
    integration = context.snapshot.summary.integration
    refs = await context.call(context.worktrees.runtime_refs, context.graph_id)
    if integration.worktree is None or refs.get(branch_ref(context.graph_id, INTEGRATION_SLUG)) != integration.commit:
        return False
    return await context.call(context.worktrees.is_intact, integration.worktree) is None


async def close_command(context: Context, session: str | None, marker: str | None) -> None:
    """End what may live of a command Session; nothing when there was none or it ended."""
    if session is None:
        return
    facts = await context.sessions.look(SessionId(session))
    if facts.liveness in ("live", "unreachable"):
        await context.sessions.close(SessionId(session), graceful=False)
    elif facts.liveness == "lost" and marker:
        await context.sessions.end_strays([marker], [])
