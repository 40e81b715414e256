"""The creating process is killed at every git call, and at every step that needs none.

The same call again makes a whole worktree and leaves no other.
"""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import repos
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


# Every operation on a file that changes something, as Python announces it.
DIE_AT = """
import os, sys
from coordinate_agents.worktrees.worktrees import GitWorktrees
repo, root, base, nonce, last = sys.argv[1:]
count = 0
def hook(event, args):
    global count
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod"):
        count += 1
        if count == int(last):
            os.kill(os.getpid(), 9)
with GitWorktrees.open(repo) as trees:
    sys.addaudithook(hook)
    trees.create("g1", "api", base, root=root, nonce=nonce)
    os._exit(0)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose files git has to write, in a worktree that git has to register."""
    made = repos.make_repo(tmp_path / "repo")
    commit_file(made, ".gitattributes", "* ident\n")
    git(made, "config", "core.sharedRepository", "umask")
    return made


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
    """RC-03."""
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


@pytest.mark.parametrize("again", ["same nonce", "other nonce"])
def test_creation_without_git_that_was_killed_at_any_step_is_finished_by_the_next_call(
    tmp_path: Path, again: str
) -> None:
    repo = repos.make_repo(tmp_path / "repo")
    commit_file(repo, "d/x", "text\n")
    (repo / "link").symlink_to("d/x")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "link")
    base = git(repo, "rev-parse", "HEAD")
    for step in itertools.count(1):
        root = str(tmp_path / f"trees{step}")
        # A killed creation of one step must not help the next one.
        args = [sys.executable, "-c", DIE_AT, str(repo), root, base, "n1", str(step)]
        code = subprocess.run(args, capture_output=True, check=False).returncode
        with GitWorktrees.open(str(repo)) as trees:
            assert_whole(trees, repo, root, base, "n1" if again == "same nonce" or code == 0 else "n2")
        assert git(repo, "fsck", "--connectivity-only") == ""
        if code == 0:
            break
        assert code == -signal.SIGKILL
        git(repo, "worktree", "remove", "-f", "-f", str(next(Path(root).glob("*/g1/api"))))
        (repo / ".git/coordinate-agents/worktrees/g1/api.json").unlink()
        git(repo, "update-ref", "-d", "refs/heads/coordinate-agents/g1/api")
    assert step > 10
