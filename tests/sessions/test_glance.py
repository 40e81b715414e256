"""One question to a living host, without an event loop: the same facts as the long way, and nothing for every other."""

import os
import signal
import time
from pathlib import Path

import pytest
from hosts import launch, shell

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import ReadLimits, SessionId

pytestmark = pytest.mark.anyio
ID = SessionId("s1")
LIMITS: ReadLimits = {"cursor": 0, "max_bytes": 4096, "max_lines": None, "form": "plain"}


async def test_living_session_is_told_as_look_and_read_tell_it(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "echo ready; exec sleep 600"))
    found = hosts.look_now(ID, LIMITS, wait_ms=20_000)  # the host answers as soon as there is something
    assert found is not None
    facts, output = found
    looked = await hosts.look(ID)
    assert (facts.liveness, facts.last_line) == (looked.liveness, looked.last_line) == ("live", "ready")
    assert output == await hosts.read(ID, **LIMITS)
    assert output is not None
    assert output.text == "ready\n"
    alone = hosts.look_now(ID)
    assert alone is not None
    assert alone[1] is None


async def test_what_no_host_holds_is_left_to_the_long_way(hosts: SessionHosts, root: Path) -> None:
    assert hosts.look_now(SessionId("never")) is None
    assert hosts.look_now(SessionId("../s1")) is None
    record = await hosts.start(launch("s1", "silent.sh"))
    assert record.socket is not None
    os.unlink(record.socket)  # noqa: PTH108
    assert hosts.look_now(ID, LIMITS) is None  # nobody listens there, and yet it is held
    await hosts.close(ID)
    assert hosts.look_now(ID, LIMITS) is None
    # The folder of another one under the same name is asked anew.
    (root / ID).rename(root / "s0")
    second = await hosts.start(launch("s1", "silent.sh"))
    again = hosts.look_now(ID)
    assert again is not None
    assert again[0].record is not None
    assert again[0].record.child == second.child != record.child


async def test_silent_host_is_asked_once_for_the_bound(hosts: SessionHosts, root: Path) -> None:
    host = (await hosts.start(launch("s1", "silent.sh"))).host
    assert host is not None
    os.kill(host.pid, signal.SIGSTOP)
    patient = SessionHosts(root, runtime_dir=hosts.socket_dir, look_bound_s=0.2)
    try:
        found = patient.look_now(ID)
        assert found is not None
        assert (found[0].liveness, found[1]) == ("unreachable", None)
        begun = time.monotonic()
        with pytest.raises(SessionError, match="does not answer") as caught:
            patient.look_now(ID, LIMITS, wait_ms=20_000)
        assert caught.value.code == "SESSION_NOT_HEALTHY"
        assert time.monotonic() - begun < 20
    finally:
        os.kill(host.pid, signal.SIGCONT)
