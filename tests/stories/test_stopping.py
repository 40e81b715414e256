"""graph-stop beside a driver that has nothing else to do, and beside one that is stopped itself."""

import signal

import psutil
import pytest
from world import World, until

pytestmark = pytest.mark.story


def _states(world: World) -> dict[str, str]:
    return {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}


def test_the_only_running_subtask_is_stopped_before_its_driver_ends(world: World) -> None:
    """Halted, it left nothing that ran: the drive ended, the agent lived on, and nobody answered the request."""
    world.hold("a")
    run = world.start("graph-run", world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"))
    agent = psutil.Process(world.wait_for_start("a"))
    done = world.run("graph-stop", "plan", "a", "--json")
    assert (done.code, done.data["stop"]["outcome"]) == (0, "accepted"), str(done)
    assert run.wait(60) == 4, world.said()
    assert not agent.is_running()
    assert _states(world) == {"a": "STOPPED", "b": "BLOCKED"}
    world.assert_nothing_left("plan")


def test_what_waited_for_the_stopped_subtask_starts_in_the_same_drive(world: World) -> None:
    world.hold("a")
    text = "maxConcurrency: 1\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"
    run = world.start("graph-run", world.graph(text))
    world.wait_for_start("a")
    assert world.run("graph-stop", "plan", "a").code == 0
    assert run.wait(60) == 4, world.said()
    assert _states(world) == {"a": "STOPPED", "b": "SUCCEEDED"}


def test_a_stop_that_a_stopped_driver_cannot_carry_out_is_said_and_done_when_it_goes_on(world: World) -> None:
    world.hold("a")
    run = world.start("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"))
    world.wait_for_start("a")
    run.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(run.pid).status() == psutil.STATUS_STOPPED or None, "the driver stops")
    try:
        done = world.run("graph-stop", "plan", "a", "--json")
    finally:
        run.send_signal(signal.SIGCONT)
    assert done.code == 6, str(done)
    error = done.document["error"]
    assert (error["code"], error["next"]) == ("WAIT_TIMED_OUT", f"kill -CONT {run.pid}")
    assert run.wait(60) == 4, world.said()
    assert _states(world) == {"a": "STOPPED"}
    world.assert_nothing_left("plan")


def test_what_is_said_twice_to_a_stopped_graph_is_done_once_and_starts_nobody(world: World) -> None:
    """RC-07."""
    world.hold("a")
    run = world.start("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"))
    world.wait_for_start("a")
    assert world.run("graph-stop", "plan").code == 0
    run.wait(30)
    for words in (("graph-stop",), ("graph-resume", "--say", "use tabs"), ("graph-cleanup",)):
        first = world.run(words[0], "plan", *words[1:])
        assert first.code == 0, str(first)
        before = world.run("graph-events", "plan", "--json").data["events"]
        again = world.run(words[0], "plan", *words[1:])
        assert again.code == 0, str(again)
        assert world.run("graph-events", "plan", "--json").data["events"] == before, str(again)
    assert _states(world) == {"a": "READY"}
    assert [line[0] for line in world.log_lines()] == ["start"]
    world.assert_nothing_left("plan")


def test_a_stop_right_after_a_detached_start_finds_its_driver(world: World) -> None:
    """The driver held no lease yet, the stop found nobody to tell, and then the agents started."""
    world.hold("a")
    started = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--detach")
    assert started.code == 0, str(started)
    done = world.run("graph-stop", "plan", "--json")
    assert (done.code, done.data["stop"]["outcome"]) == (0, "accepted"), str(done)
    until(lambda: world.processes() == [] or None, "everything ends")
    assert world.status("plan")["subtasks"][0]["state"] in ("READY", "STOPPED")
    world.assert_nothing_left("plan")
