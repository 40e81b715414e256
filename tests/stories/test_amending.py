"""The plan changes in the middle: graph-amend as its user meets it, with and without a driver."""

import signal
from typing import Any

import pytest
from crashes import Dies, both_ways
from world import ONE_COMMIT, World, commit_file, git, until

pytestmark = pytest.mark.story

CHAIN = """id: plan
subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, dependsOn: a}
  - {id: c, spec: x, dependsOn: b}
"""
WIDER = """id: plan
maxConcurrency: 2
subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, dependsOn: a, priority: 3, timeout: 5m}
  - {id: d, spec: x, dependsOn: a}
  - {id: e, spec: x, dependsOn: [b, d]}
"""
AMEND_POINTS = ("store.document.cached", "store.document.inserted", "store.document.committed")


def states(world: World) -> dict[str, str]:
    return {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}


def subtask(world: World, name: str) -> Any:
    return next(item for item in world.status("plan")["subtasks"] if item["id"] == name)


def last_event(world: World) -> Any:
    return world.run("graph-events", "plan", "--json").data["events"][-1]


def test_edited_graph_file_neither_mixes_with_what_started_nor_resets_it(world: World) -> None:
    """GF-23: a is verified and b runs when c is renamed, b's dependency dropped and a's prompt changed."""
    world.hold("b")
    driver = world.start("graph-run", world.graph(CHAIN))
    world.wait_for_start("b")
    verified = subtask(world, "a")["verifiedCommit"]
    edited = world.graph(CHAIN.replace("id: c", "id: c2").replace(", dependsOn: a}", "}").replace("x}", "y}", 1))

    resumed = world.run("graph-run", edited, "--json")
    assert resumed.code == 1
    assert resumed.document["error"]["differences"] == [
        "subtask a: title x → y",
        "subtask a: spec changed (1 → 1 characters, line 1 on)",
        "subtask b: dependsOn [a] → []",
        "subtask c: removed",
        "subtask c2: added",
    ]
    seen = last_event(world)["seq"]
    refused = world.run("graph-amend", "plan", edited, "--json")
    assert refused.code == 1
    told = refused.document["error"]
    assert (told["code"], told["started"]) == ("TASK_STATE_CONFLICT", ["a", "b"])
    assert "use graph-resume --redo" in told["message"]
    assert told["next"] == "coordinate-agents graph-resume plan a --redo --from base"
    assert last_event(world)["seq"] == seen

    world.release("b")
    assert driver.wait(60) == 0
    assert states(world) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "SUCCEEDED"}
    assert subtask(world, "a")["verifiedCommit"] == verified


