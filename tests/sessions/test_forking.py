"""The fork server: hosts that cost a fork, outlive it, and are started without it when it is gone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hosts import shell, text_of, until

from coordinate_agents.sessions import process, strays
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import SessionId

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfds")]


def server_of(host: int) -> psutil.Process:
    found = psutil.Process(host).parent()
    assert found is not None
    assert "forkserver" in " ".join(found.cmdline())
    return found


async def test_forked_host_is_known_as_a_host_and_leads_its_own_session(hosts: SessionHosts) -> None:
    record = await hosts.start(shell("a", "exec sleep 100"))
    assert record.host is not None
    assert strays.is_host(record.host.pid)
    assert os.getsid(record.host.pid) == record.host.pid
    server = server_of(record.host.pid)
    assert server.num_threads() == 1
    assert await hosts.close(SessionId("a"), graceful=False) == ()


async def test_hosts_of_one_server_share_no_descriptor(hosts: SessionHosts) -> None:
    first = await hosts.start(shell("a", "exec sleep 100"))
    second = await hosts.start(shell("b", "exec sleep 100"))
    assert first.host is not None and second.host is not None
    assert server_of(first.host.pid) == server_of(second.host.pid)

    def pipes_and_sockets(pid: int) -> set[str]:
        links = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        return {link for link in links if link.startswith(("pipe:", "socket:")) or link.endswith("alive")}

    until(lambda: not pipes_and_sockets(first.host.pid) & pipes_and_sockets(second.host.pid))
    server = server_of(first.host.pid)
    assert not any(link.endswith("alive") for link in pipes_and_sockets(server.pid))
    for name in ("a", "b"):
        await hosts.close(SessionId(name), graceful=False)


async def test_sessions_outlive_a_killed_server_and_the_next_start_does_without(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    first = await hosts.start(shell("a", f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 7"))
    assert first.host is not None
    server = server_of(first.host.pid)
    server.send_signal(signal.SIGKILL)
    until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
    second = await hosts.start(shell("b", f"echo here > {tmp_path}/b"))
    assert second.host is not None
    assert text_of(tmp_path / "b") == "here"
    (tmp_path / "go").touch()
    assert (await hosts.wait(SessionId("a"))).exit_code == 7
    assert (await hosts.wait(SessionId("b"))).exit_code == 0


async def test_ended_hosts_leave_no_zombie_behind(hosts: SessionHosts) -> None:
    pids = []
    for number in range(5):
        record = await hosts.start(shell(f"n{number}", f"exit {number}"))
        assert record.host is not None
        pids.append(record.host.pid)
        assert (await hosts.wait(SessionId(f"n{number}"))).exit_code == number
    until(lambda: all(process.stat(pid) is None for pid in pids))


MAKER = """
import os, subprocess, sys, time
from coordinate_agents.sessions.forking import ForkServer
server = ForkServer("")
server._start()
copy = os.dup(server._control.fileno())
os.set_inheritable(copy, True)
other = subprocess.Popen(["sleep", "600"], close_fds=False) if sys.argv[1] == "copied" else None
print(server._process.pid, other.pid if other else 0, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("socket", ["its own", "copied"])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_server_ends_with_its_maker_also_when_the_socket_lives_on(socket: str, is_stopped: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", MAKER, socket], stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        server, other = map(int, maker.stdout.readline().split())
        try:
            until(lambda: Path(f"/proc/{server}/comm").read_text() == "cag-forkserver\n")
            if is_stopped:
                maker.send_signal(signal.SIGSTOP)
            maker.kill()
            until(lambda: has_ended(server))
        finally:
            maker.kill()
            if other:
                os.kill(other, signal.SIGKILL)
                until(lambda: has_ended(other))


def has_ended(pid: int) -> bool:
    found = process.stat(pid)
    return found is None or found.is_zombie


async def test_forked_host_can_be_told_from_the_server_by_its_name(hosts: SessionHosts) -> None:
    record = await hosts.start(shell("a", "exec sleep 100"))
    assert record.host is not None
    assert psutil.Process(record.host.pid).name() == "cag-host"
    await hosts.close(SessionId("a"), graceful=False)
