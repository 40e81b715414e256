"""Make the place where an agent works: the worktree, what is brought into it, and the setup commands."""

import re
from typing import Final

from coordinate_agents.graph.branches import restore_branch
from coordinate_agents.graph.cleaning import clear_place
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.custody import run_command
from coordinate_agents.graph.events import AttemptFailed, Event, Failure, SetupDone, WorktreeReady
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.shared import adopt_setup, quiet
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.text import counted, listed
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import CommitId, Worktree, branch_ref

# Worktrees share one configuration, and git does not wait for its lock: of two `sparse-checkout set` at once one fails.
_LOCKED: Final = re.compile(r"could not lock config file|failed to initialize worktree config")
_TRIES: Final = 4


async def create_worktree(context: Context, subtask: SubtaskId) -> Event | tuple[Event, ...]:
    """A new worktree on the Runtime's branch, or the kept one of an earlier attempt as it stands.

    One whose subtask begins afresh is cleared away before. Where nothing is to be set up, that is said with it.
    """
    made = await _make_worktree(context, subtask)
    if not isinstance(made, WorktreeReady) or _needs_setup(context, subtask, made.worktree):
        return made
    return made, _as_it_stands(context, subtask, made.worktree)


async def _make_worktree(context: Context, subtask: SubtaskId) -> Event:
    run = context.run(subtask)
    if run.is_fresh and run.worktree is not None:
        # What was there is recorded as set aside and removed, so that graph-undo knows of it.
        await clear_place(context, subtask)
        crash_point("worktree.cleared")
        run = context.run(subtask)
    assert run.base is not None
    if run.worktree is not None:
        return await _reuse(context, run, run.worktree)
    worktree = await context.call(
        context.worktrees.create,
        context.graph_id,
        slug(subtask),
        run.base,
        root=context.worktree_root,
        nonce=run.nonce,
        resume_from=await kept_tip(context, run),
        # One that was cleared away may have held nothing of its own that a pin could show.
        known_tip=run.removal.tip if run.removal is not None else None,
        frozen=context.frozen,
    )
    crash_point("worktree.created")
    return WorktreeReady(subtask, worktree)


async def _reuse(context: Context, run: TaskRun, worktree: Worktree) -> Event:
    """The kept worktree with whatever stands in it. A missing folder is laid out anew at the kept branch tip.

    A branch that somebody deleted comes back where it was.
    """
    if run.removing is not None:
        # A removal that was cut short is taken back, or finished where its files were deleted already.
        await context.call(context.worktrees.settle_removal, context.graph_id, slug(run.id), worktree)
    await restore_branch(context, run.id, run)
    damage = await context.call(context.worktrees.is_intact, worktree)
    if damage is None:
        return WorktreeReady(run.id, worktree, reused=True)
    if not context.worktrees.is_missing(worktree):
        failure = Failure(
            "WORKTREE_CONFLICT",
            f"worktree damaged: {damage}.",
            stage="worktree",
            kept=f"the folder {worktree.path} and branch {worktree.branch}",
            next=context.worktrees.mending(worktree, damage),
        )
        return AttemptFailed(run.id, failure, is_final=True)
    made = await context.call(
        context.worktrees.recreate,
        context.graph_id,
        slug(run.id),
        worktree,
        root=context.worktree_root,
        nonce=run.nonce,
        frozen=context.frozen,
    )
    return WorktreeReady(run.id, made)


async def kept_tip(context: Context, run: TaskRun) -> CommitId | None:
    """Where the new worktree of a subtask begins whose old one was removed: its branch. None: at its base."""
    if run.removal is None or run.is_fresh:
        return None
    branches = await context.call(context.worktrees.runtime_branches, context.graph_id)
    return branches.get(branch_ref(context.graph_id, slug(run.id)), run.removal.tip)


async def run_setup(context: Context, subtask: SubtaskId) -> Event:
    """Copy, link, run the setup commands, and note what they left. Tracked changes after it are SETUP_FAILED."""
    run, config = context.run(subtask), context.config
    worktree = run.worktree
    assert worktree is not None
    if not _needs_setup(context, subtask, worktree):
        return _as_it_stands(context, subtask, worktree)
    mark, before = quiet(context, subtask), await context.call(context.worktrees.shared_state)
    await bring_and_setup(context, run, worktree)
    crash_point("setup.done")
    worktree = await context.call(context.worktrees.note_cone, context.graph_id, slug(subtask), worktree)
    changed = await context.call(context.worktrees.tracked_changes, worktree, context.frozen)
    if changed:
        raise WorktreeError(
            "SETUP_FAILED",
            f"setup changed {counted(len(changed), 'tracked file')}: {listed(changed, first=5)}.",
            kept=worktree.path,
        )
    if config.setup:
        after = await context.call(context.worktrees.shared_state)
        adopt_setup(context, subtask, before=before, after=after, mark=mark)
    left = await context.call(context.worktrees.untracked, worktree, context.frozen)
    return SetupDone(subtask, left, worktree.cone)


def _as_it_stands(context: Context, subtask: SubtaskId, worktree: Worktree) -> SetupDone:
    """The end of a setup that need not be: what an earlier one left and narrowed holds."""
    return SetupDone(subtask, context.run(subtask).baseline, worktree.cone)


def _needs_setup(context: Context, subtask: SubtaskId, worktree: Worktree) -> bool:
    """Once in a worktree: after that an agent worked there, and what it left unsaved is not setup's."""
    config = context.config
    is_wanted = bool(config.setup or config.copy or config.link)
    return is_wanted and context.run(subtask).setup_nonce != worktree.nonce


async def bring_and_setup(context: Context, run: TaskRun, worktree: Worktree) -> None:
    """Raises: WorktreeError SETUP_FAILED with the command's tail."""
    config = context.config
    if config.copy or config.link:
        await context.call(context.worktrees.bring, worktree, copy=config.copy, link=config.link)
    for number, command in enumerate(config.setup):
        for _ in range(_TRIES):
            end = await run_command(
                context, run, command.run, name=f"setup{number}", path=worktree.path, timeout_s=command.timeout_s
            )
            if end.exit_code == 0 or _LOCKED.search(end.tail) is None:
                break
        if end.cause != "exit" or end.exit_code != 0:
            how = f"exit code {end.exit_code}" if end.cause == "exit" else end.cause
            raise WorktreeError(
                "SETUP_FAILED",
                f"setup command {' '.join(command.run)} ended with {how}: {last_line(end.tail)}",
                kept=f"{worktree.path}; its output is in {end.log_path}",
            )


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "(no output)"
