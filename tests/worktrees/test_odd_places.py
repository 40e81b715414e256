"""Judging works in repositories with odd paths, the other object format, half a history, and from many threads."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bench import GRAPH, Bench, agent
from repos import git

from coordinate_agents.worktrees.base import make_base
from coordinate_agents.worktrees.commits import commit_leftovers
from coordinate_agents.worktrees.integrate import integrate
from coordinate_agents.worktrees.model import Base, CommitRequest, Head, Merged

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


@pytest.mark.parametrize("options", [["--depth", "2"], ["--filter=blob:none"]])
def test_shallow_and_partial_clones_are_judged(tmp_path: Path, options: list[str]) -> None:
    origin = Bench(tmp_path / "origin")
    for number in range(4):
        origin.commit("f", f"{number}\n")
    git(origin.repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", *options, f"file://{origin.repo}", str(tmp_path / "clone"))
    bench = Bench(tmp_path, repo=tmp_path / "clone")
    worktree = bench.worktree()
    agent(worktree, "echo new > f; git commit -qam x; echo left > left")
    head = git(worktree.path, "rev-parse", "HEAD")

    seen = bench.examine(worktree)
    assert (seen.head, seen.base_is_ancestor, seen.commit_count, seen.contained_in) == (head, True, 1, ())
    assert [entry.path for entry in seen.dirty] == ["left"]

    heads = [Head("a", head), bench.head_of("b", worktree.base, {"b": "1"})]
    made = make_base(bench.judge, GRAPH, "d", worktree.base, heads)
    assert isinstance(made, Base)
    assert isinstance(integrate(bench.judge, GRAPH, worktree.base, heads), Merged)
    bench.close()


def test_many_threads_see_what_one_sees(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    worktrees = {slug: bench.worktree(slug) for slug in "abcd"}
    for slug, worktree in worktrees.items():
        agent(worktree, f"echo {slug} > {slug}; git add {slug}; git commit -qm {slug}; echo left > left-{slug}")
    alone = {slug: bench.examine(worktree, slug) for slug, worktree in worktrees.items()}

    with ThreadPoolExecutor(8) as threads:
        futures = [(slug, threads.submit(bench.examine, worktrees[slug], slug)) for slug in "abcd" * 4]
        together = [(slug, future.result(timeout=60)) for slug, future in futures]

    assert all(seen == alone[slug] for slug, seen in together)
    bench.close()
