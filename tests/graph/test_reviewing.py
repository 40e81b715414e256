"""What a review's decision changes, from the record alone."""

from typing import Any

import pytest

from coordinate_agents.graph import machine
from coordinate_agents.graph.effects import MakeBase, OpenSession, RunSetup
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import (
    BaseFixed,
    Event,
    EvidenceSummary,
    Failure,
    GraphCreated,
    IntegrationJudged,
    IntegrationMerged,
    IntegrationStarted,
    ReviewDecided,
    ReviewOpened,
    ReworkRequested,
    SessionStarted,
    SessionStarting,
    SetupDone,
    SharedRecorded,
    TaskClaimed,
    TaskJudged,
    TaskReset,
    TurnEnded,
    VerificationStarted,
    WorktreeReady,
)
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.reviewing import Asked, decide, reviewed
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.worktrees.model import Head, Worktree

A, B, C = (SubtaskId(name) for name in "abc")
BASE, WHOLE = CommitId("0" * 40), CommitId("f" * 40)
COMMITS = {A: CommitId("a" * 40), B: CommitId("b" * 40), C: CommitId("c" * 40)}


def _session(subtask: SubtaskId, turn: int = 0, **more: Any) -> tuple[Event, ...]:
    session = f"g.{subtask}.a1"
    return (
        SessionStarting(subtask, session, turn, "mark", **more),
        SessionStarted(subtask, session, 1, 2),
        TurnEnded(subtask, session, "submitted", stays=True),
        VerificationStarted(subtask),
    )


def _judged(subtask: SubtaskId, commit: CommitId) -> TaskJudged:
    return TaskJudged(subtask, True, commit, EvidenceSummary(commit, BASE), certificate="cert")


def _done(subtask: SubtaskId) -> tuple[Event, ...]:
    return (
        TaskClaimed(subtask, 1, "coder", "n"),
        BaseFixed(subtask, BASE, "blob"),
        WorktreeReady(subtask, Worktree(f"/w/{subtask}", subtask, f"b/{subtask}", BASE, "n", 1, 2)),
        SetupDone(subtask),
        *_session(subtask),
        _judged(subtask, COMMITS[subtask]),
    )


def _integrated(commit: CommitId = WHOLE) -> tuple[Event, ...]:
    heads = tuple(Head(subtask, COMMITS[subtask]) for subtask in (A, B, C))
    tree = Worktree("/w/integration", "integration", "b/integration", BASE, "n", 1, 2)
    return (IntegrationStarted(heads), IntegrationMerged(commit, "tree", tree), IntegrationJudged(commit, True))


def _snapshot(*more: Event, last: tuple[SubtaskId, ...] = (A, B)) -> Snapshot:
    """b builds on a; c stands alone, or builds on both."""
    tasks = (Task(A, "First"), Task(B, "Second", depends_on=(A,)), Task(C, "Third", depends_on=last))
    snapshot = Snapshot(TaskGraph(GraphId("g"), "A graph", tasks))
    events = (GraphCreated(BASE, 3), SharedRecorded("blob"), *_done(A), *_done(B), *_done(C), *_integrated(), *more)
    for number, event in enumerate(events):
        machine.step(snapshot, machine.decide(snapshot, event), time=float(number))
    return snapshot


def _code(snapshot: Snapshot, asked: Asked) -> str:
    with pytest.raises(GraphError) as refused:
        decide(snapshot, asked)
    return refused.value.code


def test_a_review_is_opened_once_for_a_commit() -> None:
    assert decide(_snapshot(), Asked(who="ann")) == (ReviewOpened(WHOLE, "ann"),)
    assert decide(_snapshot(ReviewOpened(WHOLE)), Asked()) == ()
    assert decide(_snapshot(ReviewDecided("REVIEW_APPROVED", WHOLE)), Asked()) == ()


def test_an_approval_is_recorded_once_with_who_and_the_whole_commit() -> None:
    approval = Asked(decision="REVIEW_APPROVED", commit=WHOLE[:9], who="ann")
    assert decide(_snapshot(), approval) == (ReviewDecided("REVIEW_APPROVED", WHOLE, who="ann"),)
    assert decide(_snapshot(ReviewDecided("REVIEW_APPROVED", WHOLE)), approval) == ()


@pytest.mark.parametrize("commit", ["e" * 40, "fff", ""])
def test_a_decision_about_another_commit_is_stale(commit: str) -> None:
    assert _code(_snapshot(), Asked(decision="REVIEW_APPROVED", commit=commit)) == "TASK_STATE_CONFLICT"


