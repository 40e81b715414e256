"""graph-why: each state is explained by the facts behind it, with the events that recorded them."""

from typing import Any

import pytest
from world import World

pytestmark = pytest.mark.story

PLAN = """id: plan
maxConcurrency: 1
subtasks:
  - {id: b, spec: x, priority: 5, checks: ["test -e f-b", "test -e nothing"], fixTurns: 0}
  - {id: c, spec: x, dependsOn: b}
  - {id: d, spec: x, priority: 3}
  - {id: e, spec: x}
  - {id: f, spec: x, dependsOn: e}
"""


def why(world: World, subtask: str) -> list[tuple[int, str, str, str | None]]:
    done = world.run("graph-why", "plan", subtask, "--json")
    assert done.code == 0, str(done)
    return [(each["depth"], each["subtask"], each["fact"], each["type"]) for each in done.data["chain"]]


def test_chain_leads_from_a_state_to_what_brought_it_about(world: World) -> None:
    world.hold("d")
    driver = world.start("graph-run", world.graph(PLAN))
    world.wait_for_start("d")
    verdict = "FAILED, attempt 1: CHECK_FAILED: check test -e nothing failed with exit code 1"
    check = "check test -e nothing (test -e nothing) failed, exit code 1"
    at_work = (1, "d", "is RUNNING (working), attempt 1 with one", "TaskClaimed")
    no_slot = "is READY, and waits: SLOTS: all 1 slots are taken"

    assert why(world, "c")[:3] == [
        (0, "c", "is BLOCKED by b", None),
        (1, "b", verdict, "TaskJudged"),
        (2, "b", check, "CheckEnded"),
    ]
    assert why(world, "e") == [(0, "e", no_slot, None), at_work]
    assert why(world, "f") == [(0, "f", "is WAITING for e", None), (1, "e", no_slot, None), (2, *at_work[1:])]

    chain: list[dict[str, Any]] = world.run("graph-why", "plan", "b", "--json").data["chain"]
    events = {each["seq"]: each for each in world.run("graph-events", "plan", "--json").data["events"]}
    assert events[chain[0]["seq"]]["type"] == "TaskJudged"
    assert events[chain[1]["seq"]]["data"]["result"]["name"] == "test -e nothing"
    assert chain[0]["next"].startswith("coordinate-agents graph-")
    world.release("d")
    assert driver.wait(60) == 4
    assert why(world, "e")[0][2].startswith("SUCCEEDED: ")


def test_conflicting_base_and_a_hold_are_named_with_the_command_that_ends_them(world: World) -> None:
    body = 'echo "$S" > same; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body),)})
    fork = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: [a, b]}, "
    assert world.run("graph-run", world.graph(fork + "{id: d, spec: x, dependsOn: c}]")).code == 5
    assert why(world, "d") == [
        (0, "d", "is BLOCKED by c", None),
        (1, "c", "is BLOCKED: a and b do not merge in same", "BaseConflicted"),
    ]
    chain = world.run("graph-why", "plan", "c", "--json").data["chain"]
    assert chain[0]["next"] == "coordinate-agents graph-resolve plan c"
    text = world.run("graph-why", "plan", "d").out.splitlines()
    assert text[0] == "d is BLOCKED by c"
    assert text[3] == "      coordinate-agents graph-resolve plan c"