def test_driver_goes_on_with_an_amended_plan_without_stopping(world: World) -> None:
    before = world.user_state()
    world.hold("b")
    driver = world.start("graph-run", world.graph(CHAIN), "--integrate")
    pid = world.wait_for_start("b")
    wider = world.graph(WIDER, "wider.yaml")
    seen = last_event(world)["seq"]
    looked = world.run("graph-amend", "plan", wider, "--dry-run", "--json").data["amend"]
    assert last_event(world)["seq"] == seen

    done = world.run("graph-amend", "plan", wider, "--json")

    assert done.code == 0, str(done)
    told = done.data["amend"]
    lines = [
        "graph: maxConcurrency 4 → 2",
        "subtask b: priority 0 → 3",
        "subtask b: timeout 45m → 5m",
        "subtask c: removed",
        "subtask d: added",
        "subtask e: added",
    ]
    assert told == {
        "amended": True,
        "revision": 2,
        "added": ["d", "e"],
        "changed": ["b"],
        "dropped": ["c"],
        "base": None,
        "differences": lines,
        "dryRun": False,
    }
    assert looked == {**told, "amended": False, "revision": 1, "dryRun": True}
    # The new one starts while b is still at work, under the same driver.
    world.wait_for_start("d")
    until(lambda: subtask(world, "d")["state"] == "SUCCEEDED" or None, "d succeeds")
    assert world.status("plan")["graph"]["driver"]["pid"] == driver.pid
    again = world.run("graph-amend", "plan", wider, "--json").data["amend"]
    assert (again["amended"], again["revision"], again["differences"]) == (False, 2, [])
    world.release("b")
    assert driver.wait(60) == 0
    assert states(world) == dict.fromkeys("abde", "SUCCEEDED")
    assert [line[3] for line in world.log_lines() if line[:2] == ["start", "b"]] == [str(pid)]
    assert set(world.files("coordinate-agents/plan/integration")) == {"README.md", "f-a", "f-b", "f-d", "f-e"}
    assert world.run("graph-verify", "plan").code == 0
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_amended_limit_holds_for_the_turn_that_runs_with_a_driver_and_without(world: World) -> None:
    text = "id: plan\nsubtasks:\n  - {id: a, spec: x, timeout: 5h}\n  - {id: b, spec: x, timeout: 5h}\n"
    world.hold("a", "b")
    driver = world.start("graph-run", world.graph(text))
    for name in ("a", "b"):
        world.wait_for_start(name)
    shown = world.run("graph-inspect", "plan", "a").out
    assert (
        "limits    timeout 5h, idleTimeout 10m, inputTimeout 12h; others: coordinate-agents graph-amend plan" in shown
    )
    shorter = text.replace("id: a, spec: x, timeout: 5h", "id: a, spec: x, timeout: 500ms")
    assert world.run("graph-amend", "plan", world.graph(shorter)).code == 0
    until(lambda: states(world)["a"] == "FAILED" or None, "a is ended by its new limit")
    failure = subtask(world, "a")["failure"]
    assert (failure["code"], "its limit of 500ms" in failure["message"]) == ("AGENT_TIMEOUT", True)
    assert subtask(world, "b")["phase"] == "working"
    assert "    coordinate-agents graph-amend plan FILE" in world.run("graph-inspect", "plan", "a").out

    driver.send_signal(signal.SIGINT)
    assert driver.wait(60) == 130
    assert world.run("graph-amend", "plan", world.graph(shorter.replace("5h", "500ms"))).code == 0
    assert world.run("graph-run", "plan").code == 4
    assert subtask(world, "b")["failure"]["code"] == "AGENT_TIMEOUT"
    world.assert_nothing_left("plan")


def test_who_waits_for_a_subtask_that_is_dropped_is_told(world: World) -> None:
    world.hold("a")
    driver = world.start("graph-run", world.graph(CHAIN))
    world.wait_for_start("a")
    waiting = world.start("graph-wait", "plan", "--for", "c")
    assert world.run("graph-amend", "plan", world.graph(WIDER)).code == 0
    assert waiting.wait(30) == 1
    assert "Subtask c was dropped from graph plan" in world.said()
    world.release("a")
    assert driver.wait(60) == 0


def test_subtask_that_is_to_be_done_otherwise_is_redone_first_then_amended(world: World) -> None:
    body = 'cat "$1" > "f-$S"; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body), "{promptFile}")})
    assert world.run("graph-run", world.graph(CHAIN)).code == 0
    changed = world.graph(CHAIN.replace("x}", "Do it in another way.}", 1))
    refused = world.run("graph-amend", "plan", changed, "--json").document["error"]
    assert world.run(*refused["next"].split()[1:]).code == 0

    assert world.run("graph-amend", "plan", changed).code == 0
    assert world.run("graph-run", "plan").code == 0
    head = subtask(world, "c")["verifiedCommit"]
    assert "Do it in another way." in world.files(head)["f-a"]
    assert git(world.root, "merge-base", "--is-ancestor", subtask(world, "a")["verifiedCommit"], head) == ""


