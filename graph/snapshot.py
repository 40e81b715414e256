"""One graph's state at one point of its log: the fold of its events.

`TaskRun` and `GraphSummary` are frozen; `Snapshot` is the fold's accumulator and the one mutable value of the core: an
event replaces one run or the summary, so that a transition costs the same in a graph of ten and of a hundred thousand
subtasks. `fold` only records what an event says; whether the event was legal and what follows from it stand in
`machine`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseConflicted,
    BaseFixed,
    BaselineExtended,
    BranchDelivered,
    CheckEnded,
    CommandStarting,
    CommitMade,
    ConflictClosed,
    ConflictOpened,
    ConflictOpening,
    ConflictWorktreeRemoved,
    DriveEnded,
    DriveStarted,
    Event,
    FactsRecorded,
    GraphAmended,
    GraphCreated,
    GraphForgotten,
    IntegrationAborted,
    IntegrationAborting,
    IntegrationCommandStarting,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    IntegrationMerged,
    IntegrationStarted,
    PhaseChanged,
    RemovalEvent,
    ResolutionRecorded,
    ReviewDecided,
    ReviewOpened,
    ReworkRequested,
    SessionAdopted,
    SessionClosed,
    SessionOpened,
    SessionStarted,
    SessionStarting,
    SetupDone,
    SharedAccepted,
    SharedChanged,
    SharedRecorded,
    SummaryEvent,
    TaskClaimed,
    TaskHeld,
    TaskJudged,
    TaskReleased,
    TaskReset,
    TaskStopped,
    TaskTold,
    TurnEnded,
    TurnStalled,
    TurnWentOn,
    VerificationStarted,
    WorktreeReady,
)
from coordinate_agents.graph.frontier import BASE_STAGE, Frontier, RunState
from coordinate_agents.graph.model import SubtaskId, Task, TaskGraph
from coordinate_agents.graph.removed import fold_removal
from coordinate_agents.graph.runs import (
    INTERRUPTED,
    LIMIT_CODES,
    Approval,
    Delivered,
    Good,
    GraphSummary,
    Integration,
    Resolution,
    Review,
    Stage,
    TaskRun,
    run_from_row,
    run_to_row,
    summary_from_row,
    summary_to_row,
)
from coordinate_agents.graph.states import IntegrationState, Phase
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, Head, Worktree

__all__ = [
    "INTERRUPTED",
    "LIMIT_CODES",
    "Delivered",
    "Good",
    "GraphSummary",
    "Integration",
    "Resolution",
    "Snapshot",
    "Stage",
    "TaskRun",
    "heads_of",
    "run_from_row",
    "run_state",
    "run_to_row",
    "summary_from_row",
    "summary_to_row",
]


class Snapshot:
    """The state of one graph. Invariant: equal to the fold of its log; the store's cache rows say the same."""

    __slots__ = ("_changed", "frontier", "graph", "runs", "summary", "tasks")

    def __init__(self, graph: TaskGraph, runs: Iterable[TaskRun] = (), summary: GraphSummary | None = None) -> None:
        self.graph = graph
        self.tasks: dict[SubtaskId, Task] = {task.id: task for task in graph.tasks}
        self.runs: dict[SubtaskId, TaskRun] = {task.id: TaskRun(task.id) for task in graph.tasks}
        self.runs.update((run.id, run) for run in runs)
        self.summary = summary or GraphSummary()
        self._changed: set[SubtaskId] = set()
        self.frontier = self._places()

    def amend(self, event: GraphAmended, graph: TaskGraph) -> tuple[TaskRun, ...]:
        """Go over to the new revision, which the event alone does not hold; returns the runs that are new or changed.

        Of those that stay everything stays, but for a conflict of a base that will be made of other commits. Linear.
        """
        before, is_new_base = self.tasks, event.base is not None
        self.graph = graph
        self.tasks = {task.id: task for task in graph.tasks}
        amended = []
        for name, task in self.tasks.items():
            if name not in before:
                amended.append(TaskRun(name))
            elif is_new_base or before[name].depends_on != task.depends_on:
                run = self.runs[name]
                if run.state == "idle" and run.conflict is not None:
                    amended.append(replace(run, conflict=None, conflict_state="", reason=None))
        for name in event.dropped:
            del self.runs[name]
        self.runs.update((run.id, run) for run in amended)
        if event.base is not None:
            self.summary = replace(self.summary, base=event.base, base_branch=event.branch)
        self.frontier = self._places()
        self._changed = set()
        return tuple(amended)

    def _places(self) -> Frontier:
        return Frontier(
            {task.id: task.depends_on for task in self.graph.tasks},
            {run.id: run_state(run) for run in self.runs.values() if run_state(run) != "idle"},
        )

    def fold(self, event: Event, *, time: float) -> TaskRun | GraphSummary:
        """Record what the event says; returns the one value that changed. A GraphAmended needs `amend`."""
        match event:
            case GraphAmended():
                raise ValueError(f"revision {event.revision} comes with its document: amend()")
            case _ if isinstance(event, SummaryEvent):
                self.summary = _fold_summary(self.summary, event, time)
                return self.summary
            case _ if isinstance(event, RemovalEvent) and event.subtask == INTEGRATION_SLUG:
                integration = fold_removal(self.summary.integration, event)
                self.summary = replace(self.summary, integration=integration)
                return self.summary
            case _:
                before = self.runs[event.subtask]
                run = _fold_run(before, event, time)
                self.runs[run.id] = run
                state = run_state(run)
                if state != run_state(before):
                    self._changed |= self.frontier.set(run.id, state)
                return run

    def taken_slots(self) -> set[int]:
        """The numbers of the running subtasks."""
        return {self.runs[subtask].slot for subtask in self.frontier.members("running")}

    def free_slots(self, *, wanted: int | None = None) -> Iterator[int]:
        """The wanted number, then upwards from 0, those that no running subtask has. Without end."""
        taken = self.taken_slots()
        if wanted is not None and wanted not in taken:
            yield wanted
        yield from (number for number in count() if number not in taken and number != wanted)

    def take_changed(self) -> set[SubtaskId]:
        """The subtasks whose place changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed


def run_state(run: TaskRun) -> RunState:
    """The frontier's view of a run: one whose base cannot be made is blocked until its inputs change."""
    if run.state == "idle" and run.conflict is not None:
        return "base-conflict"
    if run.state == "failed" and run.failure is not None and run.failure.stage == BASE_STAGE:
        return "base-missing"
    return run.state


