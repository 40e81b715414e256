"""A recorded resolution is used wherever the same two commits meet again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench
from repos import git

from coordinate_agents.worktrees.base import make_base
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.integrate import integrate
from coordinate_agents.worktrees.model import Base, MergeConflict, Merged
from coordinate_agents.worktrees.resolutions import record


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def merge(bench: Bench, parents: tuple[str, ...], text: str) -> str:
    blob = git(bench.repo, "hash-object", "-w", "--stdin", input=text)
    tree = git(bench.repo, "mktree", input=f"100644 blob {blob}\tf\n")
    return git(bench.repo, "commit-tree", tree, "-m", "by hand", *(f"-p{parent}" for parent in parents))


def test_resolved_conflict_is_used_in_bases_and_integration(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    c = bench.head_of("c", base, {"c": "1\n"})
    conflict = make_base(bench.judge, GRAPH, "d", base, [a, b, c])
    assert isinstance(conflict, MergeConflict)
    assert (conflict.ours, conflict.theirs) == (a.commit, b.commit)

    resolved = merge(bench, (conflict.ours, conflict.theirs), "both\n")
    name = record(bench.judge, GRAPH, resolved)

    assert git(bench.repo, "rev-parse", name) == resolved
    made = make_base(bench.judge, GRAPH, "d", base, [a, b, c], resolutions=[resolved])
    assert isinstance(made, Base)
    assert git(bench.repo, "show", f"{made.commit}:f") == "both"
    assert git(bench.repo, "rev-parse", f"{made.commit}^1") == resolved
    merged = integrate(bench.judge, GRAPH, base, [b, a], resolutions=[resolved])
    assert isinstance(merged, Merged)
    assert merged.commit == resolved


def test_ref_of_a_resolution_that_is_not_recorded_decides_nothing(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    record(bench.judge, GRAPH, merge(bench, (a.commit, b.commit), "planted\n"))

    assert isinstance(make_base(bench.judge, GRAPH, "d", base, [a, b]), MergeConflict)


def test_resolution_is_used_also_where_git_would_merge_cleanly(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"a": "1\n"}), bench.head_of("b", base, {"b": "2\n"})
    by_hand = merge(bench, (a.commit, b.commit), "both\n")

    made = make_base(bench.judge, GRAPH, "d", base, [a, b], resolutions=[by_hand])

    assert made == Base(by_hand, (a, b))


def test_resolution_of_parents_that_were_redone_is_not_used(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    resolved = merge(bench, (a.commit, b.commit), "both\n")
    again = bench.head_of("a", base, {"f": "3\n"})

    assert isinstance(make_base(bench.judge, GRAPH, "d", base, [again, b], resolutions=[resolved]), MergeConflict)


def test_later_resolution_replaces_an_earlier_one(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    first = merge(bench, (a.commit, b.commit), "first\n")
    second = merge(bench, (b.commit, a.commit), "second\n")
    assert record(bench.judge, GRAPH, first) == record(bench.judge, GRAPH, second)

    made = make_base(bench.judge, GRAPH, "d", base, [a, b], resolutions=[first, second])

    assert made == Base(second, (a, b))


def test_commit_that_is_no_merge_of_two_is_refused(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})

    for parents in ((a.commit,), (base, a.commit, b.commit)):
        with pytest.raises(WorktreeError, match="no merge of two commits"):
            record(bench.judge, GRAPH, merge(bench, parents, "x\n"))


def test_resolution_that_is_gone_counts_as_none(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})

    assert isinstance(make_base(bench.judge, GRAPH, "d", base, [a, b], resolutions=["d" * 40]), MergeConflict)
    assert isinstance(integrate(bench.judge, GRAPH, base, [a, b], resolutions=["d" * 40]), MergeConflict)
