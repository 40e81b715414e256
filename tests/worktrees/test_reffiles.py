"""Refs, HEAD and reflogs read as files: only regular files, only what looks like an id."""

import os
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.reffiles import (
    Resolved,
    packed_refs,
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