def _fold_summary(summary: GraphSummary, event: Any, time: float) -> GraphSummary:
    match event:
        case GraphCreated(base=base, branch=branch):
            return replace(summary, base=base, base_branch=branch)
        case BranchDelivered():
            rest = tuple(each for each in summary.deliveries if each.branch != event.branch)
            return replace(summary, deliveries=(*rest, _delivered(event, time)))
        case GraphForgotten():
            return replace(summary, is_forgotten=True)
        case DriveStarted(pid=pid):
            return replace(summary, driver_pid=pid, driven_since=time, ended_reason=None)
        case DriveEnded(reason=reason):
            return replace(summary, driver_pid=None, driven_since=None, ended_reason=reason)
        case SharedRecorded(blob=blob):
            return replace(
                summary,
                shared_blob=blob,
                was_started=True,
                shared_changes=(),
                shared_fingerprint=None,
                shared_since=None,
            )
        case ResolutionRecorded(ours=ours, theirs=theirs, commit=commit):
            sides = {ours, theirs}
            others = tuple(each for each in summary.resolutions if {each.ours, each.theirs} != sides)
            return replace(summary, resolutions=(*others, Resolution(ours, theirs, commit)))
        case SharedAccepted(blob=blob):
            return replace(summary, shared_blob=blob, shared_changes=(), shared_fingerprint=None, shared_since=None)
        case ReviewDecided(decision="REVIEW_APPROVED", about=(subtask, *_), commit=commit, who=who):
            # Of that subtask's commit: none of the graph.
            return replace(summary, approvals=_approved(summary, Approval(subtask, commit, who, time)))
        case ReviewOpened() | ReviewDecided():
            return replace(summary, review=_fold_review(summary.review, event, time))
        case IntegrationMerged() if summary.review.state == "changes":
            # What was asked for is in it; the new commit waits for a review of its own.
            return replace(summary, review=Review(), integration=_fold_integration(summary.integration, event))
        case SharedChanged(changes=changes, fingerprint=fingerprint):
            return replace(summary, shared_changes=changes, shared_fingerprint=fingerprint, shared_since=time)
        case _:
            return replace(summary, integration=_fold_integration(summary.integration, event))


