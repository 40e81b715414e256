"""What a death left is told, stopped and taken up again as what it is."""

import os
import signal

import psutil
import pytest
from crashes import PLAIN
from world import World, until

pytestmark = pytest.mark.story

SETUP = "setup: [{run: [sh, -c, 'test -f README.md']}]\n"
# Leaves its file and waits, the first time.
UNSAVED = """
echo "start $S $COORDINATE_AGENTS_ATTEMPT $$ $PWD" >>"$FAKE_LOG"
echo work >"f-$S"
[ "$COORDINATE_AGENTS_ATTEMPT" = 2 ] || sleep 60
"""


def test_unsaved_work_of_a_stopped_agent_is_not_taken_for_what_setup_left(world: World) -> None:
    world.configure({"one": (world.agent(UNSAVED),)})
    config = world.home / ".config" / "coordinate-agents" / "config.yaml"
    config.write_text(config.read_text() + SETUP)
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x, commit: runtime}]\n")
    run = world.start("graph-run", plan)
    world.wait_for_start("a")
    worktree = world.status("plan")["subtasks"][0]["worktree"]
    until(lambda: os.path.exists(f"{worktree}/f-a") or None, "the agent writes")  # noqa: PTH110
    assert world.run("graph-stop", "plan").code == 0
    run.wait(30)
    again = world.run("graph-run", plan, "--retry-failed")
    assert again.code == 0, str(again)
    assert world.files("coordinate-agents/plan/a") == {"README.md": "# sample", "f-a": "work"}


@pytest.mark.parametrize("point", ["session.intended:1", "start.folder:1", "start.claimed:1"])
def test_stop_of_a_session_that_was_only_meant_to_start_stops_its_subtask(world: World, point: str) -> None:
    PLAIN.prepare(world)
    assert PLAIN.run_dying(world, point).code == -signal.SIGKILL
    stopped = world.run("graph-stop", "plan")
    assert stopped.code == 0, str(stopped)
    assert [item["state"] for item in world.status("plan")["subtasks"]] == ["STOPPED", "BLOCKED"]
    assert world.run("graph-run", "plan", "--retry-failed", "--integrate").code == 0
    world.assert_nothing_left("plan")


@pytest.mark.parametrize("is_driven", [True, False])
def test_stop_at_a_suspended_host_names_it_and_starts_no_second_agent(world: World, is_driven: bool) -> None:
    world.hold("a")
    driver = world.start("graph-run", world.graph(PLAIN.plan))
    agent = psutil.Process(world.wait_for_start("a"))
    host = agent.parent()
    assert host is not None
    host.suspend()
    if not is_driven:
        driver.kill()
        driver.wait(30)
    stopped = world.run("graph-stop", "plan", *(["a"] if is_driven else []))
    assert stopped.code != 0
    assert "does not answer" in stopped.err, str(stopped)
    assert "INTERNAL_ERROR" not in stopped.err, str(stopped)
    if not is_driven:
        assert str(host.pid) in stopped.err, str(stopped)
    data = world.status("plan")["subtasks"][0]
    assert data["state"] == "RUNNING"
    if driver.poll() is None:
        driver.kill()
        driver.wait(30)
    host.resume()
    world.release("a")
    last = world.run("graph-run", "plan", "--retry-failed")
    assert [line[:2] for line in world.log_lines() if line[0] == "overlap"] == []
    assert last.code in (0, 4), str(last)
    world.assert_nothing_left("plan")


def test_a_check_whose_host_was_killed_once_is_run_again(world: World) -> None:
    """Nobody's verdict: before, the subtask failed for ever."""
    mark = world.place / "killed"
    plan = world.graph(
        "id: plan\nsubtasks:\n- id: a\n  spec: x\n"
        f"  checks: [{{name: once, run: [sh, -c, 'test -e {mark} || {{ touch {mark}; kill -9 $PPID; sleep 9; }}']}}]\n"
    )
    done = world.run("graph-run", plan)
    assert done.code == 0, str(done)
    assert world.status("plan")["subtasks"][0]["attempt"] == 1
    world.assert_nothing_left("plan")


def test_a_check_that_always_loses_its_host_is_interrupted_and_never_passes(world: World) -> None:
    plan = world.graph(
        "id: plan\nsubtasks:\n- {id: a, spec: x, checks: [{name: deadly, run: [sh, -c, 'kill -9 $PPID']}]}\n"
    )
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4, str(done)
    found = done.data["subtasks"][0]
    assert (found["state"], found["failure"]["code"]) == ("STOPPED", "SESSION_NOT_HEALTHY")
    assert found["reason"].startswith("interrupted: The host of ") and "check-deadly" in found["reason"]
    world.assert_nothing_left("plan")


def test_a_subtask_that_is_stopped_while_a_new_driver_looks_around_stays_stopped(world: World) -> None:
    """Before, the driver went on with it and ended with INTERNAL_ERROR."""
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x}, {id: d, spec: x}]\n")
    world.hold("a", "b", "c", "d")
    first = world.start("graph-run", plan)
    agents = [psutil.Process(world.wait_for_start(name)) for name in "abcd"]
    hosts = [agent.parent() for agent in agents]
    first.kill()
    first.wait(30)
    # Each silent host holds the look up for a second.
    for host in hosts[1:]:
        assert host is not None
        host.suspend()
    second = world.start("graph-run", plan)
    until(lambda: world.status("plan")["graph"]["driver"], "the second driver drives")
    stopped = world.run("graph-stop", "plan", "a")
    for host in hosts[1:]:
        assert host is not None
        host.resume()
    assert stopped.code == 0, str(stopped)
    world.release("a", "b", "c", "d")
    assert second.wait(60) == 4, world.said()
    assert "A bug of ours" not in world.said()
    states = {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}
    assert states == {"a": "STOPPED", "b": "SUCCEEDED", "c": "SUCCEEDED", "d": "SUCCEEDED"}
    world.assert_nothing_left("plan")
