"""graph-wait: the end, attention, one subtask, a limit, and a driver that died."""

import os
import signal
import subprocess

from world import PROGRAM, World, until

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"


def _started(world: World, plan: str = PLAN) -> subprocess.Popen[bytes]:
    """A run whose agent of `a` stands at its gate."""
    world.hold("a")
    run = world.start("run", world.graph(plan))
    world.wait_for_start("a")
    return run


def test_a_limit_that_passes_is_exit_code_six(world: World) -> None:
    run = _started(world)
    done = world.run("wait", "plan", "--timeout", "300ms", "--json")
    assert (done.code, done.document["error"]["code"]) == (6, "WAIT_TIMED_OUT")
    assert done.document["error"]["message"] == "Graph plan: end did not come within 0.3 s."
    world.release("a")
    assert run.wait(60) == 0


def test_waiting_for_the_end_ends_with_it(world: World) -> None:
    run = _started(world)
    waiting = subprocess.Popen(
        [PROGRAM, "wait", "plan", "--json"], cwd=world.root, env=world.environment, stdout=subprocess.PIPE
    )
    world.release("a")
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert b'"state": "SUCCEEDED"' in out
    assert run.wait(60) == 0


def test_waiting_for_one_subtask_ends_before_the_graph(world: World) -> None:
    world.hold("b")
    run = world.start("run", world.graph(PLAN))
    done = world.run("wait", "plan", "--for", "a", "--json") if world.wait_for_start("a") else None
    assert done is not None
    assert done.code == 0, str(done)
    assert {each["id"]: each["state"] for each in done.data["subtasks"]}["a"] == "SUCCEEDED"
    world.release("b")
    assert run.wait(60) == 0


def test_a_failure_is_attention(world: World) -> None:
    plan = PLAN.replace("{id: a, spec: x}", "{id: a, spec: x, checks: [[test, -f, missing]]}")
    assert world.run("run", world.graph(plan)).code == 4
    assert world.run("wait", "plan", "--for", "attention").code == 5
    assert world.run("wait", "plan").code == 4
    assert world.run("wait", "plan", "--for", "b").code == 4


def test_a_driver_that_was_killed_ends_the_waiting_once_nothing_lives(world: World) -> None:
    """Its agent goes on and is verified by who waits; what nobody starts never comes, and that is said."""
    run = _started(world)
    waiting = subprocess.Popen(
        [PROGRAM, "wait", "plan"], cwd=world.root, env=world.environment, stderr=subprocess.PIPE, text=True
    )
    os.kill(run.pid, signal.SIGKILL)
    run.wait(30)
    world.release("a")
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 4, said
    assert {each["id"]: each["state"] for each in world.status("plan")["subtasks"]} == {"a": "SUCCEEDED", "b": "READY"}
    until(lambda: (world.run("run", "plan").code == 0) or None, "the run is finished by another driver")


def test_one_subtask_is_waited_for_and_verified_without_a_driver(world: World) -> None:
    world.run("create", world.graph(PLAN))
    assert world.run("dispatch", "plan", "a").code == 0
    done = world.run("wait", "plan", "--for", "a", "--timeout", "60s", "--json")
    assert done.code == 0, str(done)
    assert {each["id"]: each["state"] for each in done.data["subtasks"]} == {"a": "SUCCEEDED", "b": "READY"}


def test_waiting_for_an_unknown_subtask_is_refused(world: World) -> None:
    world.run("create", world.graph(PLAN))
    done = world.run("wait", "plan", "--for", "nothing")
    assert (done.code, done.err.splitlines()[0]) == (
        1,
        "TASK_NOT_FOUND: Graph plan has no subtask 'nothing'; its subtasks are a and b.",
    )


def test_waiting_for_a_graph_that_nobody_started_is_refused(world: World) -> None:
    world.run("create", world.graph(PLAN))
    assert "Nobody drives graph plan (CREATED)" in world.run("wait", "plan").err


def test_waiting_right_after_a_detached_start_waits_for_its_driver(world: World) -> None:
    assert world.run("run", world.graph(PLAN), "--detach").code == 0
    done = world.run("wait", "plan", "--timeout", "60s", "--json")
    assert (done.code, done.data["graph"]["state"]) == (0, "SUCCEEDED")
