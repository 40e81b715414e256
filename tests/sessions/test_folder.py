"""Whole files, no links, and the lock that says whether a host lives."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinate_agents.sessions import folder as folders

HOLDER = """
import os, sys
from coordinate_agents.sessions import folder as folders
held = folders.claim(folders.open_folder(sys.argv[1]))
print("held" if held is not None else "refused", flush=True)
sys.stdin.read()
"""

WRITER = """
import sys
from coordinate_agents.sessions import folder as folders
folder = folders.open_folder(sys.argv[1])
for round_ in range(100):
    folders.write_whole(folder, "f", bytes([b"ab"[round_ % 2]]) * 200_000)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = folders.open_folder(str(tmp_path))
    yield descriptor
    os.close(descriptor)


def hold(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_lock_of_a_living_process_is_seen_and_its_death_frees_it(folder: int, tmp_path: Path) -> None:
    with hold(tmp_path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert folders.lock(folder) is None
        assert folders.lock(folder, shared=True) is None
        holder.kill()
    looks = [folders.lock(folder, shared=True) for _ in range(2)]
    assert None not in looks
    for look in looks:
        os.close(look)  # type: ignore[arg-type]


def test_claim_is_given_once_even_after_the_holder_is_gone(folder: int, tmp_path: Path) -> None:
    first = folders.claim(folder)
    assert first is not None
    os.close(first)
    assert folders.claim(folder) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive"]


def test_lock_where_nothing_was_started_is_an_error_and_makes_no_file(folder: int, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        folders.lock(folder, shared=True)
    assert list(tmp_path.iterdir()) == []


def test_file_is_replaced_whole_and_for_the_owner_alone(folder: int, tmp_path: Path) -> None:
    folders.write_whole(folder, "f", b"first")
    folders.write_whole(folder, "f", b"2")
    assert (tmp_path / "f").read_bytes() == b"2"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_reader_never_sees_a_part(folder: int, tmp_path: Path) -> None:
    contents = [bytes([letter]) * 200_000 for letter in b"ab"]
    folders.write_whole(folder, "f", contents[0])
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)]) as writer:
        while writer.poll() is None:
            assert folders.read_whole(folder, "f", 1 << 20) in contents
    assert writer.returncode == 0


def test_links_are_neither_read_nor_written_through(folder: int, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("secret")
    (tmp_path / "f").symlink_to(victim)
    with pytest.raises(OSError):
        folders.read_whole(folder, "f", 100)
    folders.write_whole(folder, "f", b"new")
    assert victim.read_text() == "secret"
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError):
        folders.open_folder(str(tmp_path / "link"))


def test_missing_file_is_none_and_a_large_or_odd_one_is_refused(folder: int, tmp_path: Path) -> None:
    assert folders.read_whole(folder, "f", 10) is None
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        folders.read_whole(folder, "f", 10)
    os.mkfifo(tmp_path / "pipe")
    assert folders.read_whole(folder, "pipe", 10) == b""
