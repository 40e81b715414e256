"""What starts now and why the rest does not; the order; the queue; longest paths."""

import random
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.frontier import Frontier
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.order import longest_remaining
from coordinate_agents.graph.schedule import (
    Deferred,
    Limits,
    Plan,
    ReadyQueue,
    Running,
    Start,
    plan,
)
from coordinate_agents.graph.scope import conflict

A, B, C, D, E = (SubtaskId(name) for name in "abcde")


def task(subtask: SubtaskId, *, writes: str | None = None, needs: str = "", agent: str = "claude") -> Task:
    return Task(
        id=subtask,
        title=subtask,
        agent=agent,
        writes=None if writes is None else tuple(writes.split()),
        needs=tuple(needs.split()),
    )


def tasks(*several: Task) -> Mapping[SubtaskId, Task]:
    return {each.id: each for each in several}


def running(each: Task, *, holds_slot: bool = True) -> Running:
    return Running(each.id, each.writes, each.needs, each.agent, holds_slot)


PLAIN = tasks(*(task(each) for each in (A, B, C, D, E)))


def test_free_slots_are_filled_in_the_order_given() -> None:
    assert plan([C, A, B], [], PLAIN, Limits(2)) == Plan((Start(C), Start(A)))


def test_explained_plan_gives_everybody_a_reason() -> None:
    assert plan([B, C, D], [running(PLAIN[A])], PLAIN, Limits(2), explain="all") == Plan(
        (Start(B),),
        (Deferred(C, "SLOTS", "all 2 slots are taken"), Deferred(D, "SLOTS", "all 2 slots are taken")),
    )


def test_full_slots_end_the_reading_of_the_queue() -> None:
    def endless() -> Iterator[SubtaskId]:
        yield A
        raise AssertionError("read past the last slot")

    assert plan(endless(), [], PLAIN, Limits(1)) == Plan((Start(A),))


def test_write_conflict_with_a_running_subtask_defers_with_both_patterns_and_the_next_is_tried() -> None:
    known = tasks(task(A, writes="src/**"), task(B, writes="docs/x src/api/**"), task(C, writes="lib/**"))
    assert plan([B, C], [running(known[A])], known, Limits(4)) == Plan(
        (Start(C),),
        (Deferred(B, "WRITE_INTENT_CONFLICT", "writes src/api/**, and a writes src/**", A, ("src/api/**", "src/**")),),
    )


def test_write_conflict_between_two_that_would_start_now_defers_the_second() -> None:
    known = tasks(task(A, writes="src/**"), task(B, writes="./src"), task(C))
    made = plan([A, B, C], [], known, Limits(4))
    assert made.start == (Start(A), Start(C))
    assert [(each.subtask, each.other, each.patterns) for each in made.deferred] == [(B, A, ("./src", "src/**"))]


def test_floating_pattern_in_a_conflict_is_explained() -> None:
    known = tasks(task(A, writes="api.txt"), task(B, writes="ui.txt"))
    assert plan([A, B], [], known, Limits(4)).deferred == (
        Deferred(
            B,
            "WRITE_INTENT_CONFLICT",
            'writes ui.txt, and a writes api.txt ("api.txt" is any depth; "./api.txt" is the root only)',
            A,
            ("ui.txt", "api.txt"),
        ),
    )


def test_unknown_and_empty_intents_conflict_with_nobody() -> None:
    known = tasks(task(A, writes="."), task(B), task(C, writes=""))
    assert plan([A, B, C], [], known, Limits(4)) == Plan((Start(A), Start(B), Start(C)))


def test_subtask_without_its_slot_keeps_its_intent_and_its_tokens() -> None:
    known = tasks(task(A, writes="src/**", needs="db"), task(B, writes="src/x"), task(C, needs="db"), task(D))
    made = plan([B, C, D], [running(known[A], holds_slot=False)], known, Limits(1, {"db": 1}), explain="all")
    assert made.start == (Start(D),)
    assert [(each.subtask, each.reason) for each in made.deferred] == [(B, "WRITE_INTENT_CONFLICT"), (C, "RESOURCE")]


def test_subtask_that_can_go_on_takes_the_next_slot_before_new_ones() -> None:
    held = running(PLAIN[A], holds_slot=False)
    made = plan([B, C], [held], PLAIN, Limits(1), resuming=[A], explain="all")
    assert made == Plan(
        (Start(A, is_resumed=True),),
        (
            Deferred(B, "PRECEDENCE", "a was started before and takes the free slot", A),
            Deferred(C, "SLOTS", "all 1 slots are taken"),
        ),
    )


