"""The demonstration of the README, as its first command runs it once the environment is ready."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from world import FIXTURES, until

pytestmark = pytest.mark.story


def _environment(place: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(place), "DEMO_NOTE": str(place / "note" / "demo.json"), "DEMO_PAUSE_S": "0.05"}


def _run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FIXTURES / "demo" / "walk.py"), *arguments],
        env=_environment(place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )


def _folders(place: Path) -> list[Path]:
    return sorted(place.glob("coordinate-agents-demo-*"))


def test_the_demonstration_shows_the_result_and_removes_its_folder_twice(tmp_path: Path) -> None:
    for _ in range(2):
        done = _run(tmp_path)
        assert done.returncode == 0, done.stdout
        for text in ("Join receipt and discount", "shop/checkout.py", "exactly as before", "Processes left: none"):
            assert text in done.stdout
        assert _folders(tmp_path) == []


def test_kept_it_says_how_to_look_further_and_that_works(tmp_path: Path) -> None:
    done = _run(tmp_path, "--keep")
    assert done.returncode == 0, done.stdout
    [folder] = _folders(tmp_path)
    assert f". {folder}/env.sh" in done.stdout
    look = subprocess.run(
        ["sh", "-c", f". {folder}/env.sh; coordinate-agents graph-status shop"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert look.returncode == 0, look.stderr
    assert "checkout" in look.stdout


def _driver(parent: int) -> int:
    """The graph-run of the demonstration."""
    [found] = [each for each in psutil.Process(parent).children() if "graph-run" in each.cmdline()]
    return found.pid


@pytest.mark.parametrize("killed", ["with-its-children", "alone", "its-driver"])
def test_killed_in_the_middle_the_same_command_finishes(tmp_path: Path, killed: str) -> None:
    with (tmp_path / "first.out").open("wb") as out:
        first = subprocess.Popen(
            [sys.executable, str(FIXTURES / "demo" / "walk.py")],
            env={**_environment(tmp_path), "DEMO_PAUSE_S": "0.5"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    branch = "refs/heads/coordinate-agents/shop/orders"
    until(
        lambda: any(list((folder / "shop/.git").glob(branch)) for folder in _folders(tmp_path)) or None,
        "the first subtask has a branch",
    )
    if killed == "with-its-children":
        os.killpg(first.pid, signal.SIGKILL)
    else:
        os.kill(first.pid if killed == "alone" else _driver(first.pid), signal.SIGKILL)
    assert first.wait(10) == (130 if killed == "its-driver" else -signal.SIGKILL)
    done = _run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Going on with the demonstration that was interrupted" in done.stdout
    assert "exactly as before" in done.stdout
    assert _folders(tmp_path) == []
