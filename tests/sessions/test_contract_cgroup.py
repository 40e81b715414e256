"""Trees that no sweep can list, where the system lets us make a cgroup."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hosts import launch, lives, shell, text_of, until

from coordinate_agents.sessions import cgroup, process
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import SessionId

pytestmark = pytest.mark.anyio
ID = SessionId("s1")


@pytest.fixture(autouse=True)
def possible() -> Iterator[None]:
    path = cgroup.make(f"test{os.getpid()}")
    if not path:
        pytest.skip("no cgroup can be made here")
    cgroup.remove(path)
    yield


async def test_tree_that_forks_faster_than_it_can_be_listed_is_ended(hosts: SessionHosts, tmp_path: Path) -> None:
    record = await hosts.start(launch("s1", "forks-fast.py", tmp_path / "up", close_bound_s=4.0))
    text_of(tmp_path / "up")
    assert cgroup.members(record.cgroup)
    with anyio.fail_after(8):
        assert await hosts.close(ID) == ()
    until(lambda: not Path(record.cgroup).exists())


async def test_daemon_of_a_killed_host_is_found_in_its_cgroup(hosts: SessionHosts, tmp_path: Path) -> None:
    script = f"env -i setsid sh -c 'cd /; echo $$ > {tmp_path}/pid; exec sleep 600' & sleep 600"
    record = await hosts.start(shell("s1", script, close_bound_s=1.0))
    daemon = int(text_of(tmp_path / "pid"))
    assert record.host is not None
    os.kill(record.host.pid, signal.SIGKILL)
    until(lambda: not lives(record.host.pid))  # type: ignore[union-attr]
    assert any(str(daemon) in name for name in (await hosts.look(ID)).survivors)
    assert await hosts.close(ID) == ()
    assert not process.is_same(daemon, 0)
    assert not lives(daemon)
    assert not Path(record.cgroup).exists()  # noqa: ASYNC240


async def test_session_that_ended_leaves_no_cgroup_behind(hosts: SessionHosts) -> None:
    record = await hosts.start(launch("s1", "dies-at-once.sh"))
    await hosts.wait(ID)
    until(lambda: not Path(record.cgroup).exists())
