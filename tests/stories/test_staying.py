"""Interactive agents: one process over several turns, idle between them, closed when nobody needs it any more."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from crashes import Dies, both_ways
from world import FIXTURES, World, git, until

from coordinate_agents.graph.crashpoints import POINTS

pytestmark = pytest.mark.story

STAYS = FIXTURES / "agents" / "stays.py"
SUBMIT = ': > "$COORDINATE_AGENTS_SUBMIT_FILE"'
# Each turn adds a line of its own; the check wants two.
ADDS = f'echo "turn $TURN" >> "f-$S"; git add -A; git commit -q -m "turn $TURN"; {SUBMIT}'
WANTS_TWO = "checks: [[sh, -c, \"grep -q 'turn 2' f-*\"]]\n"


@pytest.fixture
def world(world: World) -> Iterator[World]:
    """The world, in which whatever an agent left idle is stopped afterwards."""
    yield world
    world.run("graph-stop", "plan")
    world.assert_nothing_left("plan")


def configure(world: World, body: str, *more: str) -> None:
    script = world.place / "stays.sh"
    script.write_text(f'S="$COORDINATE_AGENTS_SUBTASK"\n{body}\n')
    lines = [
        "version: 1",
        "agents:",
        "  one:",
        "    adapter: generic",
        f"    command: {STAYS}",
        "    mode: interactive",
    ]
    world.configure_text("\n".join([*lines, f"    args: [{script}]", *more]) + "\n")


def only(data: Any) -> Any:
    (subtask,) = data["subtasks"]
    return subtask


def turns(world: World) -> list[list[str]]:
    """What the agents noted: [subtask, turn of its process, pid, file with the prompt]."""
    return [line[1:] for line in world.log_lines() if line[0] == "turn"]


def events(world: World, *types: str) -> list[Any]:
    found = world.run("graph-events", "plan", "--json").data["events"]
    return [event["data"] for event in found if event["type"] in types]


def told(world: World, number: int) -> str:
    return Path(turns(world)[number][3]).read_text()


def sessions(starting: Sequence[Any]) -> list[Any]:
    return [(each["session"], each.get("turn"), each.get("reused", False)) for each in starting]


def test_a_fix_turn_is_typed_into_the_process_that_stayed_and_the_session_is_idle_afterwards(world: World) -> None:
    configure(world, ADDS)
    plan = world.graph(f"id: plan\n{WANTS_TWO}subtasks: [{{id: a, spec: Add the lines.}}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    subtask = only(done.data)
    assert (subtask["state"], subtask["attempt"]) == ("SUCCEEDED", 1)
    assert git(world.root, "show", f"{subtask['verifiedCommit']}:f-a") == "turn 1\nturn 2"
    first, second = turns(world)
    assert (first[:2], second[:2]) == (["a", "1"], ["a", "2"])
    assert first[2] == second[2], "another process"
    assert "Add the lines." in told(world, 0)
    assert "is not accepted yet" in told(world, 1)
    assert sessions(events(world, "SessionStarting")) == [("plan.a.a1", 0, False), ("plan.a.a1", 1, True)]
    assert [each["stays"] for each in events(world, "TurnEnded")] == [True, True]
    assert (subtask["session"]["id"], subtask["session"]["state"]) == ("plan.a.a1", "idle")
    assert world.run("session-status", "plan/a", "--json").data["session"]["state"] == "idle"
    assert psutil.pid_exists(int(second[2]))
    text = world.run("graph-status", "plan").out
    assert "idle" in text
    assert "graph-stop plan" in text
    assert world.run("graph-stop", "plan").code == 0
    assert not psutil.pid_exists(int(second[2]))
    stopped = world.status("plan")
    assert (stopped["graph"]["state"], only(stopped)["state"]) == ("SUCCEEDED", "SUCCEEDED")
    assert only(stopped)["session"]["state"] == "exited"


@pytest.mark.parametrize("can_resume", [True, False])
def test_a_process_that_died_between_two_turns_is_taken_up_by_another_or_the_next_attempt(
    world: World, can_resume: bool
) -> None:
    again = ["    resumeArgs: [stays.sh]"] if can_resume else []
    configure(world, ADDS, *(line.replace("stays.sh", str(world.place / "stays.sh")) for line in again))
    # The check ends the agent that it finds, once.
    kill = f"grep -q ended {world.place}/once 2>/dev/null || "
    kill += f"{{ echo ended > {world.place}/once; kill -9 $(tail -n 1 $FAKE_LOG | cut -d' ' -f 4); exit 1; }}"
    plan = world.graph(f'id: plan\nchecks: [[sh, -c, "{kill}"]]\nsubtasks: [{{id: a, spec: x, attempts: 2}}]\n')
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    first, second = turns(world)
    assert (first[1], second[1], first[2] != second[2]) == ("1", "1", True)
    starting = events(world, "SessionStarting")
    if can_resume:
        assert sessions(starting) == [("plan.a.a1", 0, False), ("plan.a.a1.t1", 1, False)]
        assert starting[1]["why"] == "its process is gone (ended)"
        assert world.run("session-status", "plan/a", "--json").data["session"]["resumed"] is True
    else:
        assert sessions(starting) == [("plan.a.a1", 0, False), ("plan.a.a2", 0, False)]
    assert [each["session"] for each in events(world, "SessionClosed")] == ["plan.a.a1"]


@pytest.mark.parametrize("how_often", [1, 9])
def test_what_an_idle_agent_moves_during_the_verification_is_verified_anew_and_not_for_ever(
    world: World, how_often: int
) -> None:
    moves = (
        f"( n=0; while [ $n -lt {how_often} ]; do n=$((n + 1))\n"
        f"    while [ ! -e {world.gates}/look-$n ]; do sleep 0.02; done\n"
        '    echo "$n" > late; git add -A; git commit -q -m "late $n"; : > '
        f"{world.gates}/moved-$n; done ) < /dev/null > /dev/null 2>&1 &\n"
    )
    configure(world, f'echo work > "f-$S"; git add -A; git commit -q -m work; {moves}{SUBMIT}')
    # Each look opens one gate and waits for what the agent does then.
    look = f"cd {world.gates}; n=$(($(ls | grep -c look-) + 1)); [ $n -gt {how_often} ] && exit 0; "
    look += ": > look-$n; while [ ! -e moved-$n ]; do sleep 0.02; done"
    plan = world.graph(f'id: plan\nsubtasks: [{{id: a, spec: x, fixTurns: 0, checks: [[sh, -c, "{look}"]]}}]\n')
    done = world.run("graph-run", plan, "--json")
    subtask = only(done.data)
    assert len(events(world, "FactsRecorded")) == min(how_often + 1, 3)
    if how_often == 1:
        assert done.code == 0, str(done)
        assert git(world.root, "show", f"{subtask['verifiedCommit']}:late") == "1"
        assert git(world.root, "rev-parse", "coordinate-agents/plan/a") == subtask["verifiedCommit"]
    else:
        assert done.code == 4, str(done)
        assert "during the verification" in subtask["failure"]["message"]
        world.assert_nothing_left("plan")


def test_a_submission_of_the_turn_before_does_not_end_the_next_one(world: World) -> None:
    waits = f'if [ "$TURN" = 2 ]; then while [ ! -e {world.gates}/go ]; do sleep 0.02; done; fi'
    configure(world, f"{waits}\n{ADDS}")
    plan = world.graph(f"id: plan\n{WANTS_TWO}subtasks: [{{id: a, spec: x}}]\n")
    driver = world.start("graph-run", plan)
    until(lambda: len(turns(world)) == 2 or None, "the second turn begins")
    # Long enough for every look at a file that would be taken for a submission.
    time.sleep(3.0)
    assert len(events(world, "TurnEnded")) == 1
    (world.gates / "go").touch()
    assert driver.wait(60) == 0
    assert [each["cause"] for each in events(world, "TurnEnded")] == ["submitted", "submitted"]


def test_a_new_attempt_starts_only_after_the_session_of_the_one_before_is_closed(world: World) -> None:
    alive = f"ps -o pid= -p $(head -n 1 $FAKE_LOG | cut -d' ' -f 4) >> {world.place}/alive || true"
    configure(world, f"{alive}\n{ADDS}")
    plan = world.graph(f"id: plan\n{WANTS_TWO}subtasks: [{{id: a, spec: x, attempts: 2, fixTurns: 0}}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4, str(done)
    first, second = (turn[2] for turn in turns(world))
    assert first != second
    assert (world.place / "alive").read_text().split() == [first], "the first lives in its own turn alone"
    assert [each["reason"] for each in events(world, "SessionClosed")] == ["its attempt failed", "its attempt failed"]
    world.assert_nothing_left("plan")


def test_an_agent_that_is_configured_anew_while_it_idles_is_ended_before_the_next_turn_begins(world: World) -> None:
    alive = f"ps -o pid= -p $(head -n 1 $FAKE_LOG | cut -d' ' -f 4) >> {world.place}/alive || true"
    again = f"    resumeArgs: [{world.place}/stays.sh]"
    configure(world, f"{alive}\n{ADDS}", again)
    waits = "[ -e amended ] && exit 0; touch checked; while [ ! -e amended ]; do sleep 0.02; done; exit 1"
    check = json.dumps(["sh", "-c", f"cd {world.place}; {waits}"])
    plan = world.graph(f"id: plan\nchecks: [{check}]\nsubtasks: [{{id: a, spec: x}}]\n")
    driver = world.start("graph-run", plan)
    until(lambda: (world.place / "checked").exists() or None, "its first turn is checked")
    configure(world, f"{alive}\n{ADDS}", again, "    env: {LEVEL: high}")
    assert world.run("graph-amend", "plan", plan).code == 0
    (world.place / "amended").touch()
    assert driver.wait(60) == 0, world.said()
    first, second = (turn[2] for turn in turns(world))
    assert first != second
    assert (world.place / "alive").read_text().split() == [first], "the first lives in its own turn alone"
    assert [each.get("why", "") for each in events(world, "SessionStarting")] == ["", "one is configured anew"]
    assert world.run("graph-stop", "plan").code == 0


def test_a_run_that_stops_on_exit_leaves_no_idle_session(world: World) -> None:
    configure(world, ADDS)
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    done = world.run("graph-run", plan, "--stop-on-exit", "--json")
    assert done.code == 0, str(done)
    assert only(done.data)["session"]["state"] == "exited"
    world.assert_nothing_left("plan")


def test_status_says_that_an_idle_session_ended_although_nobody_drives(world: World) -> None:
    configure(world, ADDS)
    assert world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 0
    assert only(world.status("plan"))["session"]["state"] == "idle"
    psutil.Process(int(turns(world)[0][2])).kill()
    until(lambda: only(world.status("plan"))["session"]["state"] == "exited" or None, "its end is seen")


DRIVERS_POINTS = ("turn.seen", "stay.over:2", "stay.intended", "stay.begun")


@pytest.mark.parametrize("point", DRIVERS_POINTS)
def test_a_driver_that_dies_between_two_turns_is_followed_by_one_that_goes_on_in_the_same_process(
    world: World, point: str
) -> None:
    def story(world: World, dies: Dies) -> None:
        configure(world, ADDS)
        plan = world.graph(f"id: plan\n{WANTS_TWO}subtasks: [{{id: a, spec: x}}]\n")
        dies(point, "graph-run", plan)
        done = world.run("graph-run", plan, "--json")
        assert done.code == 0, str(done)
        assert [turn[1] for turn in turns(world)] == ["1", "2"]
        assert len({turn[2] for turn in turns(world)}) == 1
        assert only(done.data)["attempt"] == 1
        if point == DRIVERS_POINTS[0]:
            dies("stay.closed", "graph-stop", "plan")
        assert world.run("graph-stop", "plan").code == 0
        assert [each["session"] for each in events(world, "SessionClosed")] == ["plan.a.a1"]

    both_ways(world, story, name="stay")
    world.assert_nothing_left("plan")


def test_every_point_of_agents_that_stay_is_in_a_case_here() -> None:
    told = {point.partition(":")[0] for point in DRIVERS_POINTS} | {"stay.closed"}
    assert {point for point in POINTS if point.startswith("stay.")} <= told
