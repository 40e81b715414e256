"""New revisions of random graphs in random states: what started stays as it is, and everything else fits together."""

from dataclasses import replace

import pytest
from dags import task_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.graph import events as ev
from coordinate_agents.graph import machine, order
from coordinate_agents.graph.amending import LIMITS, is_settled, plan_amendment
from coordinate_agents.graph.config import AgentConfig, Config
from coordinate_agents.graph.differences import config_differences
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.frontier import PLACES
from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.planner import Planner
from coordinate_agents.graph.runs import run_from_row, run_to_row
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.worktrees.model import Worktree

A, B, C = SubtaskId("a"), SubtaskId("b"), SubtaskId("c")
BASE, NEWER = "0" * 40, "1" * 40
_FAILURE = ev.Failure("CHECK_FAILED", "no")
_EVIDENCE = ev.EvidenceSummary("2" * 40, BASE)


def advance(snapshot: Snapshot, planner: Planner, event: ev.TaskEvent) -> None:
    machine.step(snapshot, machine.decide(snapshot, event), time=1.0)
    planner.sync(event.subtask)


def begin(snapshot: Snapshot, planner: Planner, subtask: SubtaskId) -> None:
    attempt = snapshot.runs[subtask].attempt + 1
    advance(snapshot, planner, ev.TaskClaimed(subtask, attempt, "one", "n"))


def drive_somewhere(snapshot: Snapshot, planner: Planner, data: st.DataObject) -> None:
    """Start and end subtasks at random, in legal order."""
    for _ in range(data.draw(st.integers(0, 12))):
        running = sorted(run.id for run in snapshot.runs.values() if run.state == "running")
        if (ready := planner.next_start()) is not None and (not running or data.draw(st.booleans())):
            begin(snapshot, planner, ready)
            # Who has a worktree keeps its base.
            if snapshot.runs[ready].worktree is None and data.draw(st.integers(0, 4)) == 0:
                advance(snapshot, planner, ev.BaseConflicted(ready, ("x", "y"), ("f",), "key"))
                continue
            advance(snapshot, planner, ev.BaseFixed(ready, BASE, "blob"))
        elif running:
            subtask = data.draw(st.sampled_from(running))
            advance(snapshot, planner, ev.WorktreeReady(subtask, Worktree("/w", "w", "b", BASE, "n", 1, 2)))
            if data.draw(st.booleans()):
                advance(snapshot, planner, ev.TaskJudged(subtask, True, "2" * 40, _EVIDENCE, "cert"))
            else:
                advance(snapshot, planner, ev.AttemptFailed(subtask, _FAILURE))


def amended(graph: TaskGraph, data: st.DataObject) -> TaskGraph:
    """The graph with subtasks dropped, changed and added; its edges still lead to earlier ones alone."""
    kept = [task for task in graph.tasks if data.draw(st.integers(0, 5))]
    tasks: list[Task] = []
    for task in kept:
        earlier = [each.id for each in tasks]
        needed = tuple(each for each in task.depends_on if each in earlier)
        changed = replace(task, depends_on=needed)
        match data.draw(st.integers(0, 5)):
            case 0:
                changed = replace(changed, priority=changed.priority + 1, timeout_s=7.0)
            case 1:
                changed = replace(changed, spec="other words")
            case 2 if earlier:
                changed = replace(changed, depends_on=(data.draw(st.sampled_from(earlier)),))
            case _:
                pass
        tasks.append(changed)
    for number in range(data.draw(st.integers(0, 3))):
        needs = data.draw(st.lists(st.sampled_from([each.id for each in tasks]), max_size=2)) if tasks else []
        tasks.append(Task(SubtaskId(f"new{number}"), "new", depends_on=tuple(dict.fromkeys(needs))))
    tasks = tasks or [Task(SubtaskId("new"), "new")]
    return replace(graph, tasks=tuple(tasks), max_concurrency=data.draw(st.integers(1, 4)))