def _approved(summary: GraphSummary, new: Approval) -> tuple[Approval, ...]:
    return (*(each for each in summary.approvals if each.subtask != new.subtask), new)


def _delivered(event: BranchDelivered, time: float) -> Delivered:
    return Delivered(event.branch, event.commit, event.source, event.base, event.is_squashed, event.who, time)


def _fold_review(review: Review, event: ReviewOpened | ReviewDecided, time: float) -> Review:
    match event:
        case ReviewOpened(commit=commit, who=who):
            return Review("open", commit, who=who, since=time)
        case ReviewDecided(decision="CHANGES_REQUESTED"):
            return Review("changes", event.commit, event.about, event.feedback, event.who, time)
        case ReviewDecided():
            return Review("approved", event.commit, who=event.who, since=time)


def _fold_integration(integration: Integration, event: Any) -> Integration:
    match event:
        case IntegrationStarted(heads=heads, onto=onto, onto_name=onto_name):
            return Integration(
                state="merging",
                heads=heads,
                commit=integration.commit,
                worktree=integration.worktree,
                removing=integration.removing,
                removal=integration.removal,
                discard=integration.discard,
                onto=onto,
                onto_name=onto_name,
                good=integration.good,
            )
        case IntegrationConflicted():
            return replace(
                integration,
                state="conflict",
                pair=event.pair,
                paths=event.paths,
                applied=event.applied,
                ours=event.ours,
                theirs=event.theirs,
                worktree=event.worktree or integration.worktree,
                removing=None,
                removal=None,
            )
        case IntegrationMerged(commit=commit, tree=tree, worktree=worktree, merged=merged):
            return replace(
                integration,
                state="checking",
                commit=commit,
                tree=tree,
                worktree=worktree,
                applied=merged,
                removing=None,
                removal=None,
            )
        case IntegrationCommandStarting(session=session, marker=marker):
            return replace(integration, command_session=session, command_marker=marker)
        case IntegrationJudged(accepted=accepted, checks=checks, failure=failure, left=left, cone=cone):
            state: IntegrationState = "integrated" if accepted else "failed"
            baseline = tuple(sorted({*integration.baseline, *left}))
            judged = replace(integration, state=state, checks=checks, failure=failure, baseline=baseline)
            if judged.worktree is not None:
                judged = replace(judged, worktree=replace(judged.worktree, cone=cone))
            return replace(judged, good=_good(judged)) if accepted else judged
        case IntegrationFailed(failure=failure):
            return replace(integration, state="failed", failure=failure)
        case IntegrationAborting():
            return replace(integration, is_aborting=True)
        case IntegrationAborted(worktree=worktree):
            return _back_to_good(integration, worktree or integration.worktree)
        case _:
            raise AssertionError(event)


def _good(integration: Integration) -> Good:
    assert integration.commit is not None and integration.tree is not None
    return Good(
        integration.heads,
        integration.commit,
        integration.tree,
        integration.onto,
        integration.onto_name,
        integration.checks,
    )


