"""One graph's state at one point of its log: the fold of its events.

`TaskRun` and `GraphSummary` are frozen; `Snapshot` is the fold's accumulator and the one mutable value of the core: an
event replaces one run or the summary, so that a transition costs the same in a graph of ten and of a hundred thousand
subtasks. `fold` only records what an event says; whether the event was legal and what follows from it stand in
`machine`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, assert_never

from coordinate_agents.graph.codec import from_plain, to_plain
from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseConflicted,
    BaseFixed,
    BaselineExtended,
    CheckEnded,
    CommandStarting,
    CommitMade,
    DriveEnded,
    DriveStarted,
    Event,
    EvidenceSummary,
    FactsRecorded,
    Failure,
    GraphCreated,
    IntegrationCommandStarting,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    IntegrationMerged,
    IntegrationStarted,
    PhaseChanged,
    SessionStarted,
    SessionStarting,
    SetupDone,
    SharedChanged,
    SharedRecorded,
    TaskClaimed,
    TaskJudged,
    TaskReset,
    TaskStopped,
    TurnEnded,
    VerificationStarted,
    WorktreeReady,
)
from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.frontier import Frontier, RunState
from coordinate_agents.graph.model import CommitId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.states import IntegrationState, Phase, TaskState
from coordinate_agents.worktrees.model import Head, Worktree

# What an attempt has got to, so that a driver that comes back knows what to look for.
Stage = Literal["", "base", "worktree", "setup", "session", "turn", "verify"]

INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What became of one subtask.

    `attempt` counts from 1 over the whole life, `tries` since the last reset (compared with the limit), `turn` the
    fix turns of this attempt. `stage` is the last step whose intent or result was recorded. `phase_since` and
    `started_at` are seconds since the epoch.
    """

    id: SubtaskId
    state: TaskState = "idle"
    phase: Phase | None = None
    stage: Stage = ""
    attempt: int = 0
    tries: int = 0
    turn: int = 0
    agent: str | None = None
    nonce: str | None = None
    base: CommitId | None = None
    reduced: tuple[Head, ...] = ()
    first_refs_blob: str | None = None
    refs_blob: str | None = None
    worktree: Worktree | None = None
    baseline: tuple[str, ...] = ()
    session: str | None = None
    session_live: bool = False
    session_pid: int | None = None
    marker: str | None = None
    command: tuple[str, ...] = ()
    feedback: str = ""
    turn_end: TurnEnded | None = None
    command_session: str | None = None
    command_marker: str | None = None
    head: CommitId | None = None
    verified_commit: CommitId | None = None
    certificate: str | None = None
    evidence: EvidenceSummary | None = None
    summary: str | None = None
    failure: Failure | None = None
    reason: str | None = None
    conflict: BaseConflicted | None = None
    started_at: float | None = None
    phase_since: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class Integration:
    state: IntegrationState = "none"
    heads: tuple[Head, ...] = ()
    commit: CommitId | None = None
    tree: str | None = None
    worktree: Worktree | None = None
    pair: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    applied: tuple[Head, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    failure: Failure | None = None
    command_session: str | None = None
    command_marker: str | None = None


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """Graph-level state. `shared_changes` is what somebody did to the shared git state since `shared_blob`."""

    base: CommitId | None = None
    was_started: bool = False
    driver_pid: int | None = None
    driven_since: float | None = None
    ended_reason: str | None = None
    shared_blob: str | None = None
    shared_changes: tuple[str, ...] = ()
    shared_fingerprint: str | None = None
    shared_since: float | None = None
    integration: Integration = field(default_factory=Integration)


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
        self.frontier = Frontier(
            {task.id: task.depends_on for task in graph.tasks},
            {run.id: run_state(run) for run in self.runs.values() if run_state(run) != "idle"},
        )

    def fold(self, event: Event, *, time: float) -> TaskRun | GraphSummary:
        """Record what the event says; returns the one value that changed."""
        match event:
            case (
                GraphCreated()
                | DriveStarted()
                | DriveEnded()
                | SharedRecorded()
                | SharedChanged()
                | IntegrationStarted()
                | IntegrationConflicted()
                | IntegrationMerged()
                | IntegrationCommandStarting()
                | IntegrationJudged()
                | IntegrationFailed()
            ):
                self.summary = _fold_summary(self.summary, event, time)
                return self.summary
            case _:
                before = self.runs[event.subtask]
                run = _fold_run(before, event, time)
                self.runs[run.id] = run
                state = run_state(run)
                if state != run_state(before):
                    self._changed |= self.frontier.set(run.id, state)
                return run

    def take_changed(self) -> set[SubtaskId]:
        """The subtasks whose place changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed


def run_state(run: TaskRun) -> RunState:
    """The frontier's view of a run: a subtask whose base conflicts is idle, and blocked until its inputs change."""
    if run.state == "idle" and run.conflict is not None:
        return "base-conflict"
    return run.state


def _fold_summary(summary: GraphSummary, event: Any, time: float) -> GraphSummary:
    match event:
        case GraphCreated(base=base):
            return replace(summary, base=base)
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
        case SharedChanged(changes=changes, fingerprint=fingerprint):
            return replace(summary, shared_changes=changes, shared_fingerprint=fingerprint, shared_since=time)
        case _:
            return replace(summary, integration=_fold_integration(summary.integration, event))


def _fold_integration(integration: Integration, event: Any) -> Integration:
    match event:
        case IntegrationStarted(heads=heads):
            return Integration(state="merging", heads=heads, commit=integration.commit, worktree=integration.worktree)
        case IntegrationConflicted(pair=pair, paths=paths, applied=applied):
            return replace(integration, state="conflict", pair=pair, paths=paths, applied=applied)
        case IntegrationMerged(commit=commit, tree=tree, worktree=worktree, merged=merged):
            return replace(integration, state="checking", commit=commit, tree=tree, worktree=worktree, applied=merged)
        case IntegrationCommandStarting(session=session, marker=marker):
            return replace(integration, command_session=session, command_marker=marker)
        case IntegrationJudged(accepted=accepted, checks=checks, failure=failure):
            state: IntegrationState = "integrated" if accepted else "failed"
            return replace(integration, state=state, checks=checks, failure=failure)
        case IntegrationFailed(failure=failure):
            return replace(integration, state="failed", failure=failure)
        case _:
            raise AssertionError(event)


def _fold_run(run: TaskRun, event: Any, time: float) -> TaskRun:
    match event:
        case TaskClaimed():
            return _claimed(run, event, time)
        case BaseFixed(base=base, refs_blob=blob, reduced=reduced):
            first = run.first_refs_blob or blob
            return replace(run, stage="base", base=base, reduced=reduced, refs_blob=blob, first_refs_blob=first)
        case BaseConflicted():
            return replace(_ended(run, time), state="idle", conflict=event, tries=run.tries - 1)
        case WorktreeReady(worktree=worktree):
            return replace(run, stage="worktree", worktree=worktree)
        case SetupDone(baseline=baseline):
            return replace(run, stage="setup", baseline=baseline)
        case SessionStarting(session=session, turn=turn, marker=marker, command=command, feedback=feedback):
            return replace(
                run,
                stage="session",
                phase="preparing",
                phase_since=time,
                session=session,
                turn=turn,
                marker=marker,
                command=command,
                feedback=feedback,
                session_live=False,
                turn_end=None,
            )
        case SessionStarted(pid=pid):
            return replace(run, stage="turn", phase="working", phase_since=time, session_live=True, session_pid=pid)
        case PhaseChanged(phase=phase):
            return replace(run, phase=phase, phase_since=time)
        case TurnEnded():
            summary = event.summary or run.summary
            return replace(run, session_live=False, session_pid=None, turn_end=event, summary=summary)
        case CommitMade(commit=commit):
            return replace(run, head=commit)
        case VerificationStarted():
            return replace(run, stage="verify", phase="verifying", phase_since=time)
        case CommandStarting(session=session, marker=marker):
            return replace(run, command_session=session, command_marker=marker)
        case BaselineExtended(paths=paths):
            return replace(run, baseline=tuple(sorted({*run.baseline, *paths})))
        case FactsRecorded(head=head):
            return replace(run, head=head)
        case CheckEnded():
            return run
        case TaskJudged():
            return _judged(run, event, time)
        case AttemptFailed(failure=failure, then=then):
            failed = replace(_ended(run, time), failure=failure, reason=failure.message)
            return replace(failed, state="idle") if then == "retry" else failed
        case TaskStopped(reason=reason, failure=failure):
            return replace(_ended(run, time), state="stopped", reason=reason, failure=failure)
        case TaskReset(reason=reason):
            return replace(
                _ended(run, time), state="idle", tries=0, reason=reason, failure=None, conflict=None, ended_at=None
            )
        case _:
            assert_never(event)


def _claimed(run: TaskRun, event: TaskClaimed, time: float) -> TaskRun:
    return replace(
        run,
        state="running",
        phase="preparing",
        stage="",
        attempt=event.attempt,
        tries=run.tries + 1,
        turn=0,
        agent=event.agent,
        nonce=event.nonce,
        session=None,
        session_live=False,
        turn_end=None,
        command_session=None,
        command_marker=None,
        feedback="",
        failure=None,
        reason=None,
        conflict=None,
        evidence=None,
        started_at=time,
        phase_since=time,
        ended_at=None,
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
        run, state="failed", phase=None, phase_since=None, session_live=False, session_pid=None, ended_at=time
    )


def run_to_row(run: TaskRun) -> str:
    return json.dumps(to_plain(run), separators=(",", ":"), ensure_ascii=False)


def run_from_row(row: str) -> TaskRun:
    return from_plain(TaskRun, json.loads(row))


def summary_to_row(summary: GraphSummary) -> str:
    return json.dumps(to_plain(summary), separators=(",", ":"), ensure_ascii=False)


def summary_from_row(row: str) -> GraphSummary:
    return from_plain(GraphSummary, json.loads(row)) if row else GraphSummary()


def heads_of(snapshot: Snapshot, subtasks: Sequence[SubtaskId]) -> tuple[Head, ...]:
    """The verified commits of these subtasks. Invariant: each succeeded."""
    found = []
    for subtask in subtasks:
        commit = snapshot.runs[subtask].verified_commit
        assert commit is not None, subtask
        found.append(Head(subtask, commit))
    return tuple(found)
