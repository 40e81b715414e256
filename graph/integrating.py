"""Merge the verified commits, publish the integration branch, and check the merged tree.

The merge happens in the judge repository and moves no ref. A conflict is laid out in the integration's worktree, in the
middle of the merge that stops. The branch moves by compare-and-swap; checks run in that worktree, which the Runtime
made.
"""

import shlex
from dataclasses import replace
from typing import Final

from coordinate_agents.graph.branches import gone_commit
from coordinate_agents.graph.checking import run_at
from coordinate_agents.graph.conflicts import PROGRAM
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import (
    Event,
    Failure,
    IntegrationAborted,
    IntegrationAborting,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    IntegrationMerged,
)
from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.model import Check, CommitId, SubtaskId
from coordinate_agents.graph.preparing import bring_and_setup
from coordinate_agents.graph.resolving import record_end, resolutions_of, take_back
from coordinate_agents.graph.shared import record_shared
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.text import listed
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import (
    INTEGRATION_SLUG,
    FinishedMerge,
    Head,
    MergeConflict,
    Merged,
    MergeEnding,
    Worktree,
    branch_ref,
)

# Names that one event holds; a worktree with more of them stays until a person discards it.
_MAX_LEFT: Final = 500


async def merge_heads(context: Context) -> Event:
    """Refused while the shared git state stands changed; a conflict is a fact with subtasks and paths."""
    summary = context.snapshot.summary
    record_shared(context, await context.call(context.worktrees.shared_state))
    changes = context.snapshot.summary.shared_changes
    if changes:
        return IntegrationFailed(_shared_failure(context, changes))
    integration = summary.integration
    start = integration.onto or summary.base
    assert start is not None
    await _set_back_branch(context, integration.worktree, integration.commit or start)
    try:
        made = await context.call(
            context.worktrees.integrate,
            context.graph_id,
            start,
            integration.heads,
            resolutions=resolutions_of(context),
        )
    except WorktreeError as error:
        raise await context.call(gone_commit, context, integration.heads) or error from None
    crash_point("integration.merged")
    match made:
        case MergeConflict():
            return await _stop_in_conflict(context, named_onto(made, start, integration.onto_name), start)
        case Merged(commit=commit, tree=tree, merged=merged):
            branches = await context.call(context.worktrees.runtime_branches, context.graph_id)
            expected = branches.get(branch_ref(context.graph_id, INTEGRATION_SLUG))
            worktree = await context.call(
                context.worktrees.publish_integration,
                context.graph_id,
                commit,
                expected=expected,
                root=context.worktree_root,
                frozen=context.frozen,
            )
            crash_point("integration.published")
            return IntegrationMerged(commit, tree, worktree, merged)


async def _set_back_branch(context: Context, worktree: Worktree | None, commit: CommitId) -> None:
    """The branch that somebody deleted below its worktree, from the record: there it is nobody's work that is lost.

    Files that differ from the commit are seen afterwards as what they are, changes that nobody committed.
    """
    if worktree is None or await context.call(context.worktrees.is_missing, worktree):
        return
    name = branch_ref(context.graph_id, INTEGRATION_SLUG)
    branches = await context.call(context.worktrees.runtime_branches, context.graph_id)
    if name not in branches:
        await context.call(context.worktrees.restore_refs, {name: commit})


async def _stop_in_conflict(context: Context, conflict: MergeConflict, start: CommitId) -> IntegrationConflicted:
    """Leave the integration's worktree in the middle of the merge, with what was applied before it."""
    worktree = await context.call(
        context.worktrees.open_merge,
        context.graph_id,
        INTEGRATION_SLUG,
        start,
        conflict,
        root=context.worktree_root,
        frozen=context.frozen,
    )
    crash_point("integration.conflicted")
    return IntegrationConflicted(
        conflict.pair, conflict.paths[:50], conflict.applied, conflict.ours, conflict.theirs, worktree
    )


async def end_conflict(context: Context, ending: MergeEnding, *, who: str) -> FinishedMerge | None:
    """Take what a person did in the integration's worktree as the merge of its two sides; None: nothing new is there.

    After a conflict it is the end of the merge; after failed checks a merge commit that was amended. Only records: the
    next integration uses it. Raises: GraphError TASK_STATE_CONFLICT, WorktreeError saying what is missing.
    """
    integration = context.snapshot.summary.integration
    worktree, commit = integration.worktree, integration.commit
    if worktree is not None and await context.call(context.worktrees.is_missing, worktree):
        return None  # it is made again, and so is the conflict
    if integration.state == "conflict" and worktree is not None:
        return await record_end(context, worktree, (integration.ours, integration.theirs), ending, who=who)
    if integration.state != "failed" or worktree is None or commit is None:
        return None
    if await context.call(context.worktrees.head_of, worktree) == commit:
        await _require_unchanged(context, worktree)
        return None
    sides = await context.call(context.worktrees.parents_of, commit)
    if len(sides) != 2:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            "The integration is one subtask's commit and no merge, so a change by hand has no place in it.",
            kept=f"everything in {worktree.path}",
            next=f"{PROGRAM} graph-integrate {context.graph_id} --abort",
            stage="integrate",
            facts={"taskId": context.graph_id},
        )
    return await record_end(context, worktree, (sides[0], sides[1]), ending, who=who)


