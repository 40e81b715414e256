"""Refs, HEAD and reflogs read as files: only regular files, only what looks like an id."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.reffiles import (
    Resolved,
    packed_refs,
    read_all,
    read_head,
    read_ref,
    read_refs,
    read_small,
    reflog_commits,
)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def test_refs_are_those_that_git_lists_loose_and_packed(repo: Path) -> None:
    git(repo, "branch", "packed")
    git(repo, "tag", "-a", "-m", "x", "v1")
    git(repo, "pack-refs", "--all")
    commit_file(repo, "f", "1\n")
    git(repo, "branch", "a/b/c")

    listed = git(repo, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()

    assert read_refs(repo / ".git", "refs/") == dict(line.split(" ") for line in listed)
    assert set(packed_refs(repo / ".git")) == {"refs/heads/main", "refs/heads/packed", "refs/tags/v1"}
    assert read_refs(repo / ".git", "refs/heads/a/") == {"refs/heads/a/b/c": git(repo, "rev-parse", "HEAD")}


def test_head_leads_through_symbolic_refs_to_the_last_name(repo: Path) -> None:
    head = git(repo, "rev-parse", "HEAD")
    git(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(repo, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert read_head(repo / ".git", repo / ".git") == Resolved("refs/heads/main", head)

    git(repo, "symbolic-ref", "HEAD", "refs/heads/unborn")
    assert read_head(repo / ".git", repo / ".git") == Resolved("refs/heads/unborn", None)

    git(repo, "update-ref", "--no-deref", "HEAD", head)
    assert read_head(repo / ".git", repo / ".git") == Resolved(None, head)


@pytest.mark.parametrize(
    "text",
    ["", "junk", "ref: /etc/passwd", "ref: refs/../config", "ref: refs/heads/a//b", "ABCDEF" * 7, "ref: HEAD"],
)
def test_strange_head_is_none(repo: Path, text: str) -> None:
    (repo / ".git" / "HEAD").write_text(text)

    assert read_head(repo / ".git", repo / ".git") is None


def test_circle_of_symbolic_refs_ends(repo: Path) -> None:
    (repo / ".git" / "refs" / "heads" / "x").write_text("ref: refs/heads/y\n")
    (repo / ".git" / "refs" / "heads" / "y").write_text("ref: refs/heads/x\n")

    assert read_ref(repo / ".git", "refs/heads/x") is None


def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b"x" * 5000)

    assert [read_small(tmp_path / name) for name in ("file", "link", "pipe", "big", "none", ".")] == [
        "x",
        None,
        None,
        None,
        None,
        None,
    ]


def test_reflog_names_every_commit_newest_first(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    second = commit_file(repo, "f", "1\n")
    git(repo, "commit", "-q", "--amend", "-m", "again")
    third = git(repo, "rev-parse", "HEAD")

    assert reflog_commits(repo / ".git" / "logs" / "HEAD") == (third, second, first)
    assert reflog_commits(repo / ".git" / "logs" / "none") == ()


def settle(path: Path) -> None:
    """Wait until the file's change time is old enough to be trusted."""
    while time.time_ns() - path.stat().st_ctime_ns < 200_000_000:
        time.sleep(0.01)


