"""Places of subtasks: the cases of a failing graph, and random changes against a computation from scratch."""

from collections.abc import Mapping, Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.frontier import Frontier, Place, RunState
from coordinate_agents.graph.model import SubtaskId


def ids(*names: str) -> tuple[SubtaskId, ...]:
    return tuple(SubtaskId(name) for name in names)


def edges(**depends_on: str) -> dict[SubtaskId, tuple[SubtaskId, ...]]:
    """``edges(a="", b="a")``: b depends on a."""
    return {SubtaskId(name): ids(*needed.split()) for name, needed in depends_on.items()}


def places(frontier: Frontier, names: str) -> str:
    return " ".join(frontier.place(SubtaskId(name)) for name in names)


A, B, C, D = ids("a", "b", "c", "d")
CHAIN = edges(a="", b="a", c="b")
DIAMOND = edges(a="", b="a", c="a", d="b c")


def test_new_graph_has_its_roots_ready_and_the_rest_waiting() -> None:
    frontier = Frontier(DIAMOND)
    assert places(frontier, "abcd") == "ready waiting waiting waiting"
    assert frontier.ready() == {"a"}
    assert frontier.counts() == {
        "ready": 1, "waiting": 3, "blocked": 0, "running": 0, "succeeded": 0, "failed": 0, "stopped": 0,
    }  # fmt: skip
    assert not frontier.is_ended


def test_failed_prerequisite_blocks_its_whole_chain() -> None:  # SC-01
    frontier = Frontier(CHAIN)
    frontier.set(A, "running")
    assert frontier.set(A, "failed") == {"a", "b", "c"}
    assert places(frontier, "abc") == "failed blocked blocked"
    assert frontier.blockers(B) == frontier.blockers(C) == ("a",)
    assert frontier.is_ended


def test_failed_prerequisite_made_ready_again_unblocks_its_chain() -> None:  # SC-01, resume
    frontier = Frontier(CHAIN, {A: "failed"})
    assert frontier.set(A, "idle") == {"a", "b", "c"}
    assert places(frontier, "abc") == "ready waiting waiting"
    assert frontier.blockers(C) == ()


def test_failing_arm_of_a_diamond_leaves_the_other_arm_alone() -> None:  # SC-02
    frontier = Frontier(DIAMOND, {A: "succeeded", B: "running", C: "running"})
    assert frontier.set(B, "failed") == {"b", "d"}
    assert not frontier.is_ended
    assert frontier.set(C, "succeeded") == {"c"}
    assert places(frontier, "abcd") == "succeeded failed succeeded blocked"
    assert frontier.blockers(D) == ("b",)
    assert frontier.is_ended


def test_success_of_the_last_prerequisite_makes_ready() -> None:
    frontier = Frontier(DIAMOND, {A: "succeeded", B: "succeeded", C: "running"})
    assert frontier.set(C, "succeeded") == {"c", "d"}
    assert frontier.ready() == {"d"}


@pytest.mark.parametrize("state", ["base-conflict", "base-missing"])
def test_subtask_whose_own_base_cannot_be_made_is_blocked_by_itself(state: RunState) -> None:
    frontier = Frontier(edges(a="", b="", c="a b", d="c"), {A: "succeeded", B: "succeeded"})
    assert frontier.set(C, state) == {"c", "d"}
    assert places(frontier, "abcd") == "succeeded succeeded blocked blocked"
    assert frontier.blockers(C) == frontier.blockers(D) == ("c",)
    assert frontier.set(C, "idle") == {"c", "d"}
    assert places(frontier, "abcd") == "succeeded succeeded ready waiting"


def test_two_blockers_both_have_to_go() -> None:
    frontier = Frontier(edges(a="", b="", c="a b", d="c"), {A: "failed", B: "stopped"})
    assert frontier.blockers(D) == ("a", "b")
    assert frontier.set(A, "idle") == {"a"}
    assert frontier.place(D) == "blocked"
    assert frontier.set(B, "idle") == {"b", "c", "d"}


def test_redone_prerequisite_takes_readiness_back_but_not_what_runs_or_succeeded() -> None:
    frontier = Frontier(edges(a="", b="a", c="a", d="a"), {A: "succeeded", B: "running", C: "succeeded"})
    assert frontier.set(A, "idle") == {"a", "d"}
    assert places(frontier, "abcd") == "ready running succeeded waiting"
    assert frontier.set(A, "failed") == {"a", "d"}
    assert places(frontier, "abcd") == "failed running succeeded blocked"
    assert frontier.set(B, "idle") == {"b"}
    assert frontier.place(B) == "blocked"


