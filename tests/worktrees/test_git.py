"""Running git: bounded in time and output, its group ended with it, nothing inherited."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from coordinate_agents.worktrees import git
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.process import MAX_ERROR_BYTES


def alias(script: str) -> list[str]:
    """Arguments with which git runs a shell script."""
    return ["-c", f"alias.x=!{script}", "x"]


def environment() -> dict[str, str]:
    return git.inherited_environment() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_ended(pid: int) -> None:
    deadline = time.monotonic() + 10
    while not ended(pid):
        assert time.monotonic() < deadline, f"{pid} lives"
        threading.Event().wait(0.01)


def test_output_error_and_code_are_returned(tmp_path: Path) -> None:
    result = git.run(alias("echo out; echo bad >&2; exit 3"), env=environment(), ok=(3,), cwd=str(tmp_path))

    assert result == git.GitResult(3, b"out\n", b"bad\n")
    assert (result.text, result.lines(), result.said) == ("out", ["out"], "bad")


def test_unexpected_code_is_an_error_with_the_last_line(tmp_path: Path) -> None:
    with pytest.raises(WorktreeError) as raised:
        git.run(alias("echo one >&2; echo two >&2; exit 7"), env=environment())
    assert raised.value.message == "git x failed with exit code 7: two"


def test_full_disk_has_its_own_code() -> None:
    with pytest.raises(WorktreeError) as raised:
        git.run(alias("echo 'error: unable to write: No space left on device' >&2; exit 1"), env=environment())
    assert raised.value.code == "DISK_FULL"


def test_a_file_that_found_no_room_is_told_as_a_full_disk(tmp_path: Path) -> None:
    """git names no cause of it: the disk is asked."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    try:
        unwritten = git.GitResult(128, b"", b"error: unable to write file f\n")
        full, other = (git.failure(["read-tree"], unwritten, wrote=str(place)) for place in (disk, tmp_path))
        assert (full.code, other.code) == ("DISK_FULL", "INTERNAL_ERROR")
        assert full.message == "git read-tree failed with exit code 128: error: unable to write file f: no space left"
        earlier = git.GitResult(128, b"", b"error: f: No space left on device\nfatal: could not reset\n")
        assert git.failure(["read-tree"], earlier).code == "DISK_FULL"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_input_larger_than_a_pipe_is_fed_while_output_is_read() -> None:
    given = os.urandom(3 << 20)
    assert git.run(alias("cat"), env=environment(), stdin=given).out == given


def test_input_that_nobody_reads_is_no_error() -> None:
    assert git.run(alias("exit 0"), env=environment(), stdin=b"x" * (1 << 20)).code == 0


def test_without_input_there_is_an_empty_one() -> None:
    assert git.run(alias("wc -c"), env=environment()).text.strip() == "0"


def test_past_the_time_the_whole_group_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    script = f"sleep 600 & echo $! $$ > {note}; wait"

    with pytest.raises(WorktreeError) as raised:
        git.run(alias(script), env=environment(), timeout_s=0.5)

    assert raised.value.message == "git x did not end within 0.5 s and was stopped."
    for pid in note.read_text().split():
        wait_until_ended(int(pid))


def test_past_the_time_git_can_clean_up_before_it_is_killed(tmp_path: Path) -> None:
    done = tmp_path / "cleaned"
    ready = tmp_path / "ready"
    script = f"trap 'touch {done}; exit 1' TERM; touch {ready}; while :; do sleep 0.02; done"

    with pytest.raises(WorktreeError):
        git.run(alias(script), env=environment(), timeout_s=1)

    assert ready.exists() and done.exists()


def test_program_that_ignores_term_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(WorktreeError):
        git.run(
            alias(f"trap '' TERM; echo $$ > {note}; while :; do sleep 0.05; done"), env=environment(), timeout_s=0.5
        )
    wait_until_ended(int(note.read_text()))


def test_process_that_git_leaves_behind_does_not_hold_the_call(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    started = time.monotonic()

    result = git.run(alias(f"sleep 300 & echo $! > {note}; echo done"), env=environment(), timeout_s=60)

    os.kill(int(note.read_text()), 9)
    assert result.text == "done"
    assert time.monotonic() - started < 30


def test_more_output_than_allowed_is_an_error_and_ends_git(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(WorktreeError) as raised:
        git.run(alias(f"echo $$ > {note}; yes"), env=environment(), max_bytes=1000)
    assert raised.value.message == "git x wrote more than 1000 bytes."
    wait_until_ended(int(note.read_text()))


def test_endless_error_output_is_cut_and_not_an_error() -> None:
    result = git.run(alias("yes | head -c 5000000 >&2; echo last"), env=environment())
    assert result.text == "last"
    assert len(result.err) <= MAX_ERROR_BYTES + 1


def test_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorktreeError) as raised:
        git.run(["version"], env=environment(), cwd=str(tmp_path / "gone"))
    assert "No such file or directory" in raised.value.message


def test_nul_in_an_argument_is_an_error() -> None:
    with pytest.raises(WorktreeError):
        git.run(["rev-parse", "a\0b"], env=environment())


def test_inherited_environment_holds_nothing_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_TRACE", "GIT_CONFIG_COUNT", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, "x")
    assert [name for name in git.inherited_environment() if name.startswith("GIT_")] == []


def test_relative_and_empty_path_entries_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert git._find_git(f":.:{os.environ['PATH']}") == git.git_program()


def test_old_git_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.37.9\n")
    old.chmod(0o755)

    with pytest.raises(WorktreeError) as raised:
        git._check_version(git._version_of(str(old)), str(old))

    assert raised.value.code == "REPOSITORY_UNSUPPORTED"
    assert raised.value.message == f"git 2.37.9 at {old} is too old: 2.38 or newer is needed."


def test_version_with_a_vendor_suffix_is_read(tmp_path: Path) -> None:
    vendor = tmp_path / "git"
    vendor.write_text("#!/bin/sh\necho 'git version 2.39.5 (Apple Git-154)'\n")
    vendor.chmod(0o755)
    assert git._version_of(str(vendor)) == "2.39.5"


def test_many_threads_run_git_at_once() -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(10):
            text = f"{number}-{turn}"
            if git.run(alias("cat"), env=environment(), stdin=text.encode()).text != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
