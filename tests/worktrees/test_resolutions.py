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
from coordinate_agents.worktrees.resolutions import find, record


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
    record(bench.judge, GRAPH, resolved)

    made = make_base(bench.judge, GRAPH, "d", base, [a, b, c])
    assert isinstance(made, Base)
    assert git(bench.repo, "show", f"{made.commit}:f") == "both"
    assert git(bench.repo, "rev-parse", f"{made.commit}^1") == resolved
    merged = integrate(bench.judge, GRAPH, base, [b, a])
    assert isinstance(merged, Merged)
    assert merged.commit == resolved
    assert isinstance(make_base(bench.judge, "other", "d", base, [a, b]), MergeConflict)


def test_later_resolution_replaces_an_earlier_one(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    record(bench.judge, GRAPH, merge(bench, (a.commit, b.commit), "first\n"))
    second = merge(bench, (b.commit, a.commit), "second\n")

    record(bench.judge, GRAPH, second)

    assert find(bench.judge, GRAPH, a.commit, b.commit) == second


def test_commit_that_is_no_merge_of_two_is_refused(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})

    for parents in ((a.commit,), (base, a.commit, b.commit)):
        with pytest.raises(WorktreeError, match="no merge of two commits"):
            record(bench.judge, GRAPH, merge(bench, parents, "x\n"))


def test_ref_that_was_set_to_another_commit_counts_as_none(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    name = record(bench.judge, GRAPH, merge(bench, (a.commit, b.commit), "both\n"))
    git(bench.repo, "update-ref", name, a.commit)

    assert find(bench.judge, GRAPH, a.commit, b.commit) is None
    assert isinstance(make_base(bench.judge, GRAPH, "d", base, [a, b]), MergeConflict)