def _back_to_good(integration: Integration, worktree: Worktree | None) -> Integration:
    good = integration.good
    if good is None:
        return Integration(worktree=worktree)
    return Integration(
        state="integrated",
        heads=good.heads,
        commit=good.commit,
        tree=good.tree,
        worktree=worktree,
        applied=good.heads,
        checks=good.checks,
        onto=good.onto,
        onto_name=good.onto_name,
        good=good,
    )


def _fold_run(run: TaskRun, event: Any, time: float) -> TaskRun:
    match event:
        case TaskClaimed():
            return _claimed(run, event, time)
        case BaseFixed(base=base, refs_blob=blob, reduced=reduced):
            first = run.first_refs_blob or blob
            return replace(run, stage="base", base=base, reduced=reduced, refs_blob=blob, first_refs_blob=first)
        case BaseConflicted():
            return replace(_ended(run, time), state="idle", conflict=event, tries=run.tries - 1, conflict_state="")
        case ConflictOpening(conflict=conflict):
            return replace(run, conflict=conflict, conflict_state="opening")
        case ConflictOpened(worktree=worktree):
            return replace(run, conflict_state="open", conflict_worktree=worktree)
        case ConflictClosed(outcome=outcome):
            still = run.conflict if outcome == "given-up" else None
            return replace(run, conflict=still, conflict_state="", reason=None)
        case ConflictWorktreeRemoved():
            return replace(run, conflict_worktree=None)
        case WorktreeReady(worktree=worktree):
            return replace(run, stage="worktree", worktree=worktree, is_fresh=False, removing=None, removal=None)
        case SetupDone(baseline=baseline, cone=cone):
            narrowed = replace(run.worktree, cone=cone) if run.worktree is not None else None
            nonce = narrowed.nonce if narrowed is not None else None
            return replace(run, stage="setup", worktree=narrowed, baseline=baseline, setup_nonce=nonce)
        case SessionStarting():
            return _session_starting(run, event, time)
        case SessionStarted(pid=pid):
            phase: Phase = "held" if run.is_held else "working"
            return replace(run, stage="turn", phase=phase, phase_since=time, session_live=True, session_pid=pid)
        case SessionAdopted(session=session, pid=pid):
            return replace(
                run,
                state="running",
                stage="turn",
                phase="held" if run.is_held else "working",
                phase_since=time,
                session=session,
                session_live=True,
                session_pid=pid,
                turn_end=None,
                failure=None,
                reason=None,
                ended_at=None,
            )
        case PhaseChanged():
            return _phase_changed(run, event, time)
        case TurnStalled():
            return replace(run, stalled_since=time)
        case TurnWentOn():
            return replace(run, stalled_since=None)
        case TurnEnded():
            return _turn_ended(run, event)
        case SessionClosed(session=session, survivors=survivors):
            # What is left of its tree still lives in the worktree.
            return replace(run, open_session=None) if run.open_session == session and not survivors else run
        case CommitMade(commit=commit):
            return replace(run, head=commit)
        case VerificationStarted(by=by, waivers=waivers, slot=slot):
            return replace(
                run,
                slot=run.slot if slot is None else slot,
                state="running",
                stage="verify",
                phase="verifying",
                phase_since=time,
                verified_by=by,
                waivers=waivers,
                conflict=None,
                failure=None,
                ended_at=None,
            )
        case CommandStarting(session=session, marker=marker):
            return replace(run, command_session=session, command_marker=marker)
        case BaselineExtended(paths=paths):
            return replace(run, baseline=tuple(sorted({*run.baseline, *paths})))
        case FactsRecorded(head=head):
            return replace(run, head=head)
        case CheckEnded() | SessionOpened():
            return run
        case TaskJudged():
            return _judged(run, event, time)
        case AttemptFailed(failure=failure, then=then):
            failed = replace(_ended(run, time), failure=failure, reason=failure.message)
            return replace(failed, state="idle") if then == "retry" else failed
        case TaskStopped(reason=reason, failure=failure, stays=stays):
            left = run.session if stays else run.open_session
            return replace(_ended(run, time), state="stopped", reason=reason, failure=failure, open_session=left)
        case TaskReset():
            return _reset(run, event, time)
        case ReworkRequested(feedback=feedback):
            return _rework(run, feedback, time)
        case TaskTold(text=text, now=now, request=request):
            told = run.told if now else (*run.told, text)
            return replace(run, told=told, told_request=max(run.told_request, request))
        case TaskHeld():
            if run.state != "running":
                return replace(run, is_held=True)
            return replace(run, is_held=True, phase="held", phase_since=time, can_go_on=False)
        case TaskReleased():
            # It gave its slot back; the planner gives it the next one.
            return replace(run, is_held=False, can_go_on=run.phase == "held" and run.state == "running")
        case _:
            return fold_removal(run, event)


