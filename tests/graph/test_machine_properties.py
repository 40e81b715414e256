"""Random graphs, random outcomes: the promises of the pure core hold in every order of events."""

from collections import Counter

from dags import task_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.graph import events as ev
from coordinate_agents.graph import machine
from coordinate_agents.graph.effects import (
    AwaitRetry,
    AwaitTurn,
    CreateWorktree,
    Effect,
    ExplainExit,
    MakeBase,
    OpenSession,
    RunSetup,
    Verify,
)
from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.planner import WITHOUT_SLOT, Planner
from coordinate_agents.graph.scope import conflict
from coordinate_agents.graph.snapshot import Snapshot, run_from_row, run_to_row, summary_from_row, summary_to_row
from coordinate_agents.worktrees.model import Worktree

BASE = "0" * 40


class World:
    """Carries effects out by drawing an outcome; keeps the log of events and the set of open effects."""

    def __init__(self, graph: TaskGraph, data: st.DataObject) -> None:
        self.graph = graph
        self.data = data
        self.snapshot = Snapshot(graph)
        self.planner = Planner(self.snapshot)
        self.open: list[Effect] = []
        self.log: list[tuple[ev.Event, float]] = []
        self.time = 0.0

    def apply(self, event: ev.Event) -> None:
        self.time += 1.0
        event = machine.decide(self.snapshot, event)
        _, effects = machine.step(self.snapshot, event, time=self.time)
        self.log.append((event, self.time))
        self.open.extend(effects)
        subtask = ev.subtask_of(event)
        if subtask is not None:
            self.planner.sync(subtask)

    def plan(self) -> None:
        while (subtask := self.planner.next_resume()) is not None:
            phase = self.snapshot.runs[subtask].phase
            self.apply(ev.PhaseChanged(subtask, "preparing" if phase == "throttled" else "working"))
        while (subtask := self.planner.next_start()) is not None:
            for needed in self.snapshot.tasks[subtask].depends_on:
                assert self.snapshot.runs[needed].verified_commit is not None
            attempt = self.snapshot.runs[subtask].attempt + 1
            self.apply(ev.TaskClaimed(subtask, attempt, "agent", f"{attempt:032x}"))
        self.check_limits()

    def check_limits(self) -> None:
        running = [run for run in self.snapshot.runs.values() if run.state == "running"]
        at_work = [run for run in running if run.id not in self.planner.waiting]
        assert sum(run.phase not in WITHOUT_SLOT for run in at_work) <= self.graph.max_concurrency
        # A subtask gives its tokens back for its verification, and takes them again for a further turn.
        busy = [run for run in running if run.phase != "verifying"]
        tokens = Counter(token for run in busy for token in self.snapshot.tasks[run.id].needs)
        assert all(count <= self.graph.resources[token] for token, count in tokens.items())
        for number, first in enumerate(running):
            for second in running[number + 1 :]:
                tasks = self.snapshot.tasks
                assert conflict(tasks[first.id].writes, tasks[second.id].writes) is None

    def step(self) -> None:
        """Carry out one open effect; a further turn whose tokens are not free yet stays open."""
        number = self.data.draw(st.integers(0, len(self.open) - 1))
        effect = self.open[number]
        is_turn = isinstance(effect, OpenSession) and effect.turn > 0 and not effect.has_tokens
        subtask = effect.subtask  # type: ignore[union-attr]
        if is_turn and not self.planner.hold("turn", self.snapshot.tasks[subtask].needs, subtask=subtask):
            self.plan()
            assert len(self.open) > 1, "it waits for somebody"
            return
        del self.open[number]
        event = self.carry_out(effect)
        self.planner.give_back("turn")
        self.apply(event)
        self.plan()

    def carry_out(self, effect: Effect) -> ev.Event:
        subtask = effect.subtask  # type: ignore[union-attr]
        number = self.data.draw(st.integers(0, 9))
        failure = ev.Failure("CHECK_FAILED", "no")
        match effect:
            case MakeBase() if number == 0:
                return ev.BaseConflicted(subtask, ("t0", "t1"), ("f",), "key")
            case MakeBase():
                return ev.BaseFixed(subtask, BASE, "blob")
            case CreateWorktree() if number == 0:
                return ev.AttemptFailed(subtask, failure, is_final=self.data.draw(st.booleans()))
            case CreateWorktree():
                return ev.WorktreeReady(subtask, Worktree("/w", "w", "b", BASE, "n", 1, 2))
            case RunSetup():
                return ev.SetupDone(subtask)
            case OpenSession(turn=turn, feedback=feedback):
                self.apply(ev.SessionStarting(subtask, f"s{turn}", turn, "m", (), feedback))
                return ev.SessionStarted(subtask, f"s{turn}", 1, 2)
            case AwaitTurn() if number == 1:
                self.apply(ev.PhaseChanged(subtask, "awaiting-input", "sure?", kind="yes-no"))
                self.open.append(effect)
                return ev.PhaseChanged(subtask, "awaiting-input", can_go_on=True)
            case AwaitTurn() if self.snapshot.runs[subtask].phase == "awaiting-input":
                self.open.append(effect)
                return ev.PhaseChanged(subtask, "awaiting-input", can_go_on=True)
            case AwaitRetry():
                return ev.PhaseChanged(subtask, "throttled", can_go_on=True)
            case ExplainExit() if number > 7:
                return ev.PhaseChanged(subtask, "throttled", "RATE_LIMITED: wait", retry_at=1.0)
            case AwaitTurn():
                return ev.TurnEnded(subtask, "s", "exit", exit_code=0 if number else 1)
            case ExplainExit() if number < 2:
                return ev.TaskStopped(subtask, "interrupted")
            case ExplainExit():
                return ev.AttemptFailed(subtask, failure)
            case Verify():
                self.apply(ev.VerificationStarted(subtask))
                accepted = number > 3
                return ev.TaskJudged(
                    subtask,
                    accepted,
                    f"{number:040x}",
                    ev.EvidenceSummary(f"{number:040x}", BASE),
                    certificate="c" if accepted else None,
                    failure=None if accepted else failure,
                    can_continue=self.data.draw(st.booleans()),
                )
            case _:
                raise AssertionError(effect)