def test_ref_rewritten_in_place_with_its_old_modification_time_is_seen(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r")
    first = git(repo, "rev-parse", "HEAD")
    second = git(repo, "commit-tree", "-m", "x", "HEAD^{tree}")
    path = repo / ".git" / "refs" / "heads" / "main"
    settle(path)
    common = repo / ".git"
    assert read_refs(common, "refs/heads/") == {"refs/heads/main": first}
    times = path.stat()
    path.write_text(second + "\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_refs(common, "refs/heads/") == {"refs/heads/main": second}


def test_ref_moved_by_git_twice_at_once_is_seen_each_time(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r")
    commits = [git(repo, "commit-tree", "-m", str(n), "HEAD^{tree}") for n in range(20)]
    for commit in commits:
        git(repo, "update-ref", "refs/heads/moving", commit)
        assert read_refs(repo / ".git", "refs/heads/")["refs/heads/moving"] == commit


def test_ref_that_was_packed_or_deleted_after_a_look_is_right(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r")
    head = git(repo, "rev-parse", "HEAD")
    for name in ("a/one", "a/two", "b"):
        git(repo, "update-ref", f"refs/heads/{name}", head)
    settle(repo / ".git" / "refs" / "heads" / "b")
    whole = {f"refs/heads/{name}": head for name in ("a/one", "a/two", "b", "main")}
    assert read_refs(repo / ".git", "refs/heads/") == whole
    git(repo, "pack-refs", "--all", "--prune")
    assert read_refs(repo / ".git", "refs/heads/") == whole
    git(repo, "update-ref", "-d", "refs/heads/a/one")
    del whole["refs/heads/a/one"]
    assert read_refs(repo / ".git", "refs/heads/") == whole


HIDDEN = ("refs/coordinate-agents", "refs/heads/coordinate-agents")


def test_names_that_come_and_go_after_a_look_are_seen_though_listings_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(tmp_path / "repo")
    oid = git(repo, "rev-parse", "HEAD")
    other = commit_file(repo, "more", "more\n")
    common, top = repo / ".git", repo / ".git/refs/heads/x"
    git(repo, "update-ref", "refs/heads/x/one", oid)
    git(repo, "update-ref", "refs/heads/x/sub/two", oid)
    settle(top / "sub" / "two")
    lists: list[str] = []
    real = os.scandir

    def scandir(path: str) -> Any:
        lists.append(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    first = {"refs/heads/x/one": oid, "refs/heads/x/sub/two": oid}
    assert read_refs(common, "refs/heads/x/") == first
    assert len(lists) == 2
    assert read_refs(common, "refs/heads/x/") == first
    assert len(lists) == 2

    (top / "one").write_text(f"{other}\n")
    assert read_refs(common, "refs/heads/x/") == first | {"refs/heads/x/one": other}
    git(repo, "update-ref", "refs/heads/x/sub/three", oid)
    assert "refs/heads/x/sub/three" in read_refs(common, "refs/heads/x/")
    git(repo, "update-ref", "-d", "refs/heads/x/sub/two")
    git(repo, "update-ref", "-d", "refs/heads/x/sub/three")
    assert read_refs(common, "refs/heads/x/") == {"refs/heads/x/one": other}
    (top / "sub").mkdir(exist_ok=True)
    (top / "sub").rmdir()
    git(repo, "update-ref", "refs/heads/x/sub", oid)
    assert read_refs(common, "refs/heads/x/") == {"refs/heads/x/one": other, "refs/heads/x/sub": oid}


def test_all_refs_are_those_that_git_lists_symbolic_ones_too(repo: Path) -> None:
    old = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "packed")
    git(repo, "tag", "-a", "-m", "x", "v1")
    git(repo, "pack-refs", "--all")
    commit_file(repo, "f", "1\n")
    for name in ("refs/heads/ä/b", "refs/bisect/bad", "refs/remotes/origin/main", "refs/notes/x"):
        git(repo, "update-ref", name, "HEAD")
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(repo, "symbolic-ref", "refs/heads/packed", "refs/tags/v1")
    git(repo, "symbolic-ref", "refs/heads/nowhere", "refs/heads/none")
    for name in HIDDEN:
        git(repo, "update-ref", f"{name}/g/a", old)
        git(repo, "update-ref", f"{name}-x/g", old)

    found = read_all(repo / ".git", without=HIDDEN)

    lines = git(repo, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    listed = dict(line.split(" ") for line in lines if not line.startswith(tuple(f"{name}/" for name in HIDDEN)))
    assert found == listed
    assert listed["refs/heads/packed"] == listed["refs/tags/v1"]
    assert "refs/heads/nowhere" not in listed


@pytest.mark.parametrize(
    ("name", "text"),
    [("broken", "x\n"), ("zero", "0" * 40 + "\n"), ("empty", ""), ("sp ace", None), ("a..b", None), ("b@{1", None)],
)
def test_a_ref_that_only_git_can_judge_is_left_to_it(repo: Path, name: str, text: str | None) -> None:
    head = git(repo, "rev-parse", "HEAD")
    assert read_all(repo / ".git", without=()) == {"refs/heads/main": head}
    (repo / ".git/refs/heads" / name).write_text(f"{head}\n" if text is None else text)
    assert read_all(repo / ".git", without=()) is None


def test_a_link_among_the_refs_is_left_to_git(repo: Path) -> None:
    (repo / ".git/refs/heads/link").symlink_to("main")
    assert read_all(repo / ".git", without=()) is None
