"""Slots and tokens of those who wait: nobody waits for somebody who waits for them."""

from coordinate_agents.graph import events as ev
from coordinate_agents.graph import machine
from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.planner import Planner
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.worktrees.model import Worktree

A, B = SubtaskId("a"), SubtaskId("b")
BASE = "0" * 40


class Told:
    """A graph of two subtasks with one slot, told what happened."""

    def __init__(self, *, a_needs: tuple[str, ...] = (), b_needs: tuple[str, ...] = ()) -> None:
        tasks = (Task(A, "a", needs=a_needs), Task(B, "b", needs=b_needs))
        graph = TaskGraph(GraphId("g"), "g", tasks, max_concurrency=1, resources={"db": 1})
        self.snapshot = Snapshot(graph)
        self.planner = Planner(self.snapshot)
        self.time = 0.0

    def happened(self, *events: ev.TaskEvent) -> None:
        for event in events:
            self.time += 1.0
            machine.step(self.snapshot, machine.decide(self.snapshot, event), time=self.time)
            self.planner.sync(event.subtask)

    def works(self, subtask: SubtaskId) -> None:
        """The subtask is claimed and its agent is at work."""
        self.happened(
            ev.TaskClaimed(subtask, 1, "agent", "n"),
            ev.BaseFixed(subtask, BASE, "blob"),
            ev.WorktreeReady(subtask, Worktree("/w", "w", "b", BASE, "n", 1, 2)),
            ev.SetupDone(subtask),
            ev.SessionStarting(subtask, f"s-{subtask}", 0, "m"),
            ev.SessionStarted(subtask, f"s-{subtask}", 1, 2),
        )


def test_who_waits_for_tokens_leaves_its_slot_to_the_one_who_holds_them() -> None:
    told = Told(b_needs=("db",))
    told.works(B)
    told.happened(ev.PhaseChanged(B, "awaiting-input", "sure?", kind="yes-no"))
    assert told.planner.next_start() == A
    told.works(A)
    told.happened(ev.TurnEnded(A, "s-a", "exit", exit_code=0), ev.VerificationStarted(A))
    assert not told.planner.hold("a:check", ("db",), subtask=A)
    told.happened(ev.PhaseChanged(B, "awaiting-input", can_go_on=True))
    assert told.planner.next_resume() == B
    told.happened(
        ev.PhaseChanged(B, "working"),
        ev.TurnEnded(B, "s-b", "exit", exit_code=1),
        ev.AttemptFailed(B, ev.Failure("AGENT_EXIT_NONZERO", "no"), is_final=True),
    )
    assert told.planner.hold("a:check", ("db",), subtask=A)
    assert list(told.planner.waiting) == []


def test_who_waits_for_tokens_that_are_free_by_now_goes_before_a_new_start() -> None:
    told = Told(b_needs=("db",))
    assert told.planner.next_start() == A
    told.works(A)
    told.happened(ev.TurnEnded(A, "s-a", "exit", exit_code=0), ev.VerificationStarted(A))
    assert told.planner.hold("somebody:check", ("db",))
    assert not told.planner.hold("a:check", ("db",), subtask=A)
    told.planner.give_back("somebody:check")
    assert told.planner.next_start() is None
    assert told.planner.hold("a:check", ("db",), subtask=A)


def test_an_answered_subtask_is_not_held_back_by_its_own_trial_of_its_service() -> None:
    told = Told()
    told.works(A)
    told.happened(
        ev.TurnEnded(A, "s-a", "exit", exit_code=1),
        ev.PhaseChanged(A, "throttled", "RATE_LIMITED: wait", retry_at=1.0),
        ev.PhaseChanged(A, "throttled", can_go_on=True),
    )
    assert told.planner.next_resume() == A
    told.happened(
        ev.PhaseChanged(A, "preparing"),
        ev.SessionStarting(A, "s-a2", 1, "m"),
        ev.SessionStarted(A, "s-a2", 1, 2),
        ev.PhaseChanged(A, "awaiting-input", "sure?", kind="yes-no"),
        ev.PhaseChanged(A, "awaiting-input", can_go_on=True),
    )
    assert told.planner.next_resume() == A
