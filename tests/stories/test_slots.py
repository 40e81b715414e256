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


def test_less_disk_than_is_to_be_kept_free_starts_nothing_and_says_so(world: World) -> None:
    program = world.agent('echo x > "f-$S"; git add -A; git commit -q -m x')
    configured(world, program, "minFreeDisk: 100000GiB")
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 4, str(done)
    [item] = done.data["attention"]
    assert (item["kind"], item["next"]) == ("disk", "coordinate-agents doctor")
    assert "DISK_LOW" in item["question"]
    assert (done.data["subtasks"][0]["state"], done.data["subtasks"][0]["attempt"]) == ("READY", 0)
