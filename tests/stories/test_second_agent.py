"""No second agent in one worktree, whichever verb asks for another attempt and whatever the record believes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from world import World, until

pytestmark = pytest.mark.story

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"


def _item(world: World) -> Any:
    return world.status("plan")["subtasks"][0]


def _failure(world: World) -> tuple[str, str]:
    failure = _item(world)["failure"]
    return failure["code"], failure["next"]


def _starts(world: World) -> list[str]:
    return [line[2] for line in world.log_lines() if line[0] == "start"]


def _forgotten_agent(world: World) -> tuple[psutil.Process, psutil.Process, Path, Path]:
    """An agent at its gate whose driver died and whose Session's folder went away: the record calls it gone."""
    world.hold("a")
    run = world.start("graph-run", world.graph(PLAN))
    agent = psutil.Process(world.wait_for_start("a"))
    host = agent.parent()
    assert host is not None
    until(lambda: _item(world)["phase"] == "working" or None, "its start is recorded")
    run.kill()
    run.wait(30)
    folder = world.root / ".git" / "coordinate-agents" / "sessions" / "plan.a.a1"
    away = world.place / "away"
    folder.rename(away)
    assert world.run("graph-recover", "plan").code == 0
    assert (_item(world)["state"], _item(world)["reason"]) == ("STOPPED", "interrupted: its Session's record is gone")
    return agent, host, folder, away


@pytest.fixture
def person() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that a person started; ended afterwards."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for each in started:
        each.kill()
        each.wait()


def test_what_survived_a_session_keeps_every_way_to_another_attempt_closed(
    world: World, person: list[subprocess.Popen[bytes]]
) -> None:
    world.hold("a")
    run = world.start("graph-run", world.graph(PLAN))
    agent = psutil.Process(world.wait_for_start("a"))
    host = agent.parent()
    assert host is not None
    person.append(subprocess.Popen(["sleep", "600"], cwd=_item(world)["worktree"]))
    host.kill()
    assert run.wait(60) == 4, world.said()
    assert _failure(world)[0] == "SESSION_CLOSE_FAILED"
    world.release("a")
    refused = ("SESSION_CLOSE_FAILED", f"kill {person[0].pid}")
    assert world.run("graph-run", "plan", "--retry-failed").code == 4
    assert _failure(world) == refused
    assert world.run("graph-resume", "plan", "a").code == 0
    dispatched = world.run("graph-dispatch", "plan", "a", "--json").document["error"]
    assert (dispatched["code"], dispatched["next"]) == refused
    assert world.run("graph-resume", "plan", "a", "--run").code == 4
    assert _failure(world) == refused
    assert (_starts(world), person[0].poll()) == (["1"], None)
    os.kill(person[0].pid, signal.SIGKILL)
    person[0].wait()
    assert world.run("graph-run", "plan", "--retry-failed").code == 0
    assert len(_starts(world)) == 2
    world.assert_nothing_left("plan")


def test_a_session_that_comes_back_after_its_driver_died_is_adopted_by_the_next_run(world: World) -> None:
    agent, _, folder, away = _forgotten_agent(world)
    away.rename(folder)
    run = world.start("graph-run", "plan")
    until(lambda: _item(world)["state"] == "RUNNING" or None, "it goes on")
    world.release("a")
    assert run.wait(60) == 0, world.said()
    assert (_starts(world), _item(world)["attempt"]) == (["1"], 1)
    assert not agent.is_running()
    world.assert_nothing_left("plan")


def test_a_suspended_host_of_a_session_that_was_called_lost_lets_no_second_agent_start(world: World) -> None:
    _, host, folder, away = _forgotten_agent(world)
    away.rename(folder)
    host.suspend()
    try:
        refused = ("SESSION_STATE_CONFLICT", f"kill -CONT {host.pid}")
        assert world.run("graph-run", "plan").code == 4
        assert _failure(world) == refused
        look = "coordinate-agents graph-inspect plan a --part failure"
        assert [item["next"] for item in world.status("plan")["attention"]] == [look]
        events = world.run("graph-events", "plan", "--json").data["events"]
        assert world.run("graph-run", "plan", "--retry-failed").code == 4
        more = world.run("graph-events", "plan", "--json").data["events"][len(events) :]
        assert [event["type"] for event in more] == ["DriveStarted", "DriveEnded"]
        resumed = world.run("graph-resume", "plan", "a", "--json").document["error"]
        assert (resumed["code"], resumed["next"]) == refused
    finally:
        with suppress(psutil.NoSuchProcess):
            host.resume()
    adopted = world.run("graph-resume", "plan", "a", "--json")
    assert (adopted.code, adopted.data["resume"]["adopted"]) == (0, ["a"]), str(adopted)
    world.release("a")
    assert world.run("graph-run", "plan").code == 0
    assert (_starts(world), _item(world)["attempt"]) == (["1"], 1)
    world.assert_nothing_left("plan")


def test_an_agent_that_came_back_after_another_attempt_was_made_ready_is_named(world: World) -> None:
    """The look of graph-resume found nothing; the start looks again, at every earlier attempt."""
    agent, _, folder, away = _forgotten_agent(world)
    assert world.run("graph-resume", "plan", "a").code == 0
    away.rename(folder)
    dispatched = world.run("graph-dispatch", "plan", "a", "--json").document["error"]
    refused = ("SESSION_STATE_CONFLICT", "coordinate-agents session-close plan.a.a1")
    assert (dispatched["code"], dispatched["next"]) == refused
    assert world.run("graph-run", "plan", "--retry-failed").code == 4
    assert (_failure(world), _starts(world), agent.is_running()) == (refused, ["1"], True)
    assert world.run("session-close", "plan.a.a1").code == 0
    world.release("a")
    assert world.run("graph-run", "plan", "--retry-failed").code == 0
    assert len(_starts(world)) == 2
    world.assert_nothing_left("plan")
