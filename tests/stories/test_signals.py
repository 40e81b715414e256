"""Ctrl-C once, Ctrl-C twice, a terminal that goes away, and a run that was detached from the start."""

import os
import signal
from pathlib import Path

import psutil
import pytest
from world import World, until

pytestmark = pytest.mark.story

PLAN = "subtasks: [{id: a, spec: x}, {id: b, dependsOn: a, spec: x}]\n"


def _starts(world: World) -> list[str]:
    return [line[1] for line in world.log_lines() if line[0] == "start"]


def test_one_ctrl_c_leaves_the_agent_at_work_and_the_same_command_comes_back_to_it(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan, "--integrate")
    agent = world.wait_for_start("a")
    run.send_signal(signal.SIGINT)
    assert run.wait(30) == 130, world.said()
    assert psutil.pid_exists(agent)
    assert "coordinate-agents graph-run plan" in world.said()
    assert "coordinate-agents graph-stop plan" in world.said()
    world.release("a")
    again = world.run("graph-run", plan, "--integrate")
    assert again.code == 0, str(again)
    assert _starts(world) == ["a", "b"]
    world.assert_nothing_left("plan")


def test_after_ctrl_c_the_stop_that_it_names_ends_the_agent_and_keeps_its_work(world: World) -> None:
    plan, before = world.graph(PLAN), world.user_state()
    world.hold("a")
    run = world.start("graph-run", plan)
    agent = psutil.Process(world.wait_for_start("a"))
    run.send_signal(signal.SIGINT)
    assert run.wait(30) == 130, world.said()
    worktree = Path(next(item for item in world.status("plan")["subtasks"] if item["id"] == "a")["worktree"])
    (worktree / "half.txt").write_text("not committed\n")
    stopped = world.run("graph-stop", "plan", "--reason", "lunch")
    assert stopped.code == 0, str(stopped)
    until(lambda: not agent.is_running() or None, "the agent ends")
    states = {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}
    assert states["a"] == "STOPPED"
    assert (worktree / "half.txt").read_text() == "not committed\n"
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_a_terminal_that_goes_away_hands_the_drive_over(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan, "--integrate")
    world.wait_for_start("a")
    run.send_signal(signal.SIGHUP)
    run.wait(30)
    until(lambda: world.status("plan")["graph"]["driver"], "another driver takes over")
    assert world.status("plan")["graph"]["driver"]["pid"] not in (run.pid, os.getpid())
    world.release("a")
    done = world.run("graph-wait", "plan", "--timeout", "60s")
    assert done.code == 0, str(done)
    until(lambda: world.status("plan")["graph"]["state"] == "INTEGRATED" or None, "it is integrated")
    assert _starts(world) == ["a", "b"]
    world.assert_nothing_left("plan")


def test_a_detached_run_returns_at_once_and_goes_on_to_the_end(world: World) -> None:
    world.hold("a")
    started = world.run("graph-run", world.graph(PLAN), "--integrate", "--detach", "--json")
    assert started.code == 0, str(started)
    world.wait_for_start("a")
    waited = world.run("graph-wait", "plan", "--timeout", "1s")
    assert waited.code == 6, str(waited)
    world.release("a")
    done = world.run("graph-wait", "plan", "--timeout", "60s")
    assert done.code == 0, str(done)
    until(lambda: world.status("plan")["graph"]["state"] == "INTEGRATED" or None, "it is integrated")
    assert set(world.files("coordinate-agents/plan/integration")) == {"README.md", "f-a", "f-b"}
    world.assert_nothing_left("plan")
