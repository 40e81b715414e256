"""Verify one subtask: commit what the turn left, establish the eight facts in order, and judge.

The agent has ended before this starts, or stays and is idle. Head is read once by the examination; every later step
is about that hash, and the verdict names it. Nothing is decided here: `evidence` judges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from coordinate_agents.graph import evidence
from coordinate_agents.graph.certifying import certificate_text
from coordinate_agents.graph.checking import run_checks
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.effects import Verify
from coordinate_agents.graph.events import (
    BaselineExtended,
    CommitMade,
    Event,
    EvidenceSummary,
    FactsRecorded,
    Failure,
    TaskJudged,
    VerificationStarted,
)
from coordinate_agents.graph.evidence import CheckOutcome, Fact, SharedFacts
from coordinate_agents.graph.examining import examine_request
from coordinate_agents.graph.model import Check, CommitId, SubtaskId, Task, slug
from coordinate_agents.graph.prompting import commit_by_of
from coordinate_agents.graph.scope import outside
from coordinate_agents.graph.shared import record_shared, repair_refs
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.turns import resolve_agent, takes_turn
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import CommitRequest, Examination, SharedState, branch_name

_PATHS_SHOWN = 20
# An agent that moves things each time its work is looked at is refused for that.
MAX_LOOKS: Final = 3


async def verify(context: Context, effect: Verify) -> tuple[Event, ...]:
    """TaskJudged about the head that was read; with it the facts, where nothing was waited for in between."""
    subtask = effect.subtask
    if effect.by != "check":
        context.record(VerificationStarted(subtask, effect.by))
    for again in range(MAX_LOOKS - 1, -1, -1):
        events, has_moved = await _look(context, subtask)
        # An agent that stayed is idle, but nothing holds it: what it moved meanwhile is looked at anew.
        if not (has_moved and again and context.run(subtask).open_session):
            break
        for event in events[:-1]:
            context.record(event)
    return events


async def _look(context: Context, subtask: SubtaskId) -> tuple[tuple[Event, ...], bool]:
    """One verification, what of it is still to be recorded, and whether something moved while it ran."""
    not_committed: str | None = None
    # A person who asks has committed what is to count; what lies beside it may be half done.
    if context.run(subtask).verified_by != "check":
        not_committed = await _commit_leftovers(context, subtask)
    crash_point("verify.committed")
    run, task = context.run(subtask), context.task(subtask)
    assert run.base is not None
    shared, found, seen = await context.call(_survey, context, run)
    record_shared(context, shared)
    blamed = await repair_refs(context, subtask, found)
    facts = evidence.facts_of(
        task,
        seen,
        base=run.base,
        branch=branch_name(context.graph_id, slug(subtask)),
        scope_policy=context.snapshot.graph.scope_policy,
        copied=context.config.copy,
        shared=SharedFacts(restored=blamed, dangerous=context.snapshot.summary.shared_changes[:_PATHS_SHOWN]),
        # A person who asks for a look may find that nothing needs to change.
        reviewed=run.reviewed_commit if run.review and run.verified_by != "check" else None,
    )
    recorded: Event = FactsRecorded(subtask, seen.head, tuple(_told(fact) for fact in facts))
    waived = evidence.waived_by(run.waivers)
    has_failed = any(fact.outcome == "failed" and not waived.covers(fact) for fact in facts)
    asked = checks_of(context, task) if seen.head is not None and not has_failed else ()
    if asked:  # whoever looks while they run sees the facts
        context.record(recorded)
    crash_point("verify.facts")
    checks: tuple[CheckOutcome, ...] = ()
    try:
        if seen.head is not None and not has_failed:
            checks = await run_checks(context, run, asked, seen, waived=waived.checks)
            judged = evidence.check_fact(checks, waived.checks, commit=seen.head)
            facts = (*facts, judged, await _reread(context, run, seen, checks))
        verdict = _with_review(run, seen, evidence.judge(facts, waived.facts, commit=seen.head))
        if not_committed and not verdict.accepted:
            verdict = replace(verdict, reasons=(*verdict.reasons, f"the Runtime did not commit: {not_committed}"))
        has_moved = any(fact.number == 8 and fact.outcome == "failed" for fact in facts)
        end = await _judged(context, run, task, seen, checks, verdict)
    except (WorktreeError, SessionError, OSError):
        if not asked:  # the attempt fails for that; what was found is told all the same
            context.record(recorded)
        raise
    return ((end,) if asked else (recorded, end)), has_moved


def _with_review(run: TaskRun, seen: Examination, verdict: evidence.Verdict) -> evidence.Verdict:
    """Where no change was needed after a review asked for some, the next review sees it."""
    if not run.review or seen.head != run.reviewed_commit:
        return verdict
    return replace(verdict, warnings=(*verdict.warnings, "nothing changed since a review asked for changes"))


def _survey(context: Context, run: TaskRun) -> tuple[SharedState, Mapping[str, CommitId], Examination]:
    """Shared state, Runtime branches and the worktree, in one worker thread."""
    worktrees = context.worktrees
    shared, branches = worktrees.shared_state(), worktrees.runtime_branches(context.graph_id)
    return shared, branches, worktrees.examine(examine_request(context, run))


def checks_of(context: Context, task: Task) -> tuple[Check, ...]:
    """The graph's checks, then the subtask's own. A subtask that commits nothing has nothing new to check."""
    return (*context.snapshot.graph.checks, *task.checks)


async def _commit_leftovers(context: Context, subtask: SubtaskId) -> str | None:
    """Commit for an agent who leaves that to the Runtime. Why nothing could be committed; None when something could."""
    run, task = context.run(subtask), context.task(subtask)
    assert run.worktree is not None
    agent = resolve_agent(context, run)
    by = commit_by_of(context, run, agent.commit_by)
    if by == "agent" or task.expect == "nothing":
        return None
    request = CommitRequest(
        worktree=run.worktree,
        frozen=context.frozen,
        subject=task.title,
        trailers=(
            ("Coordinate-Agents-Graph", context.graph_id),
            ("Coordinate-Agents-Subtask", subtask),
            ("Coordinate-Agents-Attempt", str(run.attempt)),
            ("Coordinate-Agents-Agent", run.agent or ""),
        ),
        baseline=run.baseline,
        leave_out=context.config.copy,
    )
    made = await context.call(context.worktrees.commit_leftovers, request)
    if made.commit is not None and made.commit != run.head:
        left = tuple(f"{path}: {why}" for path, why in made.left_out[:_PATHS_SHOWN])
        context.record(CommitMade(subtask, CommitId(made.commit), left))
    return made.refused


async def _reread(context: Context, run: TaskRun, seen: Examination, checks: Sequence[CheckOutcome]) -> Fact:
    """Fact 8. Untracked files that appeared while checks ran are theirs, and part of the baseline from now on.

    Without checks, and with an agent that had ended, nothing ran since the examination: only head is read again.
    """
    if not checks and run.worktree is not None and run.open_session is None:
        return evidence.reread_fact(seen.head, context.worktrees.head_of(run.worktree))
    head, dirty = await context.call(context.worktrees.reread, examine_request(context, run))
    in_worktree = [check.name for check in checks if check.checked_in == "worktree"]
    if dirty and in_worktree and run.worktree is not None:
        left = await context.call(context.worktrees.untracked, run.worktree, context.frozen)
        new = tuple(sorted(set(left) - set(run.baseline)))
        if new:
            context.record(BaselineExtended(run.id, new[:500]))
    return evidence.reread_fact(seen.head, head, dirty, checks_in_worktree=in_worktree)


async def _judged(
    context: Context,
    run: TaskRun,
    task: Task,
    seen: Examination,
    checks: tuple[CheckOutcome, ...],
    verdict: evidence.Verdict,
) -> Event:
    used = evidence.used_waivers(run.waivers, verdict, checks)
    summary = _summary(run, task, seen, checks, verdict, used)
    head = CommitId(seen.head) if seen.head is not None else None
    if run.worktree is not None and (seen.stray_commits or not verdict.accepted):
        await context.call(context.worktrees.keep, context.graph_id, slug(run.id), run.worktree)
    if not verdict.accepted:
        failure = _failure(context, run, checks, verdict)
        is_asked = run.verified_by == "check"  # no turn follows, whatever its agent could do
        continues = not is_asked and await takes_turn(context, run, resolve_agent(context, run))
        return TaskJudged(run.id, False, head, summary, failure=failure, can_continue=continues)
    assert head is not None
    text = certificate_text(context, run, seen, checks, verdict, used)
    certificate = await context.call(_pin_and_store, context, run.id, head, text)
    return TaskJudged(run.id, True, head, summary, certificate=certificate)


def _pin_and_store(context: Context, subtask: SubtaskId, head: CommitId, text: bytes) -> str:
    """Pin the verified commit and put its certificate on the disk, in one worker thread; the certificate's digest."""
    context.worktrees.pin(context.graph_id, slug(subtask), "verified", head)
    crash_point("verify.pinned")
    digest = context.blobs.put(text, durable=True)
    crash_point("verify.certified")
    return digest


