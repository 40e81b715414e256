"""Merge order, what is worth merging, and the meaning of what came out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.integration import Outcome, heads_to_merge, merge_order, outcome_of
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.worktrees.model import Head, MergeConflict, Merged

BASE = CommitId("b" * 40)
ONE, TWO, THREE = (CommitId(digit * 40) for digit in "123")
A, B, C, D = (SubtaskId(name) for name in "abcd")


def graph(**depends_on: str) -> TaskGraph:
    tasks = (
        Task(id=SubtaskId(name), title=name, depends_on=tuple(SubtaskId(each) for each in needed.split()))
        for name, needed in depends_on.items()
    )
    return TaskGraph(GraphId("g"), "g", tuple(tasks))


def test_order_is_topological_with_ties_by_id() -> None:
    assert merge_order(graph(z="", d="z", c="z", b="c d", a="b", y="")) == ("y", "z", "c", "d", "b", "a")


@given(st.permutations("abcdef"), st.data())
def test_order_depends_on_the_edges_alone(names: list[str], data: st.DataObject) -> None:
    needed = {
        name: " ".join(data.draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else [])
        for at, name in enumerate(names)
    }
    order = merge_order(graph(**needed))
    assert sorted(order) == sorted(names)
    for at, name in enumerate(order):
        assert set(needed[name].split()) <= set(order[:at])
    assert merge_order(graph(**dict(sorted(needed.items())))) == order


def test_heads_are_those_that_bring_something_once_each() -> None:
    verified = {A: ONE, B: BASE, D: ONE, C: TWO}
    order = (D, A, B, C, SubtaskId("never-run"))
    assert heads_to_merge(order, verified, base=BASE) == (Head("d", ONE), Head("c", TWO))


def test_no_head_is_nothing_to_integrate_not_integrated() -> None:  # IN-03
    assert heads_to_merge((A,), {A: BASE}, base=BASE) == ()
    assert outcome_of("g", None) == Outcome("nothing", "nothing to integrate: no subtask changed anything")


def test_conflict_names_the_pair_the_paths_and_what_was_applied() -> None:  # IN-01
    conflict = MergeConflict(("a", "b"), ("f", "new\nline"), (Head("a", ONE),), "key")
    assert outcome_of("g", conflict) == Outcome(
        "conflict",
        "conflict in f and new\\nline: b does not merge with a; applied before it: a",
        "INTEGRATION_CONFLICT",
        (A, B),
        ("f", "new\nline"),
        "coordinate-agents graph-diff g",
    )


def test_clean_merge_is_integrated_and_names_what_it_had_already() -> None:
    merged = Merged(THREE, "e" * 40, (Head("b", TWO),), already=(Head("a", ONE),))
    assert outcome_of("g", merged) == Outcome("integrated", "b integrated at 333333333333; contained already: a")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            CheckOutcome("tests", ("make",), "failed", exit_code=2, commit=THREE),
            "check tests failed with exit code 2, on a and b together at 333333333333",
        ),
        (
            CheckOutcome("tests", ("make",), "passed", exit_code=0, commit=TWO),
            "check tests ran on 222222222222 instead of 333333333333, on a and b together at 333333333333",
        ),
    ],
)
def test_merge_that_breaks_a_check_names_who_was_merged(check: CheckOutcome, message: str) -> None:  # IN-07
    merged = Merged(THREE, "e" * 40, (Head("a", ONE), Head("b", TWO)))
    assert outcome_of("g", merged, [check]) == Outcome(
        "checks-failed", message, "CHECK_FAILED", (A, B), next="coordinate-agents graph-inspect g --part failure"
    )


def test_merge_that_passes_its_checks_is_integrated() -> None:
    merged = Merged(THREE, "e" * 40, (Head("a", ONE),))
    passed = CheckOutcome("tests", ("make",), "passed", exit_code=0, commit=THREE)
    assert outcome_of("g", merged, [passed]) == Outcome("integrated", "a integrated at 333333333333")