def test_subtask_that_can_go_on_waits_while_all_slots_are_taken() -> None:
    known = [running(PLAIN[A], holds_slot=False), running(PLAIN[B])]
    assert plan([C], known, PLAIN, Limits(1), resuming=[A]) == Plan(
        (), (Deferred(A, "SLOTS", "all 1 slots are taken"),)
    )


def test_paused_agent_holds_only_its_own_starts() -> None:
    known = tasks(task(A, agent="claude"), task(B, agent="codex"))
    limits = Limits(4, paused_agents={"claude": "RATE_LIMITED until 12:30"})
    assert plan([A, B], [], known, limits) == Plan(
        (Start(B),), (Deferred(A, "AGENT_PAUSED", "agent claude is paused: RATE_LIMITED until 12:30"),)
    )


def test_paused_agent_holds_its_resuming_subtask_too() -> None:
    limits = Limits(4, paused_agents={"claude": "RATE_LIMITED"})
    made = plan([], [running(PLAIN[A], holds_slot=False)], PLAIN, limits, resuming=[A])
    assert made == Plan((), (Deferred(A, "AGENT_PAUSED", "agent claude is paused: RATE_LIMITED"),))


def test_tokens_are_counted_over_running_and_starting() -> None:
    known = tasks(task(A, needs="db"), task(B, needs="db db"), task(C, needs="db"), task(D, needs="gpu"))
    made = plan([B, C, D], [running(known[A])], known, Limits(4, {"db": 2}))
    assert made == Plan(
        (Start(C),),
        (
            Deferred(B, "RESOURCE", "needs 2 of db; 1 of 2 free"),
            Deferred(D, "RESOURCE", "needs 1 of gpu; 0 of 0 free"),
        ),
    )


def test_bounded_number_of_starts_is_kept() -> None:
    made = plan([A, B], [], PLAIN, Limits(4, max_starts=1), explain="all")
    assert made == Plan((Start(A),), (Deferred(B, "MAX_STARTS", "as many as --max-starts allows were started"),))


def test_closed_graph_starts_nothing_new_but_resumes() -> None:
    limits = Limits(4, closed="DISK_LOW: 1 GiB free")
    made = plan([B], [running(PLAIN[A], holds_slot=False)], PLAIN, limits, resuming=[A], explain="all")
    assert made == Plan((Start(A, is_resumed=True),), (Deferred(B, "CLOSED", "DISK_LOW: 1 GiB free"),))


def test_lowered_concurrency_starts_nothing_until_enough_have_ended() -> None:
    assert plan([C], [running(PLAIN[A]), running(PLAIN[B])], PLAIN, Limits(1)) == Plan(())


# --- order -----------------------------------------------------------------------------------------------------------


def queue_of(*entries: tuple[SubtaskId, int, int]) -> ReadyQueue:
    """A queue over subtasks with a priority and a longest remaining path, all added in this order."""
    queue = ReadyQueue(
        {name: Task(id=name, title=name, priority=priority) for name, priority, _ in entries},
        {name: remaining for name, _, remaining in entries},
    )
    for name, _, _ in entries:
        queue.add(name)
    return queue


def test_queue_gives_priority_then_longest_path_then_id() -> None:
    queue = queue_of((E, 0, 1), (D, 0, 2), (C, 0, 2), (B, 5, 1), (A, -1, 9))
    assert list(queue) == ["b", "c", "d", "e", "a"]
    assert list(queue) == ["b", "c", "d", "e", "a"], "reading takes nothing out"


def test_queue_forgets_what_was_taken_out_and_takes_it_again() -> None:
    queue = queue_of((A, 0, 1), (B, 0, 1), (C, 0, 1))
    queue.discard(B)
    queue.discard(B)
    assert (list(queue), len(queue), B in queue) == (["a", "c"], 2, False)
    queue.add(B)
    queue.add(B)
    assert (list(queue), len(queue), B in queue) == (["a", "b", "c"], 3, True)
    with pytest.raises(KeyError):
        queue.add(D)


