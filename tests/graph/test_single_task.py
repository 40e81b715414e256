"""The states of a single Task: total, and each reached."""

from itertools import product
from typing import get_args

import pytest

from coordinate_agents.graph.events import EvidenceSummary, ReviewDecided, TaskStopped
from coordinate_agents.graph.frontier import RunState
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.reviewing import Asked, decide
from coordinate_agents.graph.runs import Stage, TaskRun
from coordinate_agents.graph.single_task import SingleTaskState, Standing, single_task_state
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.states import Phase

A = SubtaskId("a")
GOOD, OTHER = CommitId("a" * 40), CommitId("b" * 40)


def test_every_combination_has_a_state_and_every_state_a_combination() -> None:
    flags = (False, True)
    phases: tuple[Phase | None, ...] = (None, *get_args(Phase))
    found = {
        single_task_state(Standing(run, stage, phase, *more))
        for run, stage, phase, *more in product(
            get_args(RunState), get_args(Stage), phases, flags, flags, flags, flags, flags
        )
    }
    assert found == set(get_args(SingleTaskState))


@pytest.mark.parametrize(
    ("stage", "phase", "state"),
    [
        ("session", "preparing", "IMPLEMENTING"),
        ("turn", "working", "WAITING_IMPLEMENTER"),
        ("turn", "awaiting-input", "WAITING_IMPLEMENTER"),
        ("turn", "throttled", "WAITING_IMPLEMENTER"),
        ("turn", "held", "WAITING_IMPLEMENTER"),
        ("turn", "preparing", "IMPLEMENTING"),
        ("verify", "verifying", "IMPLEMENTING"),
    ],
)
def test_who_is_waited_for_is_told_by_who_has_the_turn(stage: str, phase: Phase, state: str) -> None:
    assert single_task_state(Standing("running", stage, phase, was_dispatched=True)) == state


def _snapshot(run: TaskRun) -> Snapshot:
    return Snapshot(TaskGraph(GraphId("g"), "A Task", (Task(A, "First"),)), [run])


def _approval(commit: CommitId = GOOD) -> ReviewDecided:
    return ReviewDecided("REVIEW_APPROVED", commit, (A,), who="ann")


def test_an_approval_of_one_subtask_is_remembered_for_its_commit_alone_and_recorded_once() -> None:
    run = TaskRun(A, state="succeeded", attempt=1, verified_commit=GOOD, evidence=EvidenceSummary(GOOD, OTHER))
    asked = Asked((A,), "REVIEW_APPROVED", who="ann")
    snapshot = _snapshot(run)
    assert decide(snapshot, asked) == (_approval(),)
    snapshot.fold(_approval(OTHER), time=1.0)
    assert decide(snapshot, asked) == (_approval(),), "of an earlier commit"
    snapshot.fold(_approval(), time=2.0)
    assert [(each.commit, each.since) for each in snapshot.summary.approvals] == [(GOOD, 2.0)]
    assert snapshot.summary.review.state == "none", "none of the graph"
    assert decide(snapshot, asked) == ()


def test_a_stop_that_leaves_the_session_keeps_it_as_the_one_to_be_closed() -> None:
    run = TaskRun(A, state="running", attempt=1, stage="turn", session="g.a.a1", session_live=True)
    left = _snapshot(run)
    left.fold(TaskStopped(A, "stopped", stays=True), time=1.0)
    assert (left.runs[A].state, left.runs[A].open_session) == ("stopped", "g.a.a1")
    closed = _snapshot(run)
    closed.fold(TaskStopped(A, "stopped"), time=1.0)
    assert closed.runs[A].open_session is None
