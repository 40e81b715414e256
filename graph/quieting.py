"""Make a worktree quiet before it goes: its services are taken down, and the Session of its agent is closed.

A teardown command runs in the worktree under a host's custody, bounded and recorded, as setup did. One that fails keeps
the worktree: what it was to take down may still use it. A terminal that a person opened there is never closed.
"""

from collections.abc import Sequence

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.custody import run_command
from coordinate_agents.graph.events import TeardownEnded
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.observe import close_command
from coordinate_agents.graph.opened import open_in
from coordinate_agents.graph.removal import Item, refused_item
from coordinate_agents.graph.runs import Integration, TaskRun
from coordinate_agents.graph.staying import close_open
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.worktrees.model import Refused, Worktree


async def make_quiet(
    context: Context,
    subtask: SubtaskId,
    owner: TaskRun | Integration,
    worktree: Worktree,
    *,
    is_there: bool,
    goes_on: bool,
) -> Item | None:
    """Run the teardown commands and close the owned Session; the item when the worktree stays because of them.

    `is_there`: it has a folder to run them in. `goes_on`: whatever a command says.
    """
    await close_command(context, owner.command_session, owner.command_marker)
    opened = await open_in(context, subtask)
    if opened is not None:
        said = f"Session {opened}, which a person opened, lives in it"
        refused = Refused("in-use", said, f"coordinate-agents session-close {opened}")
        return refused_item(context.graph_id, subtask, worktree, refused)
    if is_there:
        failed = await _teardown(context, subtask, owner, worktree)
        if failed is not None and not goes_on:
            return failed
    survivors = await _close(context, owner) if isinstance(owner, TaskRun) else ()
    if not survivors:
        return None
    said = f"processes of its Session live on: {', '.join(survivors[:5])}"
    refused = Refused("in-use", said, f"kill {survivors[0].split()[0]}")
    return refused_item(context.graph_id, subtask, worktree, refused)


async def _teardown(
    context: Context, subtask: SubtaskId, owner: TaskRun | Integration, worktree: Worktree
) -> Item | None:
    if not context.config.teardown:
        return None
    # One worktree after the other: what they take down may be shared.
    async with context.teardown:
        return await _run_teardown(context, subtask, owner, worktree)


async def _run_teardown(
    context: Context, subtask: SubtaskId, owner: TaskRun | Integration, worktree: Worktree
) -> Item | None:
    run = owner if isinstance(owner, TaskRun) else TaskRun(subtask, attempt=1, worktree=worktree)
    for number, command in enumerate(context.config.teardown):
        name = f"teardown{number}"
        end = await run_command(context, run, command.run, name=name, path=worktree.path, timeout_s=command.timeout_s)
        context.record(TeardownEnded(subtask, name, end.cause, end.exit_code, end.log_path))
        if end.cause == "exit" and end.exit_code == 0:
            continue
        how = f"exit code {end.exit_code}" if end.cause == "exit" else end.cause
        said = f"teardown command {' '.join(command.run)} ended with {how}; its output is in {end.log_path}"
        following = f"coordinate-agents graph-cleanup {context.graph_id} --discard {subtask}"
        refused = Refused("foreign", said, following)
        return refused_item(context.graph_id, subtask, worktree, refused, reason="teardown")
    return None


async def _close(context: Context, run: TaskRun) -> Sequence[str]:
    """Close the Session that stayed open, or what is left of one whose host is gone; what survives."""
    if run.open_session is not None:
        return await close_open(context, run.id, "its worktree is removed")
    if run.session is None:
        return ()
    facts = await context.sessions.look(SessionId(run.session))
    if facts.liveness in ("absent", "foreign", "ended"):
        return facts.survivors
    return await context.turns.dispose_session(SessionId(run.session))
