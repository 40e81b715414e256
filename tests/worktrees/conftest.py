"""A repository, its judge, and a place for worktrees."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import repos

from coordinate_agents.worktrees.worktrees import GitWorktrees


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository on main with one commit."""
    return repos.make_repo(tmp_path / "repo")


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "trees")


@pytest.fixture
def trees(repo: Path) -> Iterator[GitWorktrees]:
    with GitWorktrees.open(str(repo)) as opened:
        yield opened


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that were synced, in order."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors have no names here")
    paths: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return paths
