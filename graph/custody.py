"""Run one of the Runtime's own commands (check, setup) under a host's custody and wait for its end."""

from collections.abc import Sequence

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import CommandStarting, IntegrationCommandStarting
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import CommandRequest, SessionEnd, SessionId
from coordinate_agents.worktrees.model import INTEGRATION_SLUG


async def run_command(
    context: Context, run: TaskRun, command: Sequence[str], *, name: str, path: str, timeout_s: float
) -> SessionEnd:
    """The end of the command, whose whole process tree has ended too. Cancelled: the tree is closed first."""
    marker = context.new_nonce()
    session = SessionId(f"{context.session_id(run, run.turn)}.{name}.{marker[:8]}")
    if run.id == INTEGRATION_SLUG:
        context.record(IntegrationCommandStarting(session, marker, name))
    else:
        context.record(CommandStarting(run.id, session, marker, name))
    launch = await context.call(
        context.agents.command,
        CommandRequest(
            session_id=session,
            run=tuple(command),
            cwd=path,
            identity=context.identity(run, path=path),
            marker=marker,
            timeout_s=timeout_s,
        ),
    )
    try:
        await context.sessions.start(launch)
        return await context.sessions.wait(session)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await context.sessions.close(session, graceful=False)
        raise
