"""The contract of every driver: one file, run over all of them, with real children."""

# ruff: noqa: ASYNC110, ASYNC240
import hashlib
import os
import time
from pathlib import Path

import anyio
import pytest
from hosts import launch, lives, shell, text_of, until

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Driver, SessionId

pytestmark = pytest.mark.anyio
ID = SessionId("s1")


async def test_child_that_dies_at_once_is_reported_with_code_and_output(hosts: SessionHosts, driver: Driver) -> None:
    record = await hosts.start(launch("s1", "dies-at-once.sh", "7", driver=driver))
    end = await hosts.wait(ID)
    assert (record.id, record.driver) == (ID, driver)
    assert (end.cause, end.exit_code, end.signal, end.tail, end.survivors) == ("exit", 7, None, "last words", ())
    assert end.output_bytes == len("last words")
    assert end.log_path is not None
    assert Path(end.log_path).read_text() == "last words"


async def test_child_killed_by_a_signal_is_reported_with_the_signal(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(shell("s1", "kill -9 $$", driver=driver))
    end = await hosts.wait(ID)
    assert (end.cause, end.exit_code, end.signal) == ("exit", None, 9)


async def test_long_prompt_on_stdin_arrives_whole(hosts: SessionHosts, driver: Driver) -> None:
    prompt = os.urandom(150 << 10).hex().encode()
    await hosts.start(launch("s1", "reads-stdin.py", driver=driver, stdin=prompt))
    end = await hosts.wait(ID)
    assert end.tail == f"{len(prompt)} {hashlib.sha256(prompt).hexdigest()}"


async def test_child_that_never_reads_its_stdin_does_not_disturb(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(shell("s1", "exec <&-; echo fine", driver=driver, stdin=b"x" * 1_000_000))
    assert (await hosts.wait(ID)).tail == "fine"


async def test_command_that_does_not_exist_is_refused_and_recorded(hosts: SessionHosts, driver: Driver) -> None:
    with pytest.raises(SessionError) as caught:
        await hosts.start(launch("s1", "/nonexistent/agent", driver=driver))
    assert caught.value.code == "SPAWN_FAILED"
    assert "/nonexistent/agent" in caught.value.message
    facts = await hosts.look(ID)
    assert facts.liveness == "ended"
    assert facts.record is not None
    assert facts.record.state == "failed"
    assert facts.record.end is not None
    assert facts.record.end.cause == "spawn-failed"


async def test_file_that_is_no_program_is_refused(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF nothing")
    program.chmod(0o755)
    with pytest.raises(SessionError) as caught:
        await hosts.start(launch("s1", program, driver=driver))
    assert caught.value.code == "SPAWN_FAILED"
    assert "Exec format error" in caught.value.message


async def test_program_sees_the_name_it_was_called_by(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "/odd/name", "-c", "echo $0", executable="/bin/sh", driver=driver))
    assert (await hosts.wait(ID)).tail == "/odd/name"


async def test_folder_that_vanished_is_a_failed_start(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    with pytest.raises(SessionError) as caught:
        await hosts.start(launch("s1", "silent.sh", driver=driver, cwd=tmp_path / "gone"))
    assert caught.value.code == "SPAWN_FAILED"
    assert str(tmp_path / "gone") in caught.value.message


@pytest.mark.parametrize("argument", ["x" * 131_072, "a\0b"])
async def test_argument_that_cannot_be_passed_is_refused(hosts: SessionHosts, driver: Driver, argument: str) -> None:
    with pytest.raises(SessionError) as caught:
        await hosts.start(launch("s1", "silent.sh", argument, driver=driver))
    assert caught.value.code == "SPAWN_FAILED"
    assert (await hosts.look(ID)).liveness == "absent"


async def test_environment_that_is_too_large_is_a_failed_start(hosts: SessionHosts, driver: Driver) -> None:
    env = {f"V{number}": "x" * 100_000 for number in range(80)}
    with pytest.raises(SessionError) as caught:
        await hosts.start(launch("s1", "silent.sh", driver=driver, env=env))
    assert (caught.value.code, "Argument list too long" in caught.value.message) == ("SPAWN_FAILED", True)


async def test_time_out_ends_the_whole_tree(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    await hosts.start(launch("s1", "ignores-signals.sh", ready, driver=driver, timeout_s=0.5, close_bound_s=1.0))
    text_of(ready)
    started = time.monotonic()
    end = await hosts.wait(ID)
    assert (end.cause, end.signal, end.survivors) == ("timeout", 9, ())
    assert time.monotonic() - started < 5


async def test_background_process_that_holds_the_output_is_ended(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "holds-terminal.sh", driver=driver))
    with anyio.fail_after(5):
        end = await hosts.wait(ID)
    assert (end.exit_code, end.tail, end.survivors) == (0, "bye", ())


async def test_hidden_daemon_is_ended_before_the_end_is_reported(
    hosts: SessionHosts, driver: Driver, tmp_path: Path
) -> None:
    await hosts.start(launch("s1", "daemonises.py", tmp_path / "pid", driver=driver, cwd=tmp_path))
    end = await hosts.wait(ID)
    assert (end.exit_code, end.survivors) == (0, ())
    assert not lives(int(text_of(tmp_path / "pid")))


async def test_closed_terminal_is_no_exit(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    await hosts.start(launch("s1", "closes-terminal.sh", go, done, driver=driver))
    while (await hosts.look(ID)).last_line != "closing":
        await anyio.sleep(0.01)
    assert (await hosts.look(ID)).liveness == "live"
    go.touch()
    end = await hosts.wait(ID)
    assert (end.cause, end.exit_code, text_of(done)) == ("exit", 5, "done")


async def test_close_ends_a_child_in_raw_mode_without_a_terminal(
    hosts: SessionHosts, driver: Driver, tmp_path: Path
) -> None:
    await hosts.start(launch("s1", "closes-terminal.sh", tmp_path / "never", tmp_path / "done", driver=driver))
    assert await hosts.close(ID) == ()
    end = await hosts.wait(ID)
    assert end.cause == "close"
    assert not (tmp_path / "done").exists()


async def test_flood_without_a_line_end_is_bounded_and_the_log_says_so(hosts: SessionHosts, driver: Driver) -> None:
    size = 50 << 20
    await hosts.start(launch("s1", "noisy.py", str(size), driver=driver, log_bytes=1 << 20))
    facts = await hosts.look(ID)
    peak = 0
    while facts.liveness == "live":
        assert facts.record is not None
        assert facts.record.host is not None
        peak = max(peak, _resident_kb(facts.record.host.pid))
        facts = await hosts.look(ID)
    end = await hosts.wait(ID)
    assert end.output_bytes >= size
    assert end.tail.endswith("the end")
    assert 0 < peak < 30_000
    assert end.log_path is not None
    log = Path(end.log_path).read_bytes()
    assert len(log) < (1 << 20) + 4096
    assert b"[truncated: about " in log
    assert log.endswith((b"the end\n", b"the end\r\n"))


async def test_close_works_during_a_flood(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "noisy.py", "0", driver=driver))
    with anyio.fail_after(5):
        assert await hosts.close(ID) == ()
    assert (await hosts.wait(ID)).cause == "close"


async def test_broken_text_is_kept_readable(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "invalid-utf8.sh", driver=driver))
    end = await hosts.wait(ID)
    assert end.tail == "caf\ufffd \ufffd\ufffd ✓ 🙂\nred plain"


async def test_secret_split_over_writes_never_leaves_the_host(hosts: SessionHosts, driver: Driver) -> None:
    secret = "correct-horse-battery"
    await hosts.start(launch("s1", "splits-secret.py", "MY_API_TOKEN", driver=driver, env={"MY_API_TOKEN": secret}))
    end = await hosts.wait(ID)
    lines = ["line [redacted] end"] * (len(secret) - 1)
    assert end.tail.split("\n") == lines
    assert end.log_path is not None
    assert Path(end.log_path).read_text().replace("\r", "") == "\n".join([*lines, ""])


async def test_removed_working_directory_does_not_disturb(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    await hosts.start(launch("s1", "removes-cwd.sh", driver=driver, cwd=folder))
    end = await hosts.wait(ID)
    assert (end.exit_code, end.tail) == (4, "removed")


async def test_silent_agent_is_marked_as_stalled_and_lives(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "silent.sh", driver=driver, idle_timeout_s=0.3))
    with anyio.fail_after(10):
        while not ((facts := await hosts.look(ID)).record and facts.record.stalled):
            await anyio.sleep(0.01)
    assert facts.liveness == "live"
    await hosts.close(ID)


async def test_spinner_counts_as_no_progress(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "spinner.sh", driver=driver, idle_timeout_s=1.0, on_idle="stop"))
    with anyio.fail_after(10):
        end = await hosts.wait(ID)
    assert end.cause == "idle"


async def test_child_has_default_signals_the_users_umask_and_no_open_file_of_its_hosts(
    hosts: SessionHosts, driver: Driver
) -> None:
    os.umask(before := os.umask(0o022))
    await hosts.start(shell("s1", "umask; grep SigIgn /proc/self/status; ls /proc/self/fd | wc -l", driver=driver))
    mask, ignored, descriptors = (await hosts.wait(ID)).tail.split("\n")
    assert int(mask, 8) == before
    assert ignored.split()[1] == "0000000000000000"
    assert int(descriptors) == 4  # the three, and the folder that ls reads


async def test_ended_at_the_same_time_every_exit_code_matches_its_session(hosts: SessionHosts, driver: Driver) -> None:
    codes: dict[int, int | None] = {}

    async def one(number: int) -> None:
        await hosts.start(shell(f"n{number}", f"exit {number % 7}", driver=driver))
        codes[number] = (await hosts.wait(SessionId(f"n{number}"))).exit_code

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(one, number)
    assert codes == {number: number % 7 for number in range(40)}


async def test_files_of_a_session_are_the_owners_alone(hosts: SessionHosts, driver: Driver, root: Path) -> None:
    await hosts.start(launch("s1", "silent.sh", driver=driver, env={"SOME_VALUE": "not-on-disk-4711"}))
    facts = await hosts.look(ID)
    assert facts.record is not None
    assert facts.record.socket is not None
    folder = root / "s1"
    assert {path.name: oct(path.stat().st_mode & 0o7777) for path in [folder, *folder.iterdir()]} == {
        "s1": "0o700",
        "alive": "0o600",
        "host.err": "0o600",
        "output.log": "0o600",
        "record.json": "0o600",
        "token": "0o600",
    }
    assert oct(Path(facts.record.socket).stat().st_mode & 0o077) == "0o0"
    assert facts.record.host is not None
    command_line = Path(f"/proc/{facts.record.host.pid}/cmdline").read_bytes()
    everything = b"".join(path.read_bytes() for path in folder.iterdir()) + command_line
    assert b"not-on-disk-4711" not in everything
    await hosts.close(ID)
    socket = Path(facts.record.socket)
    until(lambda: not socket.exists())
    until(lambda: not lives(facts.record.host.pid))  # type: ignore[union-attr]


def _resident_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
