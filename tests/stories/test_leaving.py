"""Leaving a run: Ctrl-C once and twice, a terminal that goes away, a second driver, a stop from elsewhere."""

import signal
import subprocess

import psutil
import pytest
from world import World, until

pytestmark = pytest.mark.story

PLAN = "subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"


def wait_for_end(run: "subprocess.Popen[bytes]") -> int:
    return run.wait(60)


def test_first_ctrl_c_leaves_agents_running_and_says_how_to_go_on(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan)
    agent = psutil.Process(world.wait_for_start("a"))
    run.send_signal(signal.SIGINT)
    assert wait_for_end(run) == 130, world.said()
    assert agent.is_running()
    assert "coordinate-agents graph-run plan" in world.said()
    assert "coordinate-agents graph-stop plan" in world.said()
    status = world.status("plan")
    assert (status["graph"]["driver"], status["subtasks"][0]["state"]) == (None, "RUNNING")
    world.release("a")
    assert world.run("graph-run", "plan").code == 0
    assert [line[:2] for line in world.log_lines()] == [["start", "a"], ["end", "a"], ["start", "b"], ["end", "b"]]
    world.assert_nothing_left("plan")


def test_second_ctrl_c_stops_the_agents(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan)
    agent = psutil.Process(world.wait_for_start("a"))
    run.send_signal(signal.SIGINT)
    until(lambda: "Ctrl-C again" in world.said() or None, "the driver says what a second Ctrl-C does")
    run.send_signal(signal.SIGINT)
    assert wait_for_end(run) == 130, world.said()
    assert not agent.is_running()
    assert world.status("plan")["subtasks"][0]["state"] == "STOPPED"
    world.assert_nothing_left("plan")


def test_hangup_hands_over_to_a_detached_driver(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan, "--integrate")
    world.wait_for_start("a")
    run.send_signal(signal.SIGHUP)
    wait_for_end(run)
    until(lambda: world.status("plan")["graph"]["driver"], "a detached driver takes over")
    world.release("a")
    until(lambda: world.status("plan")["graph"]["state"] == "INTEGRATED" or None, "it drives to the end")
    assert [line[0] for line in world.log_lines()] == ["start", "end", "start", "end"]
    world.assert_nothing_left("plan")


def test_detached_run_returns_at_once_and_finishes(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    done = world.run("graph-run", plan, "--detach", "--json")
    assert done.code == 0, str(done)
    assert done.data["graph"]["id"] == "plan"
    world.wait_for_start("a")
    world.release("a")
    waited = world.run("graph-wait", "plan", "--timeout", "60s", "--json")
    assert waited.code == 0, str(waited)
    assert world.status("plan")["graph"]["state"] == "SUCCEEDED"
    world.assert_nothing_left("plan")


def test_second_driver_is_refused_naming_the_first_and_nothing_starts_twice(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan)
    world.wait_for_start("a")
    second = world.run("graph-run", plan, "--json")
    assert second.code == 1, str(second)
    error = second.document["error"]
    assert error["code"] == "LEASE_HELD"
    assert str(run.pid) in error["message"]
    world.release("a")
    assert wait_for_end(run) == 0
    assert len([line for line in world.log_lines() if line[0] == "start"]) == 2


def test_three_drivers_at_once_start_each_subtask_once(world: World) -> None:
    plan = world.graph(PLAN)
    runs = [world.start("graph-run", plan) for _ in range(3)]
    codes = sorted(wait_for_end(run) for run in runs)
    assert codes[0] == 0, world.said()
    assert [line[:2] for line in world.log_lines()] == [["start", "a"], ["end", "a"], ["start", "b"], ["end", "b"]]


def test_stop_from_elsewhere_goes_through_the_driver(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan)
    world.wait_for_start("a")
    stopped = world.run("graph-stop", "plan", "--reason", "lunch", "--json")
    assert stopped.code == 0, str(stopped)
    assert wait_for_end(run) in (4, 130), world.said()
    assert {item["id"]: item["state"] for item in world.status("plan")["subtasks"]} == {"a": "STOPPED", "b": "BLOCKED"}
    assert world.run("graph-stop", "plan").code == 0
    world.assert_nothing_left("plan")


def test_stop_without_a_driver_closes_what_lives(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    run = world.start("graph-run", plan)
    world.wait_for_start("a")
    run.kill()
    run.wait(10)
    assert world.run("graph-stop", "plan", "--json").code == 0
    assert world.status("plan")["subtasks"][0]["state"] == "STOPPED"
    world.assert_nothing_left("plan")


def test_stop_on_exit_closes_the_agents(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    done = world.run("graph-run", plan, "--deadline", "2s", "--stop-on-exit", "--json")
    assert done.code in (6, 130), str(done)
    assert done.data["subtasks"][0]["state"] == "STOPPED"
    world.assert_nothing_left("plan")


def test_deadline_leaves_with_its_exit_code_and_the_next_run_finishes(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    done = world.run("graph-run", plan, "--deadline", "2s")
    assert done.code == 6, str(done)
    world.release("a")
    assert world.run("graph-run", plan).code == 0


def test_one_subtask_is_stopped_and_the_others_go_on_to_the_end(world: World) -> None:
    world.hold("a", "b")
    run = world.start("graph-run", world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"))
    stopped = psutil.Process(world.wait_for_start("a"))
    world.wait_for_start("b")
    done = world.run("graph-stop", "plan", "a", "--json")
    assert done.code == 0, str(done)
    assert not stopped.is_running()
    assert [item["state"] for item in done.data["subtasks"]] == ["STOPPED", "RUNNING"]
    world.release("b")
    assert wait_for_end(run) == 4, world.said()
    assert [item["state"] for item in world.status("plan")["subtasks"]] == ["STOPPED", "SUCCEEDED"]
    # Somebody stopped it: a mere graph-run leaves it so.
    assert world.run("graph-run", "plan").code == 4
    world.release("a")
    assert world.run("graph-run", "plan", "--retry-failed").code == 0
    world.assert_nothing_left("plan")


def test_drained_run_starts_nothing_new_and_ends(world: World) -> None:
    world.hold("a")
    run = world.start("graph-run", world.graph(PLAN))
    world.wait_for_start("a")
    assert world.run("graph-stop", "plan", "--drain").code == 0
    world.release("a")
    assert wait_for_end(run) == 4, world.said()
    assert [item["state"] for item in world.status("plan")["subtasks"]] == ["SUCCEEDED", "READY"]


def test_a_detached_run_takes_up_what_failed_when_asked(world: World) -> None:
    agent = world.agent('[ "$COORDINATE_AGENTS_ATTEMPT" -ge 2 ] || exit 7\necho x > f; git add f; git commit -qm x')
    world.configure({"one": (agent,)})
    plan = world.graph("subtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-run", plan).code == 4
    assert world.run("graph-run", "plan", "--retry-failed", "--detach").code == 0
    until(lambda: world.status("plan")["graph"]["state"] == "SUCCEEDED" or None, "the second attempt succeeds")
    world.assert_nothing_left("plan")