@settings(max_examples=60, deadline=None)
@given(task_graphs(max_size=8), st.data())
def test_amendment_of_a_random_graph_changes_nothing_that_started_and_leaves_no_cycle(
    graph: TaskGraph, data: st.DataObject
) -> None:
    snapshot = Snapshot(graph)
    planner = Planner(snapshot)
    drive_somewhere(snapshot, planner, data)
    before, runs = dict(snapshot.tasks), dict(snapshot.runs)
    base = data.draw(st.sampled_from([None, NEWER]))
    try:
        amendment = plan_amendment(snapshot, amended(graph, data), base=base)
    except GraphError as refused:
        assert refused.code == "TASK_STATE_CONFLICT"
        assert set(refused.facts["started"]) <= {name for name, run in runs.items() if run.attempt}
        return

    event = ev.GraphAmended(2, amendment.added, amendment.changed, amendment.dropped, amendment.base)
    machine.amend(snapshot, event, amendment.graph)
    planner.rebuild()

    assert set(snapshot.tasks) == set(snapshot.runs) == {task.id for task in amendment.graph.tasks}
    assert order.cycles(order.prerequisites(snapshot.graph)) == ()
    for name, run in runs.items():
        if is_settled(run):
            limits = {each: getattr(snapshot.tasks[name], each) for each in LIMITS}
            assert replace(before[name], **limits) == snapshot.tasks[name]
            assert snapshot.runs[name] == run
    assert snapshot.summary.base == (NEWER if base else None)
    again = Snapshot(snapshot.graph, [run_from_row(run_to_row(run)) for run in snapshot.runs.values()])
    for place in PLACES:
        assert snapshot.frontier.members(place) == again.frontier.members(place)
    assert planner.plan(limit=None) == Planner(again).plan(limit=None)


def fork() -> tuple[Snapshot, Planner]:
    tasks = (Task(A, "a"), Task(B, "b"), Task(C, "c", depends_on=(A, B)))
    snapshot = Snapshot(TaskGraph(GraphId("g"), "g", tasks))
    return snapshot, Planner(snapshot)


def without_start(snapshot: Snapshot, **changes: object) -> TaskGraph:
    return replace(snapshot.graph, **changes)  # type: ignore[arg-type]


def test_conflict_of_a_base_counts_no_more_once_it_is_made_of_others() -> None:
    snapshot, planner = fork()
    for each in (A, B):
        begin(snapshot, planner, each)
        advance(snapshot, planner, ev.TaskJudged(each, True, "2" * 40, _EVIDENCE, "cert"))
    begin(snapshot, planner, C)
    advance(snapshot, planner, ev.BaseConflicted(C, ("a", "b"), ("f",), "key"))
    assert snapshot.frontier.place(C) == "blocked"
    graph = replace(snapshot.graph, tasks=(*snapshot.graph.tasks[:2], Task(C, "c", depends_on=(A,))))

    amendment = plan_amendment(snapshot, graph)
    machine.amend(snapshot, ev.GraphAmended(2, changed=amendment.changed), graph)

    assert amendment.lines == ("subtask c: dependsOn [a, b] → [a]",)
    assert snapshot.frontier.place(C) == "ready"


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"spec": "all otherwise"}, "spec"), ({"scope_policy": "strict"}, "scopePolicy")],
)
def test_what_every_subtask_was_made_from_cannot_change_once_one_started(changes: dict[str, str], word: str) -> None:
    snapshot, planner = fork()
    plan_amendment(snapshot, without_start(snapshot, **changes))
    begin(snapshot, planner, A)
    with pytest.raises(GraphError) as refused:
        plan_amendment(snapshot, without_start(snapshot, **changes))
    assert refused.value.message == (
        f"Graph g cannot be amended so: the graph's {word} cannot change any more: a started with it;"
        " give new subtasks their own."
    )


def test_base_stays_once_an_integration_began_with_it() -> None:
    snapshot, _ = fork()
    machine.step(snapshot, ev.IntegrationStarted(()), time=1.0)
    with pytest.raises(GraphError) as refused:
        plan_amendment(snapshot, snapshot.graph, base=NEWER)
    assert refused.value.next == f"coordinate-agents graph-integrate g --onto {NEWER}"


def test_differing_configurations_are_told_by_agent_and_part_without_values() -> None:
    old = Config(agents=(AgentConfig("a", "generic", command="x"), AgentConfig("b", "generic", command="x")))
    new = replace(
        old,
        agents=(AgentConfig("b", "generic", command="secret"), AgentConfig("c", "generic", command="x")),
        default_agent="b",
    )
    assert config_differences(old, new) == (
        "configuration: agent a removed",
        "configuration: agent b changed",
        "configuration: agent c added",
        "configuration: default agent changed",
    )
