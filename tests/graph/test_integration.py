"""Merge order, what is worth merging, and the meaning of what came out."""

from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.integration import heads_to_merge, merge_order
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.worktrees.model import Head

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
