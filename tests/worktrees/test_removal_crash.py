"""A removal, and its undoing, is killed at every change of a folder and every git call; the same call then finishes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repos import commit_file, git

from coordinate_agents.worktrees.model import BringBackRequest, RemovalRequest, Removed, Worktree
from coordinate_agents.worktrees.worktrees import GitWorktrees

# Ends the process with SIGKILL at the n-th event that changes a file or starts git; says how many it passed otherwise.
DEADLY = """
import os, signal, sys
left = int(sys.argv[1])
passed = 0
def hook(name, arguments):
    global passed
    if name not in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "subprocess.Popen", "os.symlink"):
        return
    passed += 1
    if passed == left:
        os.kill(os.getpid(), signal.SIGKILL)
from coordinate_agents.worktrees.model import *
from coordinate_agents.worktrees.worktrees import GitWorktrees
with GitWorktrees.open(sys.argv[2]) as trees:
    work = eval(sys.argv[3])
    sys.addaudithook(hook)
    work(trees)
print(passed)
"""


def die(repo: Path, at: int, work: str) -> int | None:
    """Run the work in a child that dies at its `at`-th step; None: it died, else how many steps there were."""
    argv = [sys.executable, "-c", DEADLY, str(at), str(repo), work]
    child = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    if child.returncode == -9:
        return None
    assert child.returncode == 0, child.stderr
    return int(child.stdout)


@pytest.fixture
def base(repo: Path) -> str:
    return commit_file(repo, ".gitignore", "out/\n")


def fill(made: Worktree) -> None:
    commit_file(Path(made.path), "work", "work\n")
    for name in ("out/a/b/file", "out/c/file", "out/file"):
        path = Path(made.path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def whole(top: str) -> dict[str, str]:
    return {str(path.relative_to(top)): path.read_text() for path in Path(top).rglob("*") if path.is_file()}


# Enough to meet every part of the work, and few enough for a quick test.
STEPS = [1, 2, *range(4, 58, 6)]
UNDO_STEPS = [1, 2, *range(4, 44, 5)]


@pytest.mark.parametrize("at", STEPS)
def test_killed_removal_loses_nothing_and_is_finished_by_the_next_call(
    repo: Path, root: str, trees: GitWorktrees, base: str, at: int
) -> None:
    made = trees.create("g1", "api", base, root=root, nonce="n1")
    fill(made)
    tip = git(made.path, "rev-parse", "HEAD")
    request = RemovalRequest(made, "g1", "api", "")
    if die(repo, at, f"lambda trees: trees.remove({request!r})") is not None:
        pytest.skip(f"a removal has fewer steps than {at}")

    seen = trees.contents(request)
    assert seen.refusal is None
    assert isinstance(trees.remove(request), Removed)

    assert not Path(root).exists() or not any(Path(root).rglob("*"))
    assert not any((repo / ".git/worktrees").glob("*"))
    assert git(repo, "rev-parse", made.branch) == tip
    assert tip in git(repo, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/g1/api/").split()


@pytest.mark.parametrize("at", STEPS)
def test_killed_removal_is_taken_back_or_finished_before_the_worktree_is_used_again(
    repo: Path, root: str, trees: GitWorktrees, base: str, at: int
) -> None:
    made = trees.create("g1", "api", base, root=root, nonce="n1")
    fill(made)
    before = whole(made.path)
    request = RemovalRequest(made, "g1", "api", "")
    if die(repo, at, f"lambda trees: trees.remove({request!r})") is not None:
        pytest.skip(f"a removal has fewer steps than {at}")

    trees.settle_removal("g1", "api", made)

    if os.path.lexists(made.path):
        assert trees.is_intact(made) is None
        assert whole(made.path) == before
    else:
        again = trees.recreate("g1", "api", made, root=root, nonce="n2")
        assert git(again.path, "status", "--porcelain") == ""
        assert whole(again.path)["work"] == "work\n"
    assert [path.name for path in Path(made.path).parent.iterdir()] == ["api"]


@pytest.mark.parametrize("at", UNDO_STEPS)
def test_killed_undo_is_finished_by_the_next_call(
    repo: Path, root: str, trees: GitWorktrees, base: str, at: int
) -> None:
    made = trees.create("g1", "api", base, root=root, nonce="n1")
    fill(made)
    Path(made.path, "work").write_text("changed\n")
    Path(made.path, "new").write_text("new\n")
    before = whole(made.path)
    tip = git(made.path, "rev-parse", "HEAD")
    frozen = trees.freeze()
    request = RemovalRequest(made, "g1", "api", frozen)
    commit = trees.set_aside(request)
    assert isinstance(trees.remove(RemovalRequest(made, "g1", "api", frozen, discarded=commit)), Removed)
    back = BringBackRequest("g1", "api", base, tip, "n2", commit)
    work = f"lambda trees: trees.bring_back({back!r}, root={root!r}, frozen={frozen!r})"
    if die(repo, at, work) is not None:
        pytest.skip(f"an undo has fewer steps than {at}")

    again = trees.bring_back(back, root=root, frozen=frozen)

    assert {**whole(again.worktree.path), ".git": ""} == {**before, ".git": ""}
    assert trees.is_intact(again.worktree) is None
    assert git(repo, "rev-parse", made.branch) == tip


@pytest.mark.parametrize("at", [1, 3, 6, 9, 12])
def test_killed_discard_leaves_the_worktree_whole_and_the_next_one_makes_one_commit(
    repo: Path, root: str, trees: GitWorktrees, base: str, at: int
) -> None:
    made = trees.create("g1", "api", base, root=root, nonce="n1")
    fill(made)
    Path(made.path, "new").write_text("new\n")
    before = whole(made.path)
    request = RemovalRequest(made, "g1", "api", trees.freeze())
    if die(repo, at, f"lambda trees: trees.set_aside({request!r})") is not None:
        pytest.skip(f"it has fewer steps than {at}")
    assert whole(made.path) == before

    commit = trees.set_aside(request)

    pins = git(repo, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/g1/api/discard-*")
    assert pins.split() == [commit]