def test_running_subtask_shields_its_dependents_from_a_failed_ancestor() -> None:
    frontier = Frontier(CHAIN, {A: "failed"})
    assert frontier.set(B, "running") == {"b", "c"}
    assert places(frontier, "abc") == "failed running waiting"
    assert frontier.blockers(B) == ()


def test_failure_of_an_ancestor_does_not_pass_through_a_running_subtask() -> None:
    frontier = Frontier(edges(a="", b="a", c="b"), {B: "running"})
    assert frontier.set(A, "failed") == {"a"}
    assert places(frontier, "abc") == "failed running waiting"
    assert frontier.set(B, "idle") == {"b", "c"}
    assert places(frontier, "abc") == "failed blocked blocked"
    assert frontier.set(A, "idle") == {"a", "b", "c"}


def test_repeated_prerequisite_counts_once() -> None:
    frontier = Frontier({A: (), B: (A, A)})
    frontier.set(A, "succeeded")
    assert frontier.ready() == {"b"}


def test_same_state_again_changes_nothing() -> None:
    frontier = Frontier(CHAIN, {A: "failed"})
    assert frontier.set(A, "failed") == frozenset()


def test_unknown_id_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Frontier({A: (B,)})
    with pytest.raises(KeyError):
        Frontier(CHAIN).set(D, "running")


def test_all_blockers_are_the_first_few_of_each() -> None:
    frontier = Frontier(edges(a="", b="", c="", d="a b c", e="d"), {A: "failed", B: "failed", C: "failed"})
    assert frontier.all_blockers(limit=2) == {"d": ("a", "b"), "e": ("a", "b")}


# --- random graphs, random changes -----------------------------------------------------------------------------------

STATES: Sequence[RunState] = get_args(RunState)


@st.composite
def graphs(draw: st.DrawFn) -> dict[SubtaskId, tuple[SubtaskId, ...]]:
    """A DAG of up to 9 subtasks; ids in no particular order relative to the edges."""
    names = draw(st.permutations(ids(*"abcdefghi"[: draw(st.integers(1, 9))])))
    return {
        name: tuple(draw(st.lists(st.sampled_from(names[:position]), max_size=3, unique=True)) if position else ())
        for position, name in enumerate(names)
    }


def from_scratch(
    depends_on: Mapping[SubtaskId, Sequence[SubtaskId]], states: Mapping[SubtaskId, RunState]
) -> tuple[dict[SubtaskId, Place], dict[SubtaskId, tuple[SubtaskId, ...]]]:
    """Places and blockers by recursion over the definition. `depends_on` has prerequisites first."""
    shown: dict[SubtaskId, Place] = {}
    roots: dict[SubtaskId, set[SubtaskId]] = {}
    for subtask, needed in depends_on.items():
        state = states[subtask]
        roots[subtask] = set()
        for other in needed:
            if states[other] in ("failed", "stopped", "base-conflict", "base-missing"):
                roots[subtask].add(other)
            elif shown[other] == "blocked":
                roots[subtask] |= roots[other]
        if state in ("base-conflict", "base-missing"):
            shown[subtask], roots[subtask] = "blocked", {subtask}
        elif state != "idle":
            shown[subtask], roots[subtask] = state, set()
        elif roots[subtask]:
            shown[subtask] = "blocked"
        else:
            shown[subtask] = "ready" if all(states[other] == "succeeded" for other in needed) else "waiting"
    return shown, {subtask: tuple(sorted(found)) for subtask, found in roots.items()}


@given(depends_on=graphs(), data=st.data())
def test_incremental_places_equal_places_from_scratch(
    depends_on: dict[SubtaskId, tuple[SubtaskId, ...]], data: st.DataObject
) -> None:
    # Half of them idle, in any mixture with the rest: what passes badness on is what matters.
    mixed = st.sampled_from([*STATES, "idle", "idle", "idle", "idle"])
    states: dict[SubtaskId, RunState] = {name: data.draw(mixed) for name in depends_on}
    frontier = Frontier(depends_on, states)
    names = sorted(depends_on)
    changes = st.lists(st.tuples(st.sampled_from(names), mixed), min_size=1, max_size=12)
    for subtask, state in data.draw(changes):
        before, _ = from_scratch(depends_on, states)
        states[subtask] = state
        after, roots = from_scratch(depends_on, states)
        assert frontier.set(subtask, state) == {name for name in names if before[name] != after[name]}
        assert {name: frontier.place(name) for name in depends_on} == after
        assert {name: frontier.blockers(name) for name in depends_on} == roots
        assert frontier.all_blockers() == {name: roots[name] for name in names if after[name] == "blocked"}
        assert frontier.ready() == {name for name in names if after[name] == "ready"}
        assert sum(frontier.counts().values()) == len(names)
    started_so = Frontier(depends_on, states)
    assert {name: started_so.place(name) for name in names} == {name: frontier.place(name) for name in names}
