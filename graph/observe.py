"""Look at the world as it is, before a driver goes on with what another one left. Changes no record."""

from collections.abc import Mapping, Sequence
from typing import Literal

from coordinate_agents.graph import recovery
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import Liveness, SessionFacts, SessionId
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, branch_ref
from coordinate_agents.worktrees.values import value_class


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


@value_class
class Standing:
    """Where one subtask's things are now, whatever the record says. `problems`: what is not as it was recorded."""

    subtask: SubtaskId
    session: str | None
    liveness: Liveness | None
    worktree: Literal["intact", "missing", "damaged"] | None
    branch_at: CommitId | None
    problems: tuple[str, ...]


async def look_at_standing(context: Context, runs: Sequence[TaskRun]) -> tuple[Standing, ...]:
    """Sessions, worktrees, branches and verified commits of these subtasks, in their order. Never started: left out."""
    branches = await context.call(context.worktrees.runtime_branches, context.graph_id)
    return tuple([await _standing(context, run, branches) for run in runs if run.attempt])


async def _standing(context: Context, run: TaskRun, branches: Mapping[str, CommitId]) -> Standing:
    liveness: Liveness | None = None
    if run.session is not None:
        liveness = (await context.sessions.look(SessionId(run.session))).liveness
    problems: list[str] = []
    branch_at = branches.get(branch_ref(context.graph_id, slug(run.id)))
    place: Literal["intact", "missing", "damaged"] | None = None
    if run.worktree is not None:
        damage = await context.call(context.worktrees.is_intact, run.worktree)
        is_missing = context.worktrees.is_missing(run.worktree)
        place = "missing" if is_missing else "damaged" if damage else "intact"
        if damage is not None:
            problems.append(f"worktree {run.worktree.path}: {'gone' if is_missing else damage}")
        if branch_at is None:
            problems.append(f"branch {run.worktree.branch} is gone")
    if run.verified_commit is not None:
        if await context.call(context.worktrees.is_gone, run.verified_commit):
            problems.append(f"verified commit {run.verified_commit} is gone")
        elif branch_at is not None and branch_at != run.verified_commit:
            problems.append(f"branch is at {branch_at[:12]}, verified is {run.verified_commit[:12]}")
    return Standing(run.id, run.session, liveness, place, branch_at, tuple(problems))


async def integration_stands(context: Context) -> bool:
    """Whether the recorded integration's branch is at its commit and its worktree is in its place."""
    integration = context.snapshot.summary.integration
    branches = await context.call(context.worktrees.runtime_branches, context.graph_id)
    if (
        integration.worktree is None
        or branches.get(branch_ref(context.graph_id, INTEGRATION_SLUG)) != integration.commit
    ):
        return False
    return await context.call(context.worktrees.is_intact, integration.worktree) is None


async def close_command(context: Context, session: str | None, marker: str | None) -> None:
    """End what may live of a command Session; nothing when there was none or it ended."""
    if session is None:
        return
    facts = await context.sessions.look(SessionId(session))
    if facts.liveness == "lost" and marker:
        await context.sessions.end_strays([marker], [])
    if facts.liveness in ("live", "unreachable", "lost"):  # a lost one gets its end recorded, and nothing of it stays
        await context.sessions.close(SessionId(session), graceful=False)