@given(
    places=st.lists(st.tuples(st.integers(-1, 1), st.integers(1, 3)), min_size=40, max_size=40),
    acts=st.lists(st.tuples(st.integers(0, 39), st.booleans()), max_size=120),
)
def test_queue_equals_a_sorted_list_after_any_acts(places: list[tuple[int, int]], acts: list[tuple[int, bool]]) -> None:
    names = [SubtaskId(f"{number:02d}") for number in range(40)]
    order = {name: (-priority, -longest, name) for name, (priority, longest) in zip(names, places, strict=True)}
    queue = queue_of(*((name, *place) for name, place in zip(names, places, strict=True)))
    expected = set(names)
    for number, is_added in acts:
        if is_added:
            queue.add(names[number])
            expected.add(names[number])
        else:
            queue.discard(names[number])
            expected.discard(names[number])
        assert list(queue) == sorted(expected, key=order.__getitem__)
        assert len(queue) == len(expected)


def test_parked_subtask_comes_back_when_the_one_in_its_way_has_ended() -> None:
    known = tasks(task(A, writes="src/**"), task(B, writes="src/x"), task(C, writes="src/y"), task(D))
    queue = ReadyQueue(known, dict.fromkeys(known, 1))
    for each in (B, C, D):
        queue.add(each)
    made = plan(queue.candidates({A}), [running(known[A])], known, Limits(4))
    queue.park(made.deferred)
    assert (list(queue.candidates({A})), len(queue), B in queue) == (["d"], 3, True)
    queue.discard(C)
    queue.add(B)
    assert (list(queue.candidates({A})), len(queue), C in queue) == (["d"], 2, False)
    assert list(queue.candidates({D})) == ["b", "d"]


def test_parked_subtask_that_was_taken_out_and_put_in_again_is_there_once() -> None:
    queue = queue_of((A, 0, 1), (B, 0, 1))
    queue.park([Deferred(B, "WRITE_INTENT_CONFLICT", "", C, ("x", "x"))])
    queue.discard(B)
    queue.add(B)
    assert list(queue.candidates({C})) == ["a", "b"]
    assert list(queue.candidates(())) == ["a", "b"]
    assert len(queue) == 2


def test_only_a_write_conflict_with_somebody_parks() -> None:
    queue = queue_of((A, 0, 1), (B, 0, 1))
    queue.park(
        [Deferred(A, "SLOTS", ""), Deferred(B, "PRECEDENCE", "", C), Deferred(D, "WRITE_INTENT_CONFLICT", "", C)]
    )
    assert list(queue.candidates({C})) == ["a", "b"]


@given(
    writes=st.lists(st.sampled_from(["src/**", "src/a/**", "src/b", "lib/**", "lib/x"]), min_size=1, max_size=12),
    slots=st.integers(1, 4),
    ends=st.lists(st.integers(0, 11), min_size=40, max_size=40),
)
def test_parking_never_changes_what_starts(writes: list[str], slots: int, ends: list[int]) -> None:
    known = tasks(*(task(SubtaskId(f"{at:02d}"), writes=text) for at, text in enumerate(writes)))
    queue, plain = (ReadyQueue(known, dict.fromkeys(known, 1)) for _ in range(2))
    for name in known:
        queue.add(name)
        plain.add(name)
    now: dict[SubtaskId, Running] = {}
    for end in ends:
        made = plan(queue.candidates(now), now.values(), known, Limits(slots))
        assert made.start == plan(plain, now.values(), known, Limits(slots)).start
        queue.park(made.deferred)
        for start in made.start:
            queue.discard(start.subtask)
            plain.discard(start.subtask)
            now[start.subtask] = running(known[start.subtask])
        if now:
            del now[sorted(now)[end % len(now)]]
    assert (len(queue), len(plain)) == (0, 0)


def test_disconnected_parts_run_in_the_same_order_every_time() -> None:  # SC-11
    # Forty subtasks in eight chains of five that know nothing of each other.
    names = [SubtaskId(f"p{part}-{step}") for part in range(8) for step in range(5)]
    depends_on = {name: (names[at - 1],) if at % 5 else () for at, name in enumerate(names)}
    expected = [f"p{part}-{step}" for step in range(5) for part in range(8)]
    assert _sequence(depends_on) == expected
    shuffled = list(depends_on.items())
    random.Random(7).shuffle(shuffled)
    assert _sequence(dict(shuffled)) == expected


