"""A loose object is believed by its hash alone; whatever else there may be is git's to say."""

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from repos import git, make_repo

from coordinate_agents.worktrees.loose import loose_content

LIMIT = 1 << 16


@pytest.fixture(params=["sha1", "sha256"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", object_format=request.param)


def _path(repo: Path, oid: str) -> Path:
    return repo / ".git" / "objects" / oid[:2] / oid[2:]


def _read(repo: Path, oid: str, type_: str) -> bytes | None:
    return loose_content(str(repo / ".git" / "objects"), oid, type_, max_bytes=LIMIT)


def test_content_is_what_git_says_and_of_the_type_that_is_asked_for(repo: Path) -> None:
    commit = git(repo, "rev-parse", "HEAD")
    assert _read(repo, commit, "commit") == f"{git(repo, 'cat-file', 'commit', 'HEAD')}\n".encode()
    assert _read(repo, commit, "tree") is None
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    assert (_read(repo, tree, "tree") or b"").startswith(b"100644 ")


def _packs(repo: Path, path: Path) -> None:
    git(repo, "gc", "-q")


def _cuts(repo: Path, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-6])


def _has_more_behind_its_end(repo: Path, path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def _replaces(repo: Path, path: Path) -> None:
    path.write_bytes(zlib.compress(b"commit 3\0abc"))


def _lies_about_its_size(repo: Path, path: Path) -> None:
    path.write_bytes(zlib.compress(zlib.decompress(path.read_bytes()) + b"more"))


def _unpacks_to_much(repo: Path, path: Path) -> None:
    path.write_bytes(zlib.compress(b"commit 1000000000\0" + bytes(LIMIT * 4)))


def _is_a_link(repo: Path, path: Path) -> None:
    moved = path.rename(repo / "moved")
    path.symlink_to(moved)


def _is_a_pipe(repo: Path, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "change",
    [
        _packs,
        _cuts,
        _has_more_behind_its_end,
        _replaces,
        _lies_about_its_size,
        _unpacks_to_much,
        _is_a_link,
        _is_a_pipe,
    ],
)
def test_anything_else_is_left_to_git(repo: Path, change: Callable[[Path, Path], None]) -> None:
    commit = git(repo, "rev-parse", "HEAD")
    path = _path(repo, commit)
    path.chmod(0o644)
    change(repo, path)
    assert _read(repo, commit, "commit") is None
