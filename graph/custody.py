"""Run one of the Runtime's own commands (check, setup) under a host's custody and wait for its end.

The death of the host is nobody's verdict: the command is run again, as by a driver that finds what a dead one left.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import CommandStarting, IntegrationCommandStarting
from coordinate_agents.graph.overdue import HOST_BOUND_S
from coordinate_agents.graph.ports import Sessions
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.agent import CommandRequest
from coordinate_agents.sessions.errors import HostDiedError
from coordinate_agents.sessions.model import SessionEnd, SessionId
from coordinate_agents.worktrees.model import INTEGRATION_SLUG

# Somebody's kill -9 hits once; what dies again dies for a reason (no memory, say) that a third try would meet too.
_TRIES: Final = 2


async def run_command(
    context: Context, run: TaskRun, command: Sequence[str], *, name: str, path: str, timeout_s: float
) -> SessionEnd:
    """The end of the command, whose whole process tree has ended too. Cancelled: the tree is closed first.

    Raises: HostDiedError when every try lost its host.
    """
    try:
        return await _until_ended(context, run, command, name=name, path=path, timeout_s=timeout_s)
    finally:
        context.slots.give_back(run.id)


async def _until_ended(
    context: Context, run: TaskRun, command: Sequence[str], *, name: str, path: str, timeout_s: float
) -> SessionEnd:
    died = HostDiedError("SESSION_NOT_HEALTHY", f"The host of {name} was killed.")
    for _ in range(_TRIES):
        try:
            end = await _run_once(context, run, command, name=name, path=path, timeout_s=timeout_s)
        except HostDiedError as error:
            died = error
            continue
        if end.cause != "host-lost" or end.survivors:
            return end
        died = HostDiedError("SESSION_NOT_HEALTHY", f"The host of {name} was killed.", kept=end.log_path or None)
    raise died


async def wait_at_most(sessions: Sessions, session: SessionId, bound_s: float) -> SessionEnd:
    """The end of a command. One whose host let its time pass is closed from here, and has timed out all the same."""
    with anyio.move_on_after(bound_s):
        return await sessions.wait(session)
    await sessions.close(session, graceful=False)
    end = await sessions.wait(session)
    return replace(end, cause="timeout") if end.cause == "close" else end


async def _run_once(
    context: Context, run: TaskRun, command: Sequence[str], *, name: str, path: str, timeout_s: float
) -> SessionEnd:
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
        return await wait_at_most(context.sessions, session, timeout_s + HOST_BOUND_S)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await context.sessions.close(session, graceful=False)
        raise
