"""Merge the verified commits, publish the integration branch, and check the merged tree.

The merge happens in the judge repository and moves no ref. The branch moves by compare-and-swap only after the merge
succeeded; checks run in the integration's own worktree, which the Runtime made.
"""

from coordinate_agents.graph.checking import run_at
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.events import (
    Event,
    Failure,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    IntegrationMerged,
)
from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.model import Check, SubtaskId
from coordinate_agents.graph.preparing import bring_and_setup
from coordinate_agents.graph.shared import record_shared
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, MergeConflict, Merged, branch_ref


async def merge_heads(context: Context) -> Event:
    """Refused while the shared git state stands changed; a conflict is a fact with subtasks and paths."""
    summary = context.snapshot.summary
    record_shared(context, await context.call(context.worktrees.shared_state))
    changes = context.snapshot.summary.shared_changes
    if changes:
        return IntegrationFailed(_shared_failure(context, changes))
    assert summary.base is not None
    made = await context.call(context.worktrees.integrate, context.graph_id, summary.base, summary.integration.heads)
    crash_point("integration.merged")
    match made:
        case MergeConflict(pair=pair, paths=paths, applied=applied):
            return IntegrationConflicted(pair, paths[:50], applied)
        case Merged(commit=commit, tree=tree, merged=merged):
            refs = await context.call(context.worktrees.runtime_refs, context.graph_id)
            expected = refs.get(branch_ref(context.graph_id, INTEGRATION_SLUG))
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
    if checks:
        await bring_and_setup(context, run, integration.worktree)
    for check in checks:
        outcomes.append(await _check(context, run, check, outcomes))
    failed = next((each for each in outcomes if each.outcome != "passed"), None)
    failure = _check_failure(context, failed) if failed else None
    return IntegrationJudged(integration.commit, failed is None, tuple(outcomes), failure)


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


def integration_failed(error: WorktreeError | SessionError) -> IntegrationFailed:
    return IntegrationFailed(
        Failure(
            error.code, error.message, stage="integrate", kept=error.kept or "every verified commit", next=error.next
        )
    )
