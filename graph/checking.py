"""Run checks on one commit: one after another for a subtask, bounded over all subtasks by `maxChecks`.

A check runs in the agent's worktree, or in a fresh checkout of the commit: when it asks for that, or when the subtask
changed a path that the check protects (those are set back to the base there first).
"""

from collections.abc import Collection, Sequence
from typing import Literal

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.custody import run_command
from coordinate_agents.graph.events import CheckEnded
from coordinate_agents.graph.evidence import CheckOutcome, changed_paths
from coordinate_agents.graph.model import Check, CommitId, slug
from coordinate_agents.graph.preparing import bring_and_setup
from coordinate_agents.graph.scope import matches, parse_pattern
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.errors import HostDiedError, SessionError
from coordinate_agents.sessions.model import SessionEnd
from coordinate_agents.worktrees.model import Examination, Worktree

# An event holds at most 8 KiB with the failing check's tail in it twice.
_TAIL = 1500


async def run_checks(
    context: Context, run: TaskRun, checks: Sequence[Check], seen: Examination, *, waived: Collection[str] = ()
) -> tuple[CheckOutcome, ...]:
    """The outcomes in order. The first that does not pass and is not waived ends the series; the rest are "not-run"."""
    assert seen.head is not None
    outcomes: list[CheckOutcome] = []
    for check in checks:
        last = outcomes[-1] if outcomes else None
        if last is not None and last.outcome != "passed" and last.name not in waived:
            outcomes.append(CheckOutcome(check.name, check.run, "not-run", commit=seen.head, tree=seen.tree))
            continue
        async with context.tokens(f"{run.id}:check", check.needs, run.id), context.checks:
            outcome = await _run_check(context, run, check, seen)
        crash_point("check.ended")
        context.record(CheckEnded(run.id, CommitId(seen.head), outcome))
        outcomes.append(outcome)
    return tuple(outcomes)


async def _run_check(context: Context, run: TaskRun, check: Check, seen: Examination) -> CheckOutcome:
    protected = protected_paths(check, seen)
    if check.check_in == "pristine" or protected:
        return await _run_pristine(context, run, check, seen, protected)
    assert run.worktree is not None
    return await run_at(context, run, check, run.worktree.path, seen.head, seen.tree, "worktree")


def protected_paths(check: Check, seen: Examination) -> tuple[str, ...]:
    """The changed paths that the check protects."""
    patterns = [parse_pattern(text) for text in check.protect]
    return tuple(path for path in changed_paths(seen.changed) if any(matches(each, path) for each in patterns))


async def _run_pristine(
    context: Context, run: TaskRun, check: Check, seen: Examination, protected: Sequence[str]
) -> CheckOutcome:
    worktrees = context.worktrees
    assert seen.head is not None and run.base is not None
    place: Worktree = await context.call(
        worktrees.pristine,
        context.graph_id,
        slug(run.id),
        seen.head,
        root=context.worktree_root,
        frozen=context.frozen,
    )
    try:
        if protected:
            await context.call(worktrees.restore_paths, place, run.base, protected, frozen=context.frozen)
        await bring_and_setup(context, run, place)
        return await run_at(context, run, check, place.path, seen.head, seen.tree, "pristine")
    finally:
        with anyio.CancelScope(shield=True):
            await context.call(worktrees.remove_pristine, place)


async def run_at(
    context: Context,
    run: TaskRun,
    check: Check,
    path: str,
    commit: str | None,
    tree: str | None,
    checked_in: Literal["worktree", "pristine", "integration"],
) -> CheckOutcome:
    """Run the command at the path. A command that cannot be started is the outcome "error", with the reason."""
    try:
        end = await run_command(
            context, run, check.run, name=f"check-{_safe(check.name)}", path=path, timeout_s=check.timeout_s
        )
    except HostDiedError:
        raise
    except SessionError as error:
        return CheckOutcome(
            check.name, check.run, "error", tail=error.message[:_TAIL], commit=commit, tree=tree, checked_in=checked_in
        )
    return CheckOutcome(
        check.name,
        check.run,
        _outcome(end),
        exit_code=end.exit_code,
        signal=end.signal,
        duration_ms=end.duration_ms,
        log_path=end.log_path,
        tail=(end.error or end.tail)[-_TAIL:],
        commit=commit,
        tree=tree,
        checked_in=checked_in,
    )


def _outcome(end: SessionEnd) -> Literal["passed", "failed", "timed-out", "error"]:
    if end.cause == "exit":
        return "passed" if end.exit_code == 0 else "failed"
    return "timed-out" if end.cause in ("timeout", "idle") else "error"


def _safe(name: str) -> str:
    """A part of a Session id."""
    return "".join(letter if letter.isalnum() else "-" for letter in name if letter.isascii())[:32]