def _earlier_session(run: TaskRun, event: TaskClaimed) -> str | None:
    """What a new attempt may take up: the same agent's conversation about the same files."""
    goes_on = event.agent == run.agent and run.worktree is not None and not run.is_fresh
    return (run.external_session or run.earlier_session) if goes_on else None


def _claimed(run: TaskRun, event: TaskClaimed, time: float) -> TaskRun:
    if run.is_rework and event.attempt == run.attempt:
        # Its fix turns are counted anew.
        return replace(
            run,
            state="running",
            phase="preparing",
            slot=event.slot,
            tries=run.tries + 1,
            free_turns=run.turn,
            nonce=event.nonce,
            turn_end=None,
            command_session=None,
            command_marker=None,
            failure=None,
            reason=None,
            started_at=time,
            phase_since=time,
            ended_at=None,
        )
    return replace(
        run,
        state="running",
        phase="preparing",
        slot=event.slot,
        stage="",
        is_rework=False,
        attempt=event.attempt,
        tries=run.tries + 1,
        turn=0,
        free_turns=0,
        external_session=None,
        earlier_session=_earlier_session(run, event),
        delivered="",
        agent=event.agent,
        nonce=event.nonce,
        session=None,
        session_live=False,
        turn_end=None,
        is_reused=False,
        command_session=None,
        command_marker=None,
        feedback="",
        failure=None,
        reason=None,
        conflict=None,
        conflict_state="",
        evidence=None,
        verified_by="",
        waivers=(),
        started_at=time,
        phase_since=time,
        ended_at=None,
    )


def _session_starting(run: TaskRun, event: SessionStarting, time: float) -> TaskRun:
    """The intent. A first prompt takes up all that was said; a further turn only what it was made for."""
    is_first, words = event.turn == 0, "\n\n".join(run.told)
    return replace(
        run,
        stage="session",
        phase="preparing",
        phase_since=time,
        session=event.session,
        turn=event.turn,
        free_turns=run.free_turns + 1 if event.is_told and run.told else run.free_turns,
        marker=event.marker,
        command=event.command,
        feedback=event.feedback,
        is_told=event.is_told,
        say="\n\n".join(part for part in (run.say, words) if part) if is_first else run.say,
        told=() if is_first or event.is_told else run.told,
        session_live=False,
        turn_end=None,
        is_reused=event.reused,
        is_rework=False,
        delivered="",
        verified_by="",
        waivers=(),
    )


def _reset(run: TaskRun, event: TaskReset, time: float) -> TaskRun:
    return replace(
        _ready_again(run, event.reason, time),
        failure=None,
        conflict=None,
        conflict_state="",
        evidence=None if run.state == "succeeded" else run.evidence,
        is_fresh=run.is_fresh or event.keep == "base",
        is_rework=False,
        say=event.say or run.say,
        chosen_agent=event.agent or run.chosen_agent,
        verified_by="",
        waivers=(),
    )


def _rework(run: TaskRun, feedback: str, time: float) -> TaskRun:
    """Ready again with everything that it has: worktree, branch, base, attempt, and the Session that stayed."""
    return replace(
        _ready_again(run, "a review asks for changes", time),
        stage="",
        review=feedback,
        reviewed_commit=run.verified_commit,
        is_rework=True,
        told=(*run.told, feedback),
    )


