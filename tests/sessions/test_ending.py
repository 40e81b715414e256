"""Trees that do not want to end, and what must not be ended with them."""
# ruff: noqa: ASYNC110, ASYNC220, ASYNC240

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from hosts import AGENTS, launch, lives, shell, text_of, until

from coordinate_agents.sessions import custodian, process, starting
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId

pytestmark = pytest.mark.anyio
ID = SessionId("s1")

# A chain of processes, each in a session of its own, without environment, deaf to all that is polite.
CHAIN = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
depth, folder = int(sys.argv[1]), sys.argv[2]
open(f"{folder}/{os.getpid()}", "w").close()
if depth and os.fork() == 0:
    os.setsid()
    os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, str(depth - 1), folder], {})
signal.pause()
"""

STARTER = """
import os, sys, anyio
from pathlib import Path
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import Launch, SessionId
hosts = SessionHosts(Path(sys.argv[1]), runtime_dir=Path(sys.argv[2]))
print("here", flush=True)
launch = Launch(SessionId("s1"), "agent", ("/bin/sleep", "600"), "/", dict(os.environ))
anyio.run(hosts.start, launch)
print("started", flush=True)
sys.stdin.read()
"""


async def test_chain_of_sessions_without_environment_is_ended_to_the_last(hosts: SessionHosts, tmp_path: Path) -> None:
    script, pids = tmp_path / "chain.py", tmp_path / "pids"
    script.write_text(CHAIN)
    pids.mkdir()
    await hosts.start(launch("s1", sys.executable, script, "24", pids, close_bound_s=4.0))
    until(lambda: len(list(pids.iterdir())) == 25)
    assert await hosts.close(ID, graceful=False) == ()
    assert [path.name for path in pids.iterdir() if lives(int(path.name))] == []


async def test_close_does_not_wait_for_background_jobs_that_ignore_the_interrupt(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "sleep 600 & echo ready; wait", close_bound_s=30.0))
    while (await hosts.look(ID)).last_line != "ready":
        await anyio.sleep(0.01)
    started = time.monotonic()
    assert await hosts.close(ID) == ()
    assert time.monotonic() - started < 3


async def test_second_close_with_a_shorter_bound_still_ends_the_tree(hosts: SessionHosts, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    await hosts.start(launch("s1", "ignores-signals.sh", ready))
    text_of(ready)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: hosts.close(ID, bound_s=60.0))
        while (await hosts.look(ID)).record.state != "closing":  # type: ignore[union-attr]
            await anyio.sleep(0.01)
        started = time.monotonic()
        assert await hosts.close(ID, bound_s=1.0) == ()
        assert time.monotonic() - started < 3


async def test_persons_process_in_the_folder_of_a_dead_session_is_named_and_lives(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    record = await hosts.start(launch("s1", "silent.sh", cwd=tmp_path))
    assert record.host is not None
    person = subprocess.Popen(["sleep", "600"], cwd=tmp_path)
    try:
        os.kill(record.host.pid, signal.SIGKILL)
        end = await hosts.wait(ID)
        assert (end.cause, end.survivors) == ("host-lost", (f"{person.pid} sleep",))
        assert lives(person.pid)
    finally:
        person.kill()
        person.wait()


async def test_tree_of_a_living_session_in_the_same_folder_is_not_touched(hosts: SessionHosts, tmp_path: Path) -> None:
    dead = await hosts.start(launch("dead", "silent.sh", cwd=tmp_path))
    await hosts.start(launch("s1", "silent.sh", tmp_path / "ready", cwd=tmp_path))
    text_of(tmp_path / "ready")
    assert dead.host is not None
    os.kill(dead.host.pid, signal.SIGKILL)
    assert (await hosts.wait(SessionId("dead"))).survivors == ()
    assert (await hosts.look(ID)).liveness == "live"
    assert lives(int(text_of(tmp_path / "ready")))


async def test_marked_process_is_ended_as_a_stray_wherever_it_stands(hosts: SessionHosts, tmp_path: Path) -> None:
    daemon = (
        f"setsid sh -c 'cd /; echo $$ > {tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; exec sleep 600'"
    )
    record = await hosts.start(shell("s1", f"{daemon} & sleep 600", marker="mark-of-this-test"))
    pid = int(text_of(tmp_path / "pid"))
    assert record.host is not None
    os.kill(record.host.pid, signal.SIGKILL)
    until(lambda: not lives(record.host.pid))  # type: ignore[union-attr]
    assert await hosts.end_strays(("another-mark",), ()) == ()
    assert lives(pid)
    assert await hosts.end_strays(("mark-of-this-test",), ()) == ()
    assert not lives(pid)


async def test_hidden_daemon_of_a_host_that_never_said_ready_is_ended(root: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    hidden = shell("s1", f"{AGENTS}/daemonises.py {tmp_path}/pid; sleep 600", cwd=work)
    host = starting.start_host(hidden, root, tmp_path)
    pid = int(text_of(tmp_path / "pid"))
    folder = os.open(root / "s1", os.O_RDONLY)
    with pytest.raises(SessionError) as caught:
        starting._refuse(hidden, root / "s1", folder, host, {})
    os.close(folder)
    assert caught.value.code == "SESSION_START_FAILED"
    assert not lives(pid)
    end = custodian.see(root / "s1").record.end  # type: ignore[union-attr]
    assert end is not None
    assert (end.cause, end.survivors) == ("host-lost", ())


def terminals_can_be_hidden() -> bool:
    words = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/pts"]
    return shutil.which("unshare") is not None and subprocess.run(words, capture_output=True).returncode == 0


@pytest.mark.skipif(not terminals_can_be_hidden(), reason="only somebody who may mount can hide the terminals")
async def test_without_terminals_the_session_runs_on_pipes_and_says_so(hosts: SessionHosts, root: Path) -> None:
    script = 'mount -t tmpfs none /dev/pts && exec "$@"'
    words = [sys.executable, "-c", STARTER, str(root), str(hosts.socket_dir)]
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", script, "sh", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.communicate()[0] == b"here\nstarted\n"
    record = (await hosts.look(ID)).record
    assert record is not None
    assert (record.driver, record.degraded, record.state) == ("pipe", True, "running")


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 20, 30, 40, 60, 80, 120])
async def test_starter_killed_at_any_moment_leaves_a_state_that_can_be_finished(
    hosts: SessionHosts, root: Path, delay_ms: int
) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(root), str(hosts.socket_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"here\n"
    await anyio.sleep(delay_ms / 1000)  # not to wait for anything: a sweep of moments
    starter.kill()
    starter.communicate()
    child: process.Stat | None = None
    with anyio.fail_after(20):
        while (facts := await hosts.look(ID)).liveness in ("live", "unreachable"):
            if facts.record is not None and facts.record.child is not None:
                child = process.stat(facts.record.child.pid)
                break
            await anyio.sleep(0.02)
    if facts.liveness == "absent":
        await hosts.start(launch("s1", "dies-at-once.sh"))
        return
    assert await hosts.close(ID) == ()
    assert (await hosts.look(ID)).liveness == "ended"
    assert child is None or not process.is_same(child.pid, child.start_ticks)


@pytest.mark.parametrize("mode", [0o777, 0o720])
async def test_folder_for_sockets_that_others_can_write_is_refused(root: Path, tmp_path: Path, mode: int) -> None:
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    sockets.chmod(mode)
    with pytest.raises(SessionError) as caught:
        await SessionHosts(root, runtime_dir=sockets).start(launch("s1", "silent.sh"))
    assert caught.value.code == "SESSION_START_FAILED"
    assert not root.exists()


async def test_folder_for_sockets_with_a_long_path_is_replaced_by_a_short_one(root: Path, tmp_path: Path) -> None:
    hosts = SessionHosts(root, runtime_dir=tmp_path / ("long" * 30))
    await hosts.start(launch("s1", "dies-at-once.sh", "3"))
    assert (await hosts.wait(ID)).exit_code == 3
    assert hosts.socket_dir == Path(os.environ["XDG_RUNTIME_DIR"]) / "coordinate-agents"


@pytest.mark.parametrize("name", ["../s1", "a/b", "", ".", "s1\n", "-x", "x" * 300])
async def test_text_that_is_no_session_id_is_never_a_path(hosts: SessionHosts, name: str) -> None:
    assert (await hosts.look(SessionId(name))).liveness == "absent"
    with pytest.raises(SessionError) as caught:
        await hosts.start(launch(name, "silent.sh"))
    assert caught.value.code == "SPAWN_FAILED"


async def test_close_twice_at_once_and_after_the_end_is_one_close(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    survivors: list[tuple[str, ...]] = []

    async def one() -> None:
        survivors.append(await hosts.close(ID))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    survivors.append(await hosts.close(ID))
    assert survivors == [()] * 5
    assert (await hosts.wait(ID)).cause == "close"


async def test_agent_may_finish_its_work_when_it_is_closed_politely(hosts: SessionHosts, tmp_path: Path) -> None:
    saving = f"sleep 0.2; echo saved > {tmp_path}/saved; exit 3"
    script = f"trap '{saving}' INT TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    await hosts.start(shell("s1", script))
    until((tmp_path / "ready").exists)
    await hosts.close(ID)
    end = await hosts.wait(ID)
    assert (end.cause, end.exit_code, text_of(tmp_path / "saved")) == ("close", 3, "saved")


async def test_close_that_is_not_graceful_gives_no_time(hosts: SessionHosts, tmp_path: Path) -> None:
    script = f"trap 'touch {tmp_path}/heard' INT TERM HUP; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    await hosts.start(shell("s1", script))
    until((tmp_path / "ready").exists)
    with anyio.fail_after(2):
        await hosts.close(ID, graceful=False)
    assert (await hosts.wait(ID)).signal == 9
    assert not (tmp_path / "heard").exists()


async def test_git_gets_its_term_and_time_even_in_a_close_without_grace(hosts: SessionHosts, tmp_path: Path) -> None:
    git = tmp_path / "git"
    git.write_text(
        f"#!/bin/sh\ntrap 'sleep 0.2; touch {tmp_path}/unlocked; exit 1' TERM\ntouch {tmp_path}/ready\n"
        "while :; do sleep 0.05; done\n"
    )
    git.chmod(0o755)
    await hosts.start(shell("s1", f"trap : TERM; {git}; sleep 600"))
    until((tmp_path / "ready").exists)
    assert await hosts.close(ID, graceful=False) == ()
    assert (tmp_path / "unlocked").exists()


async def test_thirty_two_sessions_that_ignore_every_polite_signal_close_within_one_bound(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    names = [f"n{number}" for number in range(32)]
    async with anyio.create_task_group() as group:
        for name in names:
            ready = tmp_path / name
            group.start_soon(hosts.start, launch(name, "ignores-signals.sh", ready, close_bound_s=4.0))
    for name in names:
        text_of(tmp_path / name)
    started = time.monotonic()
    left: dict[str, tuple[str, ...]] = {}

    async def one(name: str) -> None:
        left[name] = await hosts.close(SessionId(name))

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(one, name)
    assert time.monotonic() - started < 5.0
    assert left == dict.fromkeys(names, ())
