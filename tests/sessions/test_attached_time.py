"""Time that a person spends at a Session's terminal counts in none of its deadlines."""

import anyio
import pytest
from hosts import shell

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import SessionId

pytestmark = pytest.mark.anyio

ID = SessionId("s1")


@pytest.mark.parametrize("limits", [{"timeout_s": 1.0}, {"idle_timeout_s": 1.0, "on_idle": "stop"}])
async def test_deadlines_stand_still_while_a_writing_terminal_is_joined(
    hosts: SessionHosts, limits: dict[str, object]
) -> None:
    await hosts.start(shell("s1", "echo here; sleep 600", **limits))
    with anyio.fail_after(30):
        async with hosts.attach(ID, is_writing=True):
            # The time itself is what this is about.
            await anyio.sleep(2.0)
            assert (await hosts.look(ID)).liveness == "live"
        end = await hosts.wait(ID)
    assert end.cause == ("timeout" if "timeout_s" in limits else "idle")


async def test_a_terminal_that_only_looks_stops_no_clock(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "echo here; sleep 600", timeout_s=1.0))
    with anyio.fail_after(30):
        async with hosts.attach(ID, is_writing=False):
            end = await hosts.wait(ID)
    assert end.cause == "timeout"