def _sequence(depends_on: Mapping[SubtaskId, tuple[SubtaskId, ...]]) -> list[SubtaskId]:
    """The order of starts with one slot, everything succeeding."""
    known = {name: Task(id=name, title=name) for name in depends_on}
    frontier, queue = Frontier(depends_on), ReadyQueue(known, longest_remaining(depends_on))
    started: list[SubtaskId] = []
    changed = set(frontier.ready())
    while True:
        for name in changed:
            if frontier.place(name) == "ready":
                queue.add(name)
            else:
                queue.discard(name)
        if frontier.is_ended:
            return started
        (start,) = plan(queue, [], known, Limits(1)).start
        started.append(start.subtask)
        changed = {*frontier.set(start.subtask, "running"), *frontier.set(start.subtask, "succeeded")}


# --- any plan --------------------------------------------------------------------------------------------------------

WRITES = st.one_of(st.none(), st.lists(st.sampled_from(["a/**", "a/b", "c/*.py", "d", "./e"]), max_size=2).map(tuple))


@st.composite
def situations(draw: st.DrawFn) -> tuple[Mapping[SubtaskId, Task], list[Running], list[SubtaskId], Limits]:
    names = [SubtaskId(name) for name in "abcdefgh"]
    known = {
        name: Task(
            id=name, title=name, agent=draw(st.sampled_from(["x", "y"])), writes=draw(WRITES),
            needs=tuple(draw(st.lists(st.just("db"), max_size=2))),
        )
        for name in names
    }  # fmt: skip
    split = draw(st.integers(0, 8))
    limits = Limits(
        draw(st.integers(1, 6)),
        {"db": draw(st.integers(0, 2))},
        draw(st.sampled_from([{}, {"x": "quota"}])),
        draw(st.sampled_from([None, 0, 2])),
    )
    return (
        known,
        [running(known[name], holds_slot=draw(st.booleans())) for name in names[:split]],
        names[split:],
        limits,
    )


@given(situation=situations())
def test_any_plan_keeps_every_limit_and_wastes_no_slot(
    situation: tuple[Mapping[SubtaskId, Task], list[Running], list[SubtaskId], Limits],
) -> None:
    known, now, ready, limits = situation
    resuming = [each.subtask for each in now if not each.holds_slot][:1]
    made = plan(ready, now, known, limits, resuming=resuming, explain="all")
    started = [each.subtask for each in made.start if not each.is_resumed]
    assert sorted([*started, *(each.subtask for each in made.deferred if each.subtask in ready)]) == ready
    busy = sum(each.holds_slot for each in now)
    assert not made.start or busy + len(made.start) <= limits.max_concurrency
    assert limits.max_starts is None or len(started) <= limits.max_starts
    tokens = sum(len(each.needs) for each in now) + sum(len(known[each].needs) for each in started)
    assert tokens <= limits.resources["db"] or not any(known[each].needs for each in started)
    holding = {**{each.subtask: each.writes for each in now}, **{each: known[each].writes for each in started}}
    for each in started:
        assert known[each].agent not in limits.paused_agents
        assert not any(conflict(known[each].writes, writes) for other, writes in holding.items() if other != each)
    for refused in made.deferred:
        if refused.reason == "WRITE_INTENT_CONFLICT":
            assert refused.patterns is not None
            assert conflict(refused.patterns[:1], refused.patterns[1:]) == refused.patterns
            assert refused.other in holding
        if refused.reason in ("SLOTS", "PRECEDENCE"):
            assert busy + len(made.start) >= limits.max_concurrency
    assert plan(ready, list(reversed(now)), known, limits, resuming=resuming, explain="all") == made
    assert plan(ready, now, known, limits, resuming=resuming).start == made.start


# --- longest paths ---------------------------------------------------------------------------------------------------


def test_longest_remaining_path_counts_the_subtask_itself() -> None:
    assert longest_remaining({A: (), B: (A,), C: (A, B), D: (A,), E: ()}) == {A: 3, B: 2, C: 1, D: 1, E: 1}
    assert longest_remaining({}) == {}


def test_longest_remaining_path_of_a_deep_chain_needs_no_recursion() -> None:
    names = [SubtaskId(f"{number:05d}") for number in range(10_000)]
    chain = {name: tuple(names[at - 1 : at]) if at else () for at, name in enumerate(names)}
    assert longest_remaining(chain)[names[0]] == 10_000


def test_cycle_has_no_longest_path() -> None:
    with pytest.raises(ValueError, match=r"^the dependencies form a cycle$"):
        longest_remaining({A: (B,), B: (A,), C: ()})
