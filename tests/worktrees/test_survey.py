"""One walk over a worktree: repositories, links to folders, folders that cannot be read."""

import os
from pathlib import Path
from typing import Any

import pytest
from repos import git

from coordinate_agents.worktrees import survey as module
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.survey import Found, Survey, survey


def test_walk_meets_repositories_and_folder_links_everywhere(tmp_path: Path) -> None:
    top = tmp_path / "top"
    for folder in (".git", "a/b", "build/deep/er", "odd", "there"):
        (top / folder).mkdir(parents=True)
    git(top, "init", "-q", "a/b")
    git(top, "init", "-q", "--separate-git-dir", str(tmp_path / "apart"), "build/deep/er")
    (top / "odd" / ".git").write_text("junk")
    (top / "to-folder").symlink_to("there")
    (top / "to-file").symlink_to("odd/.git")
    (top / "to-nothing").symlink_to("nowhere")
    (top / "circle").symlink_to("circle")
    (top / "outside").symlink_to(tmp_path)

    assert survey(str(top)) == Survey(
        repositories=(
            Found("a/b", top / "a/b/.git"),
            Found("build/deep/er", tmp_path / "apart"),
            Found("odd", None),
        ),
        folder_links=("outside", "to-folder"),
        unreadable=(),
    )


def test_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open" / "closed").mkdir(parents=True)
    real = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name == "closed":  # root, who may run the tests, can read everything
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)

    assert survey(str(tmp_path)).unreadable == ("open/closed",)


def test_path_longer_than_the_system_allows_is_unreadable_and_no_error(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    names = ["x" * 200] * 25
    for name in names:
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)

    found = survey(str(tmp_path)).unreadable

    assert len(found) == 1
    assert found[0].startswith("x" * 200 + "/")


def test_more_folders_than_the_limit_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FOLDERS", 3)
    for number in range(4):
        (tmp_path / str(number)).mkdir()

    with pytest.raises(WorktreeError, match="More than 3 folders"):
        survey(str(tmp_path))
