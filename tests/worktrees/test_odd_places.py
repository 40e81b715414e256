"""Judging works in repositories with odd paths and the other object format."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench, agent
from repos import git

from coordinate_agents.worktrees.base import make_base
from coordinate_agents.worktrees.commits import commit_leftovers
from coordinate_agents.worktrees.integrate import integrate
from coordinate_agents.worktrees.model import Base, CommitRequest, Merged

PLACES = {
    "space": "a b",
    "newline": "a\nb",
    "colon": "a:b",
    "quote": 'a"b',
    "glob": "a*[b]",
    "foreign": "ünï",
    "percent": "%s",
}


@pytest.fixture(params=[*PLACES, "sha256"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    place = tmp_path / PLACES.get(request.param, "plain")
    bench = Bench(place, object_format="sha256" if request.param == "sha256" else "sha1")
    yield bench
    bench.close()


def test_whole_judging_works_in_an_odd_place(bench: Bench) -> None:
    (bench.repo / ".git" / "info" / "exclude").write_text("*.private\n")
    bench.commit("d/.gitattributes", "*.txt merge=union\n")
    bench.commit("d/.gitignore", "out\n")
    base = bench.commit("d/f.txt", "one\n")
    worktree = bench.worktree()
    agent(worktree, "touch d/out a.private; echo two >> d/f.txt; echo new > n; git init -q nested")

    seen = bench.examine(worktree)
    assert [(entry.path, entry.kind) for entry in seen.dirty] == [
        ("d/f.txt", "modified"),
        ("n", "untracked"),
        ("nested", "nested"),
    ]
    outcome = commit_leftovers(bench.judge, CommitRequest(worktree, bench.frozen, "work"))
    assert outcome.left_out == (("nested", "a nested repository"),)
    assert git(worktree.path, "status", "--porcelain") == "?? nested/"

    heads = [bench.head_of(slug, base, {"d/f.txt": f"one\n{slug}\n"}) for slug in "ab"]
    made = make_base(bench.judge, GRAPH, "d", base, heads)
    assert isinstance(made, Base)
    assert git(bench.repo, "show", f"{made.commit}:d/f.txt").split() == ["one", "a", "b"]
    merged = integrate(bench.judge, GRAPH, base, heads)
    assert isinstance(merged, Merged)
    assert merged.commit == made.commit