def run_to_end(graph: TaskGraph, data: st.DataObject) -> World:
    world = World(graph, data)
    world.plan()
    steps = 0
    while world.open:
        steps += 1
        assert steps < 2000, "the run does not end"
        world.step()
    return world


@settings(max_examples=150, deadline=None)
@given(task_graphs(), st.data())
def test_random_graph_and_outcomes_ends_with_every_subtask_placed(graph: TaskGraph, data: st.DataObject) -> None:
    world = run_to_end(graph, data)
    counts = world.snapshot.frontier.counts()
    assert counts["running"] == 0
    assert counts["ready"] == 0
    for task in graph.tasks:
        run = world.snapshot.runs[task.id]
        assert run.tries <= task.attempts
        if run.state == "succeeded":
            assert all(world.snapshot.runs[needed].state == "succeeded" for needed in task.depends_on)


@settings(max_examples=100, deadline=None)
@given(task_graphs(), st.data())
def test_refolding_the_log_gives_the_same_snapshot(graph: TaskGraph, data: st.DataObject) -> None:
    world = run_to_end(graph, data)
    again = Snapshot(graph)
    for event, time in world.log:
        subtask = ev.subtask_of(event)
        again.fold(ev.from_row(ev.event_type(event), subtask, ev.to_data(event)), time=time)
    assert again.runs == world.snapshot.runs
    assert again.summary == world.snapshot.summary
    rows = [run_to_row(run) for run in world.snapshot.runs.values()]
    cached = Snapshot(graph, [run_from_row(row) for row in rows], summary_from_row(summary_to_row(again.summary)))
    assert cached.runs == world.snapshot.runs
    assert {t: cached.frontier.place(t) for t in cached.tasks} == {t: again.frontier.place(t) for t in again.tasks}


@settings(max_examples=60, deadline=None)
@given(task_graphs(), st.data())
def test_one_effect_is_open_for_each_running_subtask(graph: TaskGraph, data: st.DataObject) -> None:
    world = World(graph, data)
    world.plan()
    while world.open:
        check_effects(world)
        world.step()
    assert not [run.id for run in world.snapshot.runs.values() if run.state == "running"]


def test_a_subtask_whose_service_takes_more_waits_without_an_effect_while_another_has_the_slot() -> None:
    """Between AwaitRetry and its slot nothing of a throttled subtask is open: the plan takes it up again."""
    tasks = tuple(Task(SubtaskId(name), title=name, attempts=2) for name in ("t0", "t1"))
    world = World(TaskGraph(GraphId("g"), title="g", tasks=tasks, max_concurrency=1), st.data())
    world.plan()
    first, other = SubtaskId("t0"), SubtaskId("t1")
    _carry_out_to_turn(world, first)
    world.open.clear()
    world.apply(ev.TurnEnded(first, "s", "exit", exit_code=1))
    world.open.clear()
    world.apply(ev.PhaseChanged(first, "throttled", "RATE_LIMITED: wait", retry_at=1.0))
    world.plan()
    assert world.open == [AwaitRetry(first), MakeBase(other)]
    world.open = [MakeBase(other)]
    world.apply(ev.PhaseChanged(first, "throttled", can_go_on=True))
    world.plan()
    assert world.open == [MakeBase(other)]
    check_effects(world)
    world.open.clear()
    world.apply(ev.AttemptFailed(other, ev.Failure("SETUP_FAILED", "no"), is_final=True))
    world.plan()
    assert world.open == [OpenSession(first, turn=1, has_tokens=True)]
    check_effects(world)


def _carry_out_to_turn(world: World, subtask: SubtaskId) -> None:
    for event in (
        ev.BaseFixed(subtask, BASE, "blob"),
        ev.WorktreeReady(subtask, Worktree("/w", "w", "b", BASE, "n", 1, 2)),
        ev.SetupDone(subtask),
        ev.SessionStarting(subtask, "s", 0, "m", (), ""),
        ev.SessionStarted(subtask, "s", 1, 2),
    ):
        world.open.clear()
        world.apply(event)


def check_effects(world: World) -> None:
    """One open effect for each running subtask; none for one that may go on and waits for its slot or its agent."""
    runs = [run for run in world.snapshot.runs.values() if run.state == "running"]
    waits = {run.id for run in runs if run.phase == "throttled" and run.can_go_on}
    opened: Counter[SubtaskId] = Counter(effect.subtask for effect in world.open)  # type: ignore[union-attr]
    assert set(opened) == {run.id for run in runs} - waits
    assert set(opened.values()) <= {1}
    # Nobody waits for a slot that is free and an agent that is asked: the plan would have taken it up.
    assert not waits or world.planner.next_resume() is None
