"""Which agents are held, and who gets a slot back first."""

from dataclasses import replace

from coordinate_agents.graph.breaker import Breaker
from coordinate_agents.graph.events import PhaseChanged, SessionStarted, TaskClaimed, TurnEnded
from coordinate_agents.graph.machine import decide, step
from coordinate_agents.graph.model import SubtaskId, Task, TaskGraph
from coordinate_agents.graph.planner import Planner
from coordinate_agents.graph.snapshot import Snapshot, TaskRun

A, B, C = (SubtaskId(name) for name in "abc")
LIMITED = TaskRun(A, state="running", phase="throttled", agent="x", limited_since=1.0, reason="RATE_LIMITED: wait")


def test_a_waiting_subtask_holds_its_agent_and_no_other() -> None:
    breaker = Breaker()
    assert breaker.see(LIMITED)
    assert breaker.paused() == {"x": "RATE_LIMITED: wait"}
    assert not breaker.see(LIMITED)
    assert breaker.see(replace(LIMITED, state="stopped", phase=None, limited_since=None))
    assert breaker.paused() == {}


def test_one_goes_first_and_the_others_follow_once_it_got_through() -> None:
    breaker = Breaker()
    breaker.see(replace(LIMITED, can_go_on=True))
    assert breaker.paused() == {}
    breaker.see(replace(LIMITED, phase="preparing"))
    assert breaker.paused() == {"x": "a tries whether its service takes more"}
    breaker.see(replace(LIMITED, phase="working", limited_since=None))
    assert breaker.paused() == {}


class Play:
    """A graph of three independent subtasks, folded and planned as the engine does it."""

    def __init__(self, slots: int, *agents: str | None) -> None:
        tasks = tuple(
            Task(name, title="x", spec="x", agent=agent) for name, agent in zip((A, B, C), agents, strict=False)
        )
        self.snapshot = Snapshot(TaskGraph(id="g", title="g", tasks=tasks, max_concurrency=slots))
        self.planner = Planner(self.snapshot, agent_of=lambda task: "x")
        self.time = 0.0

    def apply(self, *events) -> bool:  # type: ignore[no-untyped-def]
        moved = False
        for event in events:
            self.time += 1.0
            step(self.snapshot, decide(self.snapshot, event), time=self.time)
            moved = self.planner.sync(event.subtask)
        return moved

    def claim(self) -> SubtaskId | None:
        subtask = self.planner.next_start()
        if subtask is not None:
            agent = self.snapshot.tasks[subtask].agent or "x"
            self.apply(TaskClaimed(subtask, 1, agent, "n"), SessionStarted(subtask, "s"))
        return subtask


def test_a_question_gives_the_slot_back_and_the_answer_waits_for_one() -> None:
    play = Play(1, "x", "x", "x")
    assert (play.claim(), play.claim()) == (A, None)
    assert play.apply(PhaseChanged(A, "awaiting-input", "sure?"))
    assert play.planner.next_resume() is None
    assert (play.claim(), play.claim()) == (B, None)
    assert play.apply(PhaseChanged(A, "awaiting-input", can_go_on=True))
    assert play.planner.next_resume() is None, "b has the only slot"
    play.apply(PhaseChanged(B, "awaiting-input", "sure?"))
    assert play.planner.next_resume() == A
    play.apply(PhaseChanged(A, "working"))
    assert play.planner.next_resume() is None
    assert play.claim() is None


def test_who_waited_longest_goes_on_first() -> None:
    play = Play(3, "x", "x", "x")
    assert [play.claim() for _ in range(3)] == [A, B, C]
    play.apply(PhaseChanged(C, "awaiting-input", "?"), PhaseChanged(A, "awaiting-input", "?"))
    play.apply(PhaseChanged(A, "awaiting-input", can_go_on=True), PhaseChanged(C, "awaiting-input", can_go_on=True))
    assert play.planner.next_resume() == C


def test_a_limit_holds_the_starts_of_its_agent_also_where_the_agent_is_the_default() -> None:
    play = Play(3, "x", None, "y")
    assert play.claim() == A
    play.apply(
        TurnEnded(A, "s", "exit", exit_code=1, code="RATE_LIMITED"),
        PhaseChanged(A, "throttled", "RATE_LIMITED: wait", retry_at=100.0),
    )
    assert (play.claim(), play.claim()) == (C, None)
    play.apply(PhaseChanged(A, "throttled", can_go_on=True))
    assert play.planner.next_resume() == A
    play.apply(PhaseChanged(A, "preparing"))
    assert play.claim() is None, "it is not known yet whether the service takes more"
    assert play.apply(SessionStarted(A, "s2"), TurnEnded(A, "s2", "exit", exit_code=0))
    assert play.claim() == B


def test_refused_turns_cost_no_fix_turn() -> None:
    play = Play(1, "x")
    play.claim()
    for _ in range(3):
        play.apply(
            TurnEnded(A, "s", "exit", exit_code=1, code="RATE_LIMITED"),
            PhaseChanged(A, "throttled", "wait", retry_at=1.0),
            PhaseChanged(A, "preparing"),
            SessionStarted(A, "s"),
        )
    run = play.snapshot.runs[A]
    assert (run.free_turns, run.limits, run.tries) == (3, 3, 1)
