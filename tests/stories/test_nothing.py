"""A graph of which no subtask was to change anything has nothing to integrate, and says so."""

import pytest
from world import World

pytestmark = pytest.mark.story


def test_a_graph_without_changes_does_not_send_people_to_integrate(world: World) -> None:
    world.configure({"one": ("true",)})
    plan = world.graph("subtasks: [{id: look, spec: x, writes: []}]\n")
    done = world.run("graph-run", plan, "--integrate")
    assert done.code == 0, str(done)
    assert done.out.splitlines()[-1] == "Nothing to integrate: no subtask changed anything."
    assert "graph-integrate" not in world.run("graph-integrate", "plan").out