def test_a_decision_after_another_integration_than_the_opened_one_is_stale() -> None:
    snapshot = _snapshot(ReviewOpened(WHOLE), *_integrated(CommitId("d" * 40)))
    assert _code(snapshot, Asked(decision="REVIEW_APPROVED")) == "TASK_STATE_CONFLICT"
    assert reviewed(snapshot, Asked()).commit == "d" * 40


def test_an_integration_of_earlier_commits_is_nothing_to_review() -> None:
    redone = (TaskReset(C, "again"), *(each for each in _done(C)[:-1]), _judged(C, CommitId("9" * 40)))
    snapshot = _snapshot(*redone)
    assert _code(snapshot, Asked()) == "TASK_STATE_CONFLICT"


def test_changes_reach_the_named_subtask_and_start_afresh_what_builds_on_it() -> None:
    asked = Asked((B,), "CHANGES_REQUESTED", feedback="Rename it.", who="ann")
    decision, rework, *resets = decide(_snapshot(), asked)
    assert decision == ReviewDecided("CHANGES_REQUESTED", COMMITS[B], (B,), "Rename it.", "ann")
    assert rework == ReworkRequested(B, "Rename it.", "ann")
    assert [(each.subtask, each.keep) for each in resets if isinstance(each, TaskReset)] == [(C, "base")]


def test_of_two_that_are_named_the_one_that_builds_on_the_other_starts_afresh_with_the_words() -> None:
    asked = Asked((B, A), "CHANGES_REQUESTED", feedback="Rename it.")
    decision, *others = decide(_snapshot(), asked)
    assert isinstance(decision, ReviewDecided)
    assert decision.about == (A, B)
    assert [(type(each).__name__, getattr(each, "subtask", ""), getattr(each, "say", "")) for each in others] == [
        ("ReworkRequested", A, ""),
        ("TaskReset", B, "Rename it."),
        ("TaskReset", C, ""),
    ]


def test_changes_of_nobody_go_to_the_only_last_one_or_are_refused() -> None:
    asked = Asked(decision="CHANGES_REQUESTED", feedback="x")
    decision = decide(_snapshot(), asked)[0]
    assert isinstance(decision, ReviewDecided)
    assert (decision.commit, decision.about) == (WHOLE, (C,))
    assert _code(_snapshot(last=(A,)), asked) == "INVALID_USAGE"


def test_a_rework_is_the_next_turn_of_the_same_attempt_with_its_fix_turns_anew() -> None:
    snapshot = _snapshot(*decide(_snapshot(), Asked((C,), "CHANGES_REQUESTED", feedback="More.")))
    run = snapshot.runs[C]
    assert (run.state, run.verified_commit, run.open_session) == ("idle", None, "g.c.a1")
    _, effects = machine.step(snapshot, TaskClaimed(C, 1, "coder", "n2"), time=100.0)
    assert effects == (MakeBase(C),)
    for event in (BaseFixed(C, BASE, "blob"), WorktreeReady(C, run.worktree or Worktree("", "", "", BASE, "", 1, 2))):
        machine.step(snapshot, event, time=101.0)
    _, effects = machine.step(snapshot, SetupDone(C), time=102.0)
    assert effects == (OpenSession(C, turn=1, feedback="More.", has_tokens=True, is_told=True),)
    for event in _session(C, 1, feedback="More.", is_told=True, reused=True):
        machine.step(snapshot, event, time=103.0)
    refused = TaskJudged(
        C,
        False,
        COMMITS[C],
        EvidenceSummary(COMMITS[C], BASE),
        failure=Failure("CHECK_FAILED", "no"),
        can_continue=True,
    )
    decided = machine.decide(snapshot, refused)
    assert isinstance(decided, TaskJudged)
    assert decided.then == "fix-turn"


def test_only_what_succeeded_can_be_asked_for_changes() -> None:
    snapshot = _snapshot(TaskReset(C, "again"))
    assert _code(snapshot, Asked((C,), "CHANGES_REQUESTED", feedback="x")) == "TASK_STATE_CONFLICT"
    with pytest.raises(GraphError):
        machine.step(snapshot, ReworkRequested(C, "x"), time=100.0)


def test_a_setup_whose_end_is_recorded_with_its_worktree_is_not_begun() -> None:
    effects = [RunSetup(A), OpenSession(A), RunSetup(B)]
    ready = WorktreeReady(A, Worktree("/w/a", "a", "b/a", BASE, "n", 1, 2))
    assert machine.still_due(effects, [ready, SetupDone(A)]) == [OpenSession(A), RunSetup(B)]
    assert machine.still_due(effects, [ready]) == effects
