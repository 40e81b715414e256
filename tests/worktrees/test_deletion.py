"""A folder is deleted whatever is in it: any depth, any mode, any name; links go, what they name stays."""

import os
import subprocess
from pathlib import Path

import pytest

from coordinate_agents.worktrees.deletion import delete_folder


def delete(folder: Path) -> None:
    parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        delete_folder(folder.name, parent)
    finally:
        os.close(parent)


def test_folders_without_rights_are_deleted_like_others(tmp_path: Path) -> None:
    """CL-07: what an agent made read-only, or unreadable, at any depth."""
    top = tmp_path / "tree"
    for name in ("a/b/c", "a/d", "e"):
        (top / name).mkdir(parents=True)
        (top / name / "file").write_text("x")
    for name, mode in (("a/b/c", 0o000), ("a/b", 0o555), ("a/d", 0o444), ("e", 0o000), ("", 0o500)):
        (top / name).chmod(mode)
    delete(top)
    assert not os.path.lexists(top)


def test_tree_deeper_than_the_limit_of_open_files_is_deleted(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    delete(top)
    assert not os.path.lexists(top)


def test_links_and_odd_names_go_and_the_targets_stay(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    top = tmp_path / "tree"
    (top / "folder").mkdir(parents=True)
    (top / "folder/link").symlink_to(outside)
    (top / "root").symlink_to("/")
    (top / "-rf\n").write_text("x")
    (top / os.fsdecode(b"\xff")).write_text("x")
    os.mkfifo(top / "folder/pipe")
    delete(top)
    assert not os.path.lexists(top)
    assert (outside / "kept").read_text() == "kept"


def test_what_cannot_be_deleted_stays_and_everything_else_goes(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/stuck").write_text("x")
    (top / "a/b/other").write_text("x")
    (top / "c").write_text("x")
    if subprocess.run(["chattr", "+i", top / "a/b/stuck"], capture_output=True).returncode != 0:
        pytest.skip("this file system has no immutable files")
    with pytest.raises(PermissionError):
        delete(top)
    left = [path for path in top.rglob("*") if path.is_file()]
    subprocess.run(["chattr", "-i", *left], check=True)
    assert [path.name for path in left] == ["stuck"]
    delete(top)
    assert not os.path.lexists(top)


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    delete(tmp_path / "nothing")