async def _require_unchanged(context: Context, worktree: Worktree) -> None:
    """Raise DIRTY_WORKTREE when somebody changed files there without committing: that is no merge yet."""
    changed = await context.call(context.worktrees.tracked_changes, worktree, context.frozen)
    if changed:
        raise GraphError(
            "DIRTY_WORKTREE",
            f"The integration in {worktree.path} has changes that are in no commit: {listed(changed, first=5)}.",
            kept="everything in it",
            next=f"git -C {shlex.quote(worktree.path)} commit --amend -a",
            stage="integrate",
            facts={"taskId": context.graph_id},
        )


async def give_up_integration(context: Context, *, who: str) -> CommitId | None:
    """Take the integration's worktree back to the last good state; what keeps everything that stood in it, if any did.

    Nothing is done when it stands there already.

    Raises: GraphError TASK_STATE_CONFLICT when there is nothing to give up; WorktreeError.
    """
    summary = context.snapshot.summary
    integration, worktree = summary.integration, summary.integration.worktree
    if worktree is not None and integration.state in ("none", "integrated") and not integration.is_aborting:
        return None
    if worktree is None or not (integration.state in ("conflict", "failed") or integration.is_aborting):
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Graph {context.graph_id} has no integration that could be given up: it is {integration.state}.",
            kept="everything as it is",
            next=f"{PROGRAM} graph-status {context.graph_id}",
            stage="integrate",
            facts={"taskId": context.graph_id},
        )
    target = integration.good.commit if integration.good else integration.onto or summary.base
    assert target is not None
    if not integration.is_aborting:
        context.record(IntegrationAborting(target, who=who))
    await _set_back_branch(context, worktree, integration.commit or integration.ours or target)
    kept = await take_back(context, INTEGRATION_SLUG, worktree, target)
    crash_point("integration.kept")
    context.record(IntegrationAborted(kept))
    return kept


def named_onto(conflict: MergeConflict, start: CommitId, name: str) -> MergeConflict:
    """The conflict with the commit that was merged onto under the name that the person gave."""
    if not name:
        return conflict
    applied = tuple(Head(name, head.commit) if head.commit == start else head for head in conflict.applied)
    pair = conflict.pair
    if any(head.name == pair[0] and head.commit == start for head in conflict.applied):
        pair = (name, pair[1])
    return replace(conflict, pair=pair, applied=applied)


async def check_integration(context: Context) -> Event:
    """Setup and every check of the graph on the merged tree; subtasks' own checks ran on their commits."""
    integration = context.snapshot.summary.integration
    assert integration.worktree is not None and integration.commit is not None
    graph = context.snapshot.graph
    run = TaskRun(
        SubtaskId(INTEGRATION_SLUG), attempt=1, base=context.snapshot.summary.base, worktree=integration.worktree
    )
    checks = (*graph.checks, *graph.integration_checks)
    outcomes: list[CheckOutcome] = []
    before: frozenset[str] = frozenset()
    if checks:
        # What stands there already may be a person's, who commits in this worktree.
        before = frozenset(await context.call(context.worktrees.untracked, integration.worktree, context.frozen))
        await bring_and_setup(context, run, integration.worktree)
    for check in checks:
        outcomes.append(await _check(context, run, check, outcomes))
    failed = next((each for each in outcomes if each.outcome != "passed"), None)
    failure = _check_failure(context, failed) if failed else None
    left: tuple[str, ...] = ()
    worktree = integration.worktree
    if checks:
        worktree = await context.call(context.worktrees.note_cone, context.graph_id, INTEGRATION_SLUG, worktree)
        after = await context.call(context.worktrees.untracked, integration.worktree, context.frozen)
        left = tuple(sorted(set(after) - before))[:_MAX_LEFT]
    return IntegrationJudged(integration.commit, failed is None, tuple(outcomes), failure, left, worktree.cone)


async def _check(context: Context, run: TaskRun, check: Check, before: list[CheckOutcome]) -> CheckOutcome:
    integration = context.snapshot.summary.integration
    if before and before[-1].outcome != "passed":
        return CheckOutcome(check.name, check.run, "not-run", commit=integration.commit, tree=integration.tree)
    assert integration.worktree is not None
    async with context.tokens(f"{INTEGRATION_SLUG}:check", check.needs, None), context.checks:
        return await run_at(
            context, run, check, integration.worktree.path, integration.commit, integration.tree, "integration"
        )


def _check_failure(context: Context, failed: CheckOutcome) -> Failure:
    names = ", ".join(head.name for head in context.snapshot.summary.integration.heads[:8])
    return Failure(
        "CHECK_FAILED",
        f"check {failed.name} {failed.outcome} on the merged tree of {names}; each passed alone.",
        stage="integrate",
        check=failed.name,
        exit_code=failed.exit_code,
        signal=failed.signal,
        tail=failed.tail,
        log_path=failed.log_path,
        kept="the integration branch and worktree, and every verified commit",
        next=f"coordinate-agents graph-inspect {context.graph_id} --part failure",
    )


def _shared_failure(context: Context, changes: tuple[str, ...]) -> Failure:
    return Failure(
        "SHARED_STATE_CHANGED",
        f"the shared git state changed since the run started: {'; '.join(changes[:5])}.",
        stage="integrate",
        kept="every verified commit",
        next=f"coordinate-agents graph-inspect {context.graph_id}",
    )


def integration_failed(context: Context, error: WorktreeError | SessionError) -> IntegrationFailed:
    following = error.next
    if error.code == "DIRTY_WORKTREE":
        # Giving up keeps everything that stands there, whoever made it.
        following = f"{PROGRAM} graph-integrate {context.graph_id} --abort"
    return IntegrationFailed(
        Failure(
            error.code, error.message, stage="integrate", kept=error.kept or "every verified commit", next=following
        )
    )
