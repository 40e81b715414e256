"""The machine gives no more: disk full at some write, no descriptor left, a state that cannot be written.

A clear error that is no bug of ours, nothing lost, and after room was made the same work is finished.
"""

import fcntl
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashes import MERGED
from world import RUN_LIMIT_S, Done, World

pytestmark = pytest.mark.story


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB."""
    made = tmp_path / "disk"
    made.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", made], capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    yield made
    subprocess.run(["umount", "-l", made], check=True)


def _world(disk: Path, home: Path) -> World:
    (disk / "place").mkdir()
    world = World(disk / "place", home)
    MERGED.prepare(world)
    config = home / ".config" / "coordinate-agents" / "config.yaml"
    config.write_text(config.read_text() + "minFreeDisk: 0\n")
    return world


def _is_finished(world: World) -> None:
    again = MERGED.run(world)
    if again.code != 0:
        again = world.run("graph-run", "plan", "--integrate", "--retry-failed")
    assert again.code == 0, str(again)
    assert world.files("coordinate-agents/plan/integration") == {"README.md": "# sample", "f-a": "a", "f-b": "b"}
    assert world.run("graph-verify", "plan", "--json").data["holds"]


@pytest.mark.parametrize("free_kib", [8, 300, 560, 700])
def test_a_disk_that_fills_up_is_told_and_the_work_goes_on_after_room_was_made(
    disk: Path, isolation: Path, free_kib: int
) -> None:
    world = _world(disk, isolation)
    before = world.user_state()
    filler = disk / "filler"
    filler.write_bytes(b"x" * max(0, shutil.disk_usage(disk).free - free_kib * 1024))
    full = MERGED.run(world)
    assert full.code != 0, str(full)
    assert "A bug of ours" not in full.err and "Traceback" not in full.err, str(full)
    assert "DISK_FULL" in full.err or "No space left" in full.err or full.code == 4, str(full)
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    _is_finished(world)
    assert world.user_state() == before
    world.assert_nothing_left("plan")


# A calm run needs 28 and more, as many as are started at once.
@pytest.mark.parametrize("limit", [18, 24])
def test_no_descriptor_left_is_told_and_the_work_goes_on_later(world: World, limit: int) -> None:
    MERGED.prepare(world)
    done = subprocess.run(
        world.command("graph-run", world.graph(MERGED.plan), "--integrate"),
        cwd=world.root,
        env=world.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    full = Done(("graph-run",), done.returncode, done.stdout, done.stderr)
    assert full.code == 4, str(full)
    assert "Too many open files" in full.err, str(full)
    assert "A bug of ours" not in full.err and "Traceback" not in full.err, str(full)
    _is_finished(world)
    world.assert_nothing_left("plan")


def test_looking_works_where_nothing_can_be_written(disk: Path, isolation: Path) -> None:
    world = _world(disk, isolation)
    assert MERGED.run(world).code == 0
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for words in (
        ("graph-list",),
        ("graph-status", "plan"),
        ("graph-events", "plan"),
        ("graph-inspect", "plan"),
        ("graph-inspect", "plan", "a"),
        ("graph-diff", "plan"),
        ("graph-verify", "plan"),
        ("graph-export", "plan"),
    ):
        done = world.run(*words, "--json")
        assert done.code == 0, str(done)
    refused = world.run("graph-run", "plan")
    assert refused.code in (1, 2), str(refused)
    assert "Next:" in refused.err and "A bug of ours" not in refused.err, str(refused)


def test_a_lock_on_a_file_of_the_same_number_on_another_disk_is_no_held_lock(disk: Path, isolation: Path) -> None:
    place = disk / "place"
    place.mkdir()
    world = World(place, isolation)
    other = disk.parent / "other"
    other.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", other], check=True)
    try:
        state = world.root / ".git" / "coordinate-agents"
        state.mkdir()
        ours, numbered = state / "lock", {path.stat().st_ino: path for path in _numbered(other)}
        ours.touch()
        with numbered[ours.stat().st_ino].open("w") as there, ours.open("w") as here:
            fcntl.flock(there, fcntl.LOCK_EX)
            assert world.held_locks() == []
            fcntl.flock(here, fcntl.LOCK_EX)
            assert world.held_locks() == [str(ours)]
    finally:
        subprocess.run(["umount", "-l", other], check=True)


def _numbered(folder: Path) -> Iterator[Path]:
    """As many empty files as a small disk has numbers in use elsewhere."""
    for number in range(400):
        path = folder / str(number)
        path.touch()
        yield path