def test_newer_base_serves_what_has_not_started_and_leaves_the_rest(world: World) -> None:
    plan = world.graph(CHAIN)
    assert world.run("graph-run", plan, "--until", "a").code == 0
    old = subtask(world, "a")
    aside = git(world.root, "rev-parse", "feature")
    commit_file(world.root, "later.txt", "what came meanwhile\n")
    newer = git(world.root, "rev-parse", "main")
    refused = world.run("graph-amend", "plan", plan, "--base", f"{aside}~1^{{tree}}", "--json")
    assert refused.code in (1, 2)

    done = world.run("graph-amend", "plan", plan, "--base", "main", "--json")

    assert done.code == 0, str(done)
    assert done.data["amend"]["base"] == newer
    assert done.data["graph"]["baseCommit"] == newer
    stale = world.run("graph-amend", "plan", plan, "--base", "feature", "--json").document["error"]
    assert stale["code"] == "TASK_STATE_CONFLICT"
    assert world.run("graph-run", "plan", "--integrate").code == 0
    item = subtask(world, "b")
    for ancestor in (newer, old["verifiedCommit"]):
        git(world.root, "merge-base", "--is-ancestor", ancestor, item["base"])
    assert subtask(world, "a") == old
    assert set(world.files("coordinate-agents/plan/integration")) == {"README.md", "later.txt", "f-a", "f-b", "f-c"}
    assert world.run("graph-verify", "plan").code == 0
    moved = world.run("graph-amend", "plan", plan, "--base", "main~0", "--json")
    assert (moved.code, moved.data["amend"]["amended"]) == (0, False)


def test_configuration_is_taken_over_with_the_amendment(world: World) -> None:
    world.configure({"one": (world.agent("exit 1"),)})
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-run", plan).code == 4
    world.configure({"one": (ONE_COMMIT,)})
    assert world.run("graph-run", "plan", "--retry-failed").code == 4
    done = world.run("graph-amend", "plan", plan, "--json")
    assert done.data["amend"]["differences"] == ["configuration: agent one changed"]
    assert world.run("graph-run", "plan", "--retry-failed").code == 0


def test_conflicting_base_is_settled_by_another_plan(world: World) -> None:
    body = 'case "$S" in a|b) echo "$S" > same;; esac; echo "$S" > "f-$S"; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body),)})
    fork = "id: plan\nsubtasks:\n  - {id: a, spec: x}\n  - {id: b, spec: x}\n  - {id: c, spec: x, dependsOn: [a, b]}\n"
    assert world.run("graph-run", world.graph(fork)).code == 5
    assert world.run("graph-amend", "plan", world.graph(fork.replace("[a, b]", "[b]"))).code == 0
    assert world.run("graph-run", "plan").code == 0
    assert subtask(world, "c")["base"] == subtask(world, "b")["verifiedCommit"]


def test_amendment_that_dies_is_whole_or_not_there_and_finished_by_the_same_words(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        plan, wider = world.graph(CHAIN), world.graph(WIDER, "wider.yaml")
        is_there = False
        assert world.run("graph-create", plan).code == 0
        for point in AMEND_POINTS:
            if dies(point, "graph-amend", "plan", wider):
                is_there = point == "store.document.committed"
                assert set(states(world)) == set("abde" if is_there else "abc")
        done = world.run("graph-amend", "plan", wider, "--json").data["amend"]
        assert (done["amended"], done["revision"]) == (not is_there, 2)
        assert world.run("graph-run", "plan").code == 0
        assert states(world) == dict.fromkeys("abde", "SUCCEEDED")

    both_ways(world, story)


@pytest.mark.parametrize("point", AMEND_POINTS)
def test_driver_that_dies_while_it_takes_an_amendment_over_leaves_it_to_who_asked(world: World, point: str) -> None:
    world.hold("b")
    with world.dying_at(point):
        driver = world.start("graph-run", world.graph(CHAIN))
    world.wait_for_start("b")
    done = world.run("graph-amend", "plan", world.graph(WIDER, "wider.yaml"), "--json")
    assert done.code == 0, str(done)
    assert (driver.wait(30), world.deaths(point)) == (-signal.SIGKILL, 1)
    assert done.data["amend"]["revision"] == 2
    world.release("b")
    assert world.run("graph-run", "plan").code == 0
    assert states(world) == dict.fromkeys("abde", "SUCCEEDED")
    assert [line for line in world.log_lines() if line[0] == "overlap"] == []
    world.assert_nothing_left("plan")