def _summary(
    run: TaskRun,
    task: Task,
    seen: Examination,
    checks: tuple[CheckOutcome, ...],
    verdict: evidence.Verdict,
    waivers: tuple[evidence.Waiver, ...],
) -> EvidenceSummary:
    paths = evidence.changed_paths(seen.changed)
    strays = outside(paths, task.writes) if task.writes is not None else ()
    return EvidenceSummary(
        commit=CommitId(seen.head) if seen.head else None,
        base=run.base or CommitId(""),
        paths_count=len(paths),
        paths_first=paths[:_PATHS_SHOWN],
        checks=checks,
        outside_scope=strays[:_PATHS_SHOWN],
        warnings=verdict.warnings[:10],
        reasons=verdict.reasons[:20],
        waivers=waivers,
    )


def _failure(context: Context, run: TaskRun, checks: Sequence[CheckOutcome], verdict: evidence.Verdict) -> Failure:
    first = next((check for check in checks if check.outcome != "passed"), None)
    failed_check = first if verdict.code == "CHECK_FAILED" else None
    return Failure(
        verdict.code or "EVIDENCE_REJECTED",
        "; ".join(verdict.reasons)[:2000],
        stage="verify",
        check=failed_check.name if failed_check else None,
        exit_code=failed_check.exit_code if failed_check else None,
        signal=failed_check.signal if failed_check else None,
        tail=failed_check.tail if failed_check else "",
        log_path=failed_check.log_path if failed_check else None,
        kept=f"worktree {run.worktree.path} and branch {run.worktree.branch}" if run.worktree else None,
        next=f"coordinate-agents graph-inspect {context.graph_id} {run.id} --part failure",
    )


def _told(fact: Fact) -> str:
    return f"{fact.number} {fact.name}: {fact.outcome}: {fact.message}"[:500]
