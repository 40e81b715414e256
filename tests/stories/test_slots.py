"""What is shared by subtasks that run at the same time: numbered slots with ports of their own, and the disk."""

from pathlib import Path

import pytest
from world import World, until

pytestmark = pytest.mark.story

NOTE = 'echo "$COORDINATE_AGENTS_SLOT $COORDINATE_AGENTS_PORT_BASE"'


def configured(world: World, program: Path, *more: str) -> None:
    lines = ["version: 1", "defaultAgent: one", "agents:", f"  one: {{adapter: generic, command: {program}}}", *more]
    world.configure_text("\n".join(lines) + "\n")


def noted(world: World, name: str) -> str:
    return (world.place / name).read_text().strip()


def test_subtasks_that_run_together_have_ports_of_their_own_in_setup_agent_and_check(world: World) -> None:
    program = world.agent(
        f"{NOTE} > {world.place}/agent-$S; : > {world.gates}/$S.up\n"
        # Both are there before either goes on.
        f"until test -e {world.gates}/a.up && test -e {world.gates}/b.up; do sleep 0.02; done\n"
        'echo x > "f-$S"; git add -A; git commit -q -m x'
    )
    script = f"{NOTE} > {world.place}/$0-$COORDINATE_AGENTS_SUBTASK"
    configured(world, program, "ports: {base: 21000, size: 10}", f"setup: [{{run: [sh, -c, '{script}', setup]}}]")
    plan = f"id: plan\nchecks: [{{name: c, run: [sh, -c, '{script}', check]}}]\n"
    done = world.run("graph-run", world.graph(plan + "subtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"))
    assert done.code == 0, str(done)
    told = {subtask: {noted(world, f"{what}-{subtask}") for what in ("setup", "agent", "check")} for subtask in "ab"}
    assert sorted(told.values(), key=sorted) == [{"0 21000"}, {"1 21010"}]


def test_a_subtask_keeps_its_ports_although_another_process_drives_on(world: World) -> None:
    """A driver that counted anew would give the ports of an agent that goes on to the next one that starts."""
    program = world.agent(
        f"{NOTE} > {world.place}/agent-$S; : > {world.gates}/$S.up\n"
        f"while test -e {world.gates}/$S.hold; do sleep 0.02; done\n"
        'echo x > "f-$S"; git add -A; git commit -q -m x'
    )
    script = f"{NOTE} > {world.place}/check-$COORDINATE_AGENTS_SUBTASK"
    configured(world, program, "ports: {base: 21000, size: 10}")
    plan = f"id: plan\nchecks: [{{name: c, run: [sh, -c, '{script}']}}]\n"
    world.hold("a", "b", "c", "d")
    more = ", ".join(f"{{id: {name}, spec: x, dependsOn: a}}" for name in "cd")
    driver = world.start(
        "graph-run", world.graph(f"{plan}subtasks: [{{id: a, spec: x}}, {{id: b, spec: x}}, {more}]\n")
    )
    for name in "ab":
        until(lambda name=name: (world.gates / f"{name}.up").exists() or None, f"{name} is up")
    driver.kill()
    driver.wait()
    world.release("a")
    again = world.start("graph-run", "plan")
    for name in "cd":
        until(lambda name=name: (world.gates / f"{name}.up").exists() or None, f"{name} is up")
    world.release("b", "c", "d")
    assert again.wait(60) == 0, world.said()
    together = [noted(world, f"agent-{name}") for name in "bcd"]
    assert len(set(together)) == 3, together
    assert [noted(world, f"check-{name}") for name in "bcd"] == together
    world.assert_nothing_left("plan")


def test_graphs_side_by_side_share_no_ports_and_the_last_ones_are_refused_clearly(world: World) -> None:
    """Two blocks are there. An agent whose driver was killed goes on, and nobody else gets its ports."""
    program = world.agent(
        f"{NOTE} > {world.place}/agent-$COORDINATE_AGENTS_GRAPH; : > {world.gates}/$COORDINATE_AGENTS_GRAPH.up\n"
        f"while test -e {world.gates}/$COORDINATE_AGENTS_GRAPH.hold; do sleep 0.02; done\n"
        'echo x > "f-$S"; git add -A; git commit -q -m x'
    )
    configured(world, program, "ports: {base: 65516, size: 10}")

    def plan(name: str, at_a_time: int = 1) -> Path:
        text = f"id: {name}\nmaxConcurrency: {at_a_time}\nsubtasks: [{{id: a, spec: x}}]\n"
        return world.graph(text, f"{name}.yaml")

    for verb in ("graph-plan", "graph-create"):
        refused = world.run(verb, plan("wide", 3), "--json")
        assert (refused.code, refused.document["error"]["code"]) == (2, "INVALID_AGENT_CONFIG")
        assert "ports 65516 + 3 × 10 pass 65535" in refused.document["error"]["message"]
    drivers = {}
    for name in ("one", "two"):
        world.hold(name)
        drivers[name] = world.start("graph-run", plan(name))
        until(lambda name=name: (world.gates / f"{name}.up").exists() or None, f"{name} is up")
    drivers["one"].kill()
    drivers["one"].wait()
    assert [noted(world, f"agent-{name}") for name in ("one", "two")] == ["0 65516", "1 65526"]

    none_left = world.run("graph-run", plan("three"), "--json")
    assert none_left.code == 4, str(none_left)
    [item] = none_left.data["attention"]
    assert (item["kind"], item["next"]) == ("ports", "coordinate-agents graph-run three")
    assert "no 10 ports from 65516 to the last one are free; other graphs have them" in item["question"]
    assert none_left.data["subtasks"][0]["attempt"] == 0

    world.release("one")
    assert world.run("graph-run", "one").code == 0
    assert world.run("graph-run", "three").code == 0
    assert noted(world, "agent-three") == "0 65516"
    world.release("two")
    assert drivers["two"].wait(60) == 0
    world.assert_nothing_left("one", "two", "three")


def test_less_disk_than_is_to_be_kept_free_starts_nothing_and_says_so(world: World) -> None:
    program = world.agent('echo x > "f-$S"; git add -A; git commit -q -m x')
    configured(world, program, "minFreeDisk: 100000GiB")
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 4, str(done)
    [item] = done.data["attention"]
    assert (item["kind"], item["next"]) == ("disk", "coordinate-agents doctor")
    assert "DISK_LOW" in item["question"]
    assert (done.data["subtasks"][0]["state"], done.data["subtasks"][0]["attempt"]) == ("READY", 0)