def _ready_again(run: TaskRun, reason: str, time: float) -> TaskRun:
    """Without a verdict, and with all its tries; worktree, branch and base are as they were."""
    return replace(
        _ended(run, time), state="idle", tries=0, reason=reason, ended_at=None, verified_commit=None, certificate=None
    )


def _phase_changed(run: TaskRun, event: PhaseChanged, time: float) -> TaskRun:
    is_throttled, is_waiting = event.phase == "throttled", event.phase in ("awaiting-input", "throttled")
    if run.is_held:
        # Only its release ends it, whatever else was seen meanwhile.
        return replace(run, delivered=event.delivered or run.delivered)
    return replace(
        run,
        phase=event.phase,
        phase_since=run.phase_since if event.phase == run.phase else time,
        reason=event.note or run.reason if is_waiting else None,
        question=event.kind,
        request=event.request,
        choices=event.choices,
        can_go_on=event.can_go_on,
        retry_at=event.retry_at,
        delivered=event.delivered or run.delivered,
        limited_since=_limited_since(run, event, time),
        limits=run.limits + 1 if is_throttled and not event.can_go_on else run.limits,
        free_turns=run.free_turns + 1 if event.phase == "preparing" else run.free_turns,
    )


def _limited_since(run: TaskRun, event: PhaseChanged, time: float) -> float | None:
    """A turn that is tried again is still limited; one that works is not."""
    if event.phase == "throttled":
        return run.limited_since or time
    return None if event.phase == "working" and not event.delivered else run.limited_since


def _turn_ended(run: TaskRun, event: TurnEnded) -> TaskRun:
    is_limited = event.code in LIMIT_CODES
    continues = event.external_session is not None and event.external_session == run.external_session
    return replace(
        run,
        session_live=False,
        session_pid=run.session_pid if event.stays else None,
        stalled_since=None,
        turn_end=event,
        open_session=event.session if event.stays else None,
        summary=event.summary or run.summary,
        external_session=event.external_session or run.external_session,
        limited_since=run.limited_since if is_limited else None,
        limits=run.limits if is_limited else 0,
        used=run.used if event.usage is None else run.used.after(event.usage, continues=continues),
    )


def _judged(run: TaskRun, event: TaskJudged, time: float) -> TaskRun:
    if event.accepted:
        return replace(
            _ended(run, time),
            state="succeeded",
            head=event.commit,
            verified_commit=event.commit,
            certificate=event.certificate,
            evidence=event.evidence,
            failure=None,
            reason="; ".join(event.evidence.warnings) or None,
            say="",
            review="",
            reviewed_commit=None,
            told=(),
            is_held=False,
        )
    message = event.failure.message if event.failure else "refused"
    judged = replace(run, head=event.commit, evidence=event.evidence, failure=event.failure, reason=message)
    if event.then == "fix-turn":
        return judged
    ended = _ended(judged, time)
    return replace(ended, state="idle") if event.then == "retry" else ended


def _ended(run: TaskRun, time: float) -> TaskRun:
    """Out of the running state, as failed; the caller sets another state where it means one."""
    return replace(
        run,
        state="failed",
        phase=None,
        phase_since=None,
        session_live=False,
        session_pid=None,
        stalled_since=None,
        question="",
        request="",
        choices=(),
        can_go_on=False,
        retry_at=None,
        limited_since=None,
        limits=0,
        ended_at=time,
    )


def heads_of(snapshot: Snapshot, subtasks: Sequence[SubtaskId]) -> tuple[Head, ...]:
    """The verified commits of these subtasks. Invariant: each succeeded."""
    found = []
    for subtask in subtasks:
        commit = snapshot.runs[subtask].verified_commit
        assert commit is not None, subtask
        found.append(Head(subtask, commit))
    return tuple(found)
