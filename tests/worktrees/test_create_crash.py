"""The creating process is killed at every git call; the same call again makes a whole worktree and leaves no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repos import commit_file, git

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.worktrees import GitWorktrees

CREATE = """
import sys
from coordinate_agents.worktrees.worktrees import GitWorktrees
repo, root, base, nonce = sys.argv[1:]
with GitWorktrees.open(repo) as trees:
    trees.create("g1", "api", base, root=root, nonce=nonce)
"""


def create_and_die(tmp_path: Path, repo: Path, root: str, base: str, *, nonce: str, at: str, when: str) -> None:
    """Run `create` in a child whose git kills it before or after the first call with the word `at`."""
    folder = tmp_path / "deadly"
    folder.mkdir(exist_ok=True)
    real = next(p for p in os.environ["PATH"].split(":") if Path(p, "git").exists())
    before, after = ("kill -9 $PPID; exit 1", "") if when == "before" else ("", "kill -9 $PPID")
    # This one is kept: it is over with the line that says so.
    until = '| while read line; do test "$line" = "commit: ok" && kill -9 $PPID; echo "$line"; done'
    rest = until if (at, when) == ("update-ref", "after") else ""
    (folder / "git").write_text(
        f'#!/bin/sh\ncase " $* " in *" {at} "*) {before}\n"{real}/git" "$@" {rest}\ncode=$?\n{after}\n'
        "exit $code ;; esac\n"
        f'exec "{real}/git" "$@"\n'
    )
    (folder / "git").chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    child = subprocess.run([sys.executable, "-c", CREATE, str(repo), root, base, nonce], env=env, capture_output=True)
    assert child.returncode == -9, child.stderr.decode()


def assert_whole(trees: GitWorktrees, repo: Path, root: str, base: str, nonce: str) -> None:
    made = trees.create("g1", "api", base, root=root, nonce=nonce)
    assert made.nonce == nonce
    assert trees.is_intact(made) is None
    assert git(made.path, "status", "--porcelain") == ""
    assert git(made.path, "rev-parse", "HEAD") == base
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2
    assert len(list((repo / ".git/worktrees").iterdir())) == 1
    assert [path.name for path in Path(made.path).parent.iterdir()] == ["api"]


POINTS = [("update-ref", "before"), ("update-ref", "after"), ("add", "before"), ("add", "after")]
POINTS += [("read-tree", "before"), ("read-tree", "after")]


REUSE_POINTS = [(at, when) for at in ("update-ref", "symbolic-ref", "read-tree", "-u") for when in ("before", "after")]


@pytest.mark.parametrize(("at", "when"), POINTS)
@pytest.mark.parametrize("again", ["same nonce", "other nonce"])
def test_killed_creation_is_finished_by_the_next_call(
    repo: Path, root: str, tmp_path: Path, at: str, when: str, again: str
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    create_and_die(tmp_path, repo, root, base, nonce="n1", at=at, when=when)

    with GitWorktrees.open(str(repo)) as trees:
        assert_whole(trees, repo, root, base, "n1" if again == "same nonce" else "n2")


@pytest.mark.parametrize(("at", "when"), REUSE_POINTS)
def test_killed_reuse_is_finished_and_leaves_no_file_of_the_earlier_attempt(
    repo: Path, root: str, tmp_path: Path, at: str, when: str
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    with GitWorktrees.open(str(repo)) as trees:
        first = trees.create("g1", "api", base, root=root, nonce="n1")
        work = commit_file(Path(first.path), "work.txt", "work\n")
        create_and_die(tmp_path, repo, root, base, nonce="n2", at=at, when=when)
        later = commit_file(repo, "later.txt", "later\n")

        assert_whole(trees, repo, root, later, "n3")

        assert work in trees.runtime_refs("g1").values()


def test_folder_that_appeared_after_a_killed_creation_is_kept(repo: Path, root: str, tmp_path: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    create_and_die(tmp_path, repo, root, base, nonce="n1", at="update-ref", when="before")
    with GitWorktrees.open(str(repo)) as trees:
        path = Path(os.path.realpath(root), trees.facts.key, "g1", "api")
        path.rename(path.with_name("away"))
        path.mkdir()
        (path / "mine").write_text("mine")

        with pytest.raises(WorktreeError) as raised:
            trees.create("g1", "api", base, root=root, nonce="n1")

        assert raised.value.code == "WORKTREE_CONFLICT"
        assert (path / "mine").read_text() == "mine"


def test_files_that_somebody_put_into_a_half_made_folder_are_kept(repo: Path, root: str, tmp_path: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    create_and_die(tmp_path, repo, root, base, nonce="n1", at="add", when="before")
    with GitWorktrees.open(str(repo)) as trees:
        path = Path(os.path.realpath(root), trees.facts.key, "g1", "api")
        (path / "mine").write_text("mine")
        for nonce in ("n1", "n2"):
            with pytest.raises(WorktreeError) as raised:
                trees.create("g1", "api", base, root=root, nonce=nonce)
            assert raised.value.code == "WORKTREE_CONFLICT"
        assert (path / "mine").read_text() == "mine"


def test_record_that_a_power_cut_took_is_replaced_by_the_callers_nonce(
    repo: Path, root: str, tmp_path: Path, trees: GitWorktrees
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    create_and_die(tmp_path, repo, root, base, nonce="n1", at="read-tree", when="before")
    Path(trees.facts.state_dir, "worktrees/g1/api.json").unlink()

    assert_whole(trees, repo, root, base, "n1")
