"""What the two commands of the README say when something is missing. Nothing here needs a network."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STARTED_FIRST = ("fixtures/bootstrap.py", "fixtures/demo/demo.py", "tests/run.py")
NOTHING_CHANGED = "Kept: everything, nothing was changed."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that the setup needs, elsewhere."""
    place = tmp_path / "check out"
    for name in (*STARTED_FIRST, "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    return place


def _demo(checkout: Path, *interpreter: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(interpreter or (sys.executable,)), str(checkout / "fixtures/demo/demo.py")],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        timeout=100,
    )


def _program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("name", STARTED_FIRST)
def test_what_is_started_first_can_be_read_by_python_3_6(name: str) -> None:
    ast.parse((ROOT / name).read_text(), feature_version=(3, 6))


def test_an_old_python_is_named_and_told_what_is_needed(checkout: Path) -> None:
    # The version is the one thing that cannot be had here without an old interpreter.
    code = (
        "import runpy, sys; sys.version_info = (3, 8, 10, 'final', 0); "
        "sys.argv = sys.argv[1:]; sys.path.insert(0, ''); runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = _demo(checkout, sys.executable, "-c", code)
    assert done.returncode == 1
    assert "Python 3.8.10" in done.stderr
    assert "is too old: 3.11 or newer is needed." in done.stderr
    assert NOTHING_CHANGED in done.stderr
    assert not (checkout / ".venv").exists()


def test_an_absent_git_is_said(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = _demo(checkout, PATH=str(tmp_path / "empty"))
    assert (done.returncode, done.stderr) == (
        1,
        "git was not found on PATH: 2.38 or newer is needed.\n"
        "Kept: everything, nothing was changed.\nNext: install git and run this again\n",
    )


def test_an_old_git_is_said(checkout: Path, tmp_path: Path) -> None:
    old = _program(tmp_path / "old", "git", "echo git version 2.37.9")
    done = _demo(checkout, PATH=f"{old}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 1
    assert "is git version 2.37.9: 2.38 or newer is needed" in done.stderr
    assert NOTHING_CHANGED in done.stderr


def test_an_environment_of_somebody_else_that_does_not_work_is_kept(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "mine.txt").write_text("precious\n")
    done = _demo(checkout)
    assert done.returncode == 1
    assert "was not made by this command and does not work" in done.stderr
    assert [path.name for path in (checkout / ".venv").iterdir()] == ["mine.txt"]


def test_without_packages_pips_own_last_lines_are_shown_and_the_next_run_starts_over(checkout: Path) -> None:
    for first in (True, False):
        done = _demo(checkout, PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
        assert done.returncode == 1
        assert "pip could not install coordinate-agents (exit code 1). Its last lines:" in done.stderr
        assert "hatchling" in done.stderr
        assert ("Making .venv again: it is not whole" in done.stdout) is not first
    assert not (checkout / ".venv" / ".ready").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_checkout_that_cannot_be_written_is_said(checkout: Path) -> None:
    checkout.chmod(0o500)
    done = _demo(checkout)
    checkout.chmod(0o700)
    assert done.returncode == 1
    assert "The checkout cannot be written to" in done.stderr


def test_an_unknown_option_is_bad_usage(checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(checkout / "fixtures/demo/demo.py"), "--kep"], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "usage: demo.py [--keep]")
