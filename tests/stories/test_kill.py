"""kill -9 of the driver, of a host, of an agent, in the middle of twelve subtasks; then the same command again."""

import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest
from stories import TWELVE, TWELVE_NAMES, assert_twelve_whole
from world import World, until

pytestmark = pytest.mark.story


def _run_until(world: World, plan: Path, lines: int) -> None:
    """Start a run and kill it when the agents have logged so many lines, or it has ended by itself."""
    run = world.start("graph-run", plan, "--integrate")
    until(lambda: len(world.log_lines()) >= lines or run.poll() is not None or None, f"{lines} lines in the log")
    run.kill()
    run.wait(10)


def _starts(world: World, subtask: str) -> int:
    return len([line for line in world.log_lines() if line[:2] == ["start", subtask]])


def test_the_driver_killed_in_the_middle_the_agents_go_on_and_the_same_command_finishes(world: World) -> None:
    plan, before = world.graph(TWELVE), world.user_state()
    world.hold("b1", "b2")
    run = world.start("graph-run", plan, "--integrate")
    world.wait_for_start("b1")
    world.wait_for_start("b2")
    run.kill()
    run.wait(10)
    # b1 ends while nobody drives; b2 is still at work when the next driver comes.
    world.release("b1")
    until(lambda: ["end", "b1"] in [line[:2] for line in world.log_lines()] or None, "b1 ends without a driver")
    again = world.start("graph-run", plan, "--integrate")
    until(lambda: _starts(world, "c0") or None, "c0, which needs b0 and b1, starts under the second driver")
    world.release("b2")
    assert again.wait(60) == 0, world.said()
    assert_twelve_whole(world, before)
    assert {name: _starts(world, name) for name in TWELVE_NAMES} == dict.fromkeys(TWELVE_NAMES, 1)


def test_a_host_killed_takes_its_agent_along_and_the_same_command_finishes(world: World) -> None:
    plan, before = world.graph(TWELVE), world.user_state()
    world.hold("b1")
    run = world.start("graph-run", plan, "--integrate")
    agent = psutil.Process(world.wait_for_start("b1"))
    host = agent.parent()
    assert host is not None and host.pid not in (1, run.pid)
    host.kill()
    assert run.wait(60) in (0, 4), world.said()
    assert not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE
    world.release("b1")
    again = world.run("graph-run", plan, "--integrate")
    assert again.code == 0, str(again)
    assert_twelve_whole(world, before)


def test_an_agent_killed_is_reported_and_the_same_command_finishes(world: World) -> None:
    plan, before = world.graph(TWELVE), world.user_state()
    world.hold("b1")
    run = world.start("graph-run", plan, "--integrate")
    os.kill(world.wait_for_start("b1"), signal.SIGKILL)
    assert run.wait(60) == 4, world.said()
    data = world.status("twelve")
    b1 = next(item for item in data["subtasks"] if item["id"] == "b1")
    # Nobody's verdict: killed from outside it counts as interrupted, and the same command takes it up again.
    assert (b1["state"], b1["failure"]["code"]) == ("STOPPED", "AGENT_EXIT_NONZERO"), b1
    assert "signal 9" in b1["failure"]["message"]
    world.release("b1")
    again = world.run("graph-run", plan, "--integrate")
    assert again.code == 0, str(again)
    assert_twelve_whole(world, before)


def test_driver_and_hosts_and_agents_killed_together_the_same_command_finishes(world: World) -> None:
    plan, before = world.graph(TWELVE), world.user_state()
    world.hold("b0", "b1")
    run = world.start("graph-run", plan, "--integrate")
    agents = [psutil.Process(world.wait_for_start(name)) for name in ("b0", "b1")]
    hosts = [agent.parent() for agent in agents]
    for process in [run, *hosts, *agents]:
        assert process is not None
        with contextlib.suppress(psutil.NoSuchProcess):  # A host's agent may already have died with it.
            process.kill()
    run.wait(10)
    world.release("b0", "b1")
    again = world.run("graph-run", plan, "--integrate")
    assert again.code == 0, str(again)
    assert_twelve_whole(world, before)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_the_driver_killed_again_and_again_still_comes_to_the_same_end(world: World, step: int) -> None:
    plan, before = world.graph(TWELVE), world.user_state()
    for lines in range(step, 24, 5):
        run = world.start("graph-run", plan, "--integrate")
        until(
            lambda lines=lines, run=run: len(world.log_lines()) >= lines or run.poll() is not None or None, "progress"
        )
        run.kill()
        run.wait(10)
    last = world.run("graph-run", plan, "--integrate")
    assert last.code == 0, str(last)
    assert_twelve_whole(world, before)
    assert {name: _starts(world, name) for name in TWELVE_NAMES} == dict.fromkeys(TWELVE_NAMES, 1)
