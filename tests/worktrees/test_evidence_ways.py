"""Ways to exit 0 without having done the work: each shows in a fact of its own, honest work in none."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench import Bench, agent
from repos import git

from coordinate_agents.worktrees.model import Examination

WORK = "echo work > work; git add work; git commit -qm work; "

# Script of the agent, and the fact that gives it away.
WAYS: dict[str, tuple[str, Callable[[Examination], object]]] = {
    "nothing": ("true", lambda seen: seen.commit_count == 0),
    "dirty": ("echo work > work", lambda seen: seen.commit_count == 0 and seen.dirty_count == 1),
    "empty commit": ("git commit -q --allow-empty -m work", lambda seen: not seen.tree_differs),
    "detached": ("git checkout -q --detach; " + WORK, lambda seen: seen.head_state == "detached"),
    "other branch": ("git checkout -qb mine; " + WORK, lambda seen: seen.head_state == "other-branch"),
    "amended base": ("echo > work; git add work; git commit -q --amend -m x", lambda seen: not seen.base_is_ancestor),
    "commit below the base": ("git reset -q --hard HEAD~1; " + WORK, lambda seen: not seen.base_is_ancestor),
    "base squashed away": ("git reset -q --soft HEAD~1; git commit -qm z", lambda seen: not seen.base_is_ancestor),
    "orphan": ("git checkout -q --orphan o; git commit -qm o", lambda seen: seen.head_state == "other-branch"),
    "half committed": (WORK + "echo rest > rest", lambda seen: seen.dirty_count == 1),
    "mid-merge": (WORK + "git merge -q --no-commit --no-ff old; true", lambda seen: seen.operation == "merge"),
    "hidden by status settings": (
        WORK + "git config status.showUntrackedFiles no; echo rest > rest",
        lambda seen: [entry.path for entry in seen.dirty] == ["rest"],
    ),
    "hidden by index flags": (
        WORK + "git update-index --assume-unchanged README.md; echo rest >> README.md",
        lambda seen: [entry.path for entry in seen.dirty] == ["README.md"],
    ),
    "foreign old commit": ("git reset -q --hard old", lambda seen: seen.contained_in == ("refs/heads/old",)),
    "users branch moved": (
        WORK + "git update-ref refs/heads/stable HEAD",
        lambda seen: seen.moved_user_refs == ("refs/heads/stable",),
    ),
    "hidden by an own ignore rule": (
        WORK + "echo rest >> $(git rev-parse --git-common-dir)/info/exclude; echo > rest",
        lambda seen: seen.ignored_by_agent == ("rest",),
    ),
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit("second", "of main\n")
    git(bench.repo, "checkout", "-q", "-b", "old")
    bench.commit("old", "somebody else's\n")
    git(bench.repo, "checkout", "-q", "main")
    git(bench.repo, "branch", "stable")
    yield bench
    bench.close()


def gives_away(seen: Examination) -> list[str]:
    """The names of the facts that speak against the work."""
    facts = {
        "head_state": seen.head_state != "on-branch",
        "operation": seen.operation is not None,
        "base": not seen.base_is_ancestor,
        "tree": not seen.tree_differs,
        "contained": bool(seen.contained_in),
        "moved": bool(seen.moved_user_refs),
        "dirty": seen.dirty_count > 0,
    }
    return [name for name, is_against in facts.items() if is_against]


def test_honest_work_shows_in_no_fact(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, WORK)

    assert gives_away(bench.examine(worktree)) == []


@pytest.mark.parametrize("way", WAYS)
def test_way_without_work_shows_in_a_fact(bench: Bench, way: str) -> None:
    script, shows = WAYS[way]
    worktree = bench.worktree()
    agent(worktree, script)

    seen = bench.examine(worktree)

    assert gives_away(seen) != []
    assert shows(seen), seen
