"""A driver that is stopped (SIGSTOP) is named, not replaced; a clock that jumps changes nothing that was recorded."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from crashes import PLAIN
from hosts import shell
from world import PROGRAM, RUN_LIMIT_S, World, until

from coordinate_agents.graph.custody import wait_at_most
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import SessionId

pytestmark = pytest.mark.story

# The command line on a machine whose clock is off by so many seconds.
_SHIFTED = """
import sys, time
from coordinate_agents.cli import wiring
shift = float(sys.argv.pop(1))
wiring.SystemClock.now = lambda self: time.time() + shift
sys.argv[0] = "coordinate-agents"
from coordinate_agents.cli.main import main
sys.exit(main())
"""


def test_a_suspended_driver_is_named_and_nobody_drives_beside_it(world: World) -> None:
    """RC-04."""
    plan, before = world.graph(PLAIN.plan), world.user_state()
    world.hold("a")
    driver = world.start("graph-run", plan)
    world.wait_for_start("a")
    psutil.Process(driver.pid).suspend()
    second = world.run("graph-run", plan)
    assert second.code == 1, str(second)
    lines = second.err.splitlines()
    assert lines[0].startswith(f"LEASE_HELD: Graph plan is driven by process {driver.pid} (graph-run) since "), lines
    assert lines[0].endswith("; that process is stopped, not dead."), lines
    assert lines[2] == f"Next: kill -CONT {driver.pid}", lines
    assert world.status("plan")["graph"]["driver"]["pid"] == driver.pid
    assert world.run("graph-verify", "plan").code == 0
    world.release("a")
    psutil.Process(driver.pid).resume()
    assert driver.wait(60) == 0, world.said()
    assert [line[:2] for line in world.log_lines()] == [["start", "a"], ["end", "a"], ["start", "b"], ["end", "b"]]
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_take_over_ends_a_suspended_driver_and_goes_on_with_its_agents(world: World) -> None:
    plan, before = world.graph(PLAIN.plan), world.user_state()
    world.hold("a")
    driver = world.start("graph-run", plan)
    world.wait_for_start("a")
    psutil.Process(driver.pid).suspend()
    second = world.start("graph-run", plan, "--take-over")
    assert driver.wait(60) != 0
    world.release("a")
    assert second.wait(60) == 0, world.said()
    assert [line[:2] for line in world.log_lines()] == [["start", "a"], ["end", "a"], ["start", "b"], ["end", "b"]]
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_a_hold_that_a_suspended_host_cannot_hear_reaches_it_when_it_runs_again(world: World) -> None:
    """Before, it was told once: a person's work was ended by the deadline of the agent they had stopped."""
    world.hold("a")
    driver = world.start("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    host = psutil.Process(world.wait_for_start("a")).parent()
    assert host is not None
    host.suspend()
    try:
        assert world.run("graph-hold", "plan", "a").code == 0
    finally:
        host.resume()
    until(lambda: _session(world)["held"] or None, "its Session hears of it")
    assert world.run("graph-release", "plan", "a").code == 0
    assert not _session(world)["held"]
    world.release("a")
    assert driver.wait(60) == 0, world.said()
    world.assert_nothing_left("plan")


async def _lets_its_time_pass(place: Path) -> tuple[str, str]:
    """How a command ended whose host was stopped, and whether its tree lives."""
    sessions, session = SessionHosts(place / "sessions", runtime_dir=place), SessionId("s")
    record = await sessions.start(shell("s", "sleep 600", timeout_s=0.5))
    assert record.host is not None and record.child is not None
    psutil.Process(record.host.pid).suspend()
    end = await wait_at_most(sessions, session, 0.6)
    return end.cause, "lives" if psutil.pid_exists(record.child.pid) else "ended"


def test_a_check_whose_host_is_suspended_times_out_all_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before, a driver that lived waited for as long as the host was stopped."""
    assert anyio.run(_lets_its_time_pass, tmp_path_factory.mktemp("s")) == ("timeout", "ended")


# A driver that lets a host's time pass by half a second only.
_HASTY = """
import sys
from coordinate_agents.graph import overdue
overdue.HOST_BOUND_S = 0.5
sys.argv[0] = "coordinate-agents"
from coordinate_agents.cli.main import main
sys.exit(main())
"""


def test_an_agent_whose_host_is_suspended_is_shown_and_times_out_all_the_same(world: World) -> None:
    """Before, nothing said so, and its driver waited for as long as the host was stopped."""
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x, timeout: 5s}]\n")
    world.hold("a")
    argv = [str(PROGRAM.parent / "python"), "-c", _HASTY, "graph-run", str(plan)]
    driver = subprocess.Popen(argv, cwd=world.root, env=world.environment, stdin=subprocess.DEVNULL)
    host = psutil.Process(world.wait_for_start("a")).parent()
    assert host is not None
    host.suspend()
    driver.send_signal(signal.SIGSTOP)  # It ends nothing before it was looked at.
    status = world.status("plan")
    waited = world.run("graph-wait", "plan", "--for", "attention", "--json")
    brief = world.run("graph-status", "plan", "--brief", "--json").data
    driver.send_signal(signal.SIGCONT)
    assert waited.data["attention"] == status["attention"]
    assert [item["kind"] for item in brief["attention"]] == ["unreachable"]
    assert status["subtasks"][0]["session"]["state"] == "unreachable"
    told = f"the host of its Session, process {host.pid}, is stopped, not dead"
    assert status["subtasks"][0]["reason"] == told
    assert [(item["subtask"], item["kind"], item["question"], item["next"]) for item in status["attention"]] == [
        ("a", "unreachable", told, f"kill -CONT {host.pid}")
    ]
    assert driver.wait(RUN_LIMIT_S) == 4
    ended = world.status("plan")
    assert ended["subtasks"][0]["failure"]["code"] == "AGENT_TIMEOUT"
    assert [item["kind"] for item in ended["attention"]] == ["failed"]
    world.assert_nothing_left("plan")


def _session(world: World) -> Any:
    return world.run("session-status", "plan/a", "--json").data["session"]


def test_a_clock_that_jumps_back_and_forth_between_drives_changes_no_order_and_no_lease(world: World) -> None:
    plan = world.graph(PLAIN.plan)
    world.hold("a")
    first = world.start("graph-run", plan)
    world.wait_for_start("a")
    first.kill()
    first.wait(30)
    for shift, name in ((-86_400.0, "a"), (+7 * 86_400.0, "b")):
        world.hold("b")
        argv = [str(PROGRAM.parent / "python"), "-c", _SHIFTED, str(shift), "graph-run", str(plan)]
        driver = subprocess.Popen(argv, cwd=world.root, env=world.environment, stdin=subprocess.DEVNULL)
        if name == "a":
            world.release("a")
            world.wait_for_start("b")
            driver.kill()
        else:
            world.release("b")
        assert driver.wait(RUN_LIMIT_S) in (0, -9)
    last = world.run("graph-run", plan, "--integrate")
    assert last.code == 0, str(last)
    assert [line[:2] for line in world.log_lines()] == [["start", "a"], ["end", "a"], ["start", "b"], ["end", "b"]]
    events = world.run("graph-events", "plan", "--json").data["events"]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    elapsed = [item["elapsedS"] for item in world.status("plan")["subtasks"]]
    assert all(seconds is None or seconds >= 0 for seconds in elapsed), elapsed
    assert world.run("graph-verify", "plan", "--json").data["holds"]
    world.assert_nothing_left("plan")
