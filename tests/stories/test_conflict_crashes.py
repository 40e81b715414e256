"""graph-resolve and graph-integrate kill themselves at every named point; the same command then finishes."""

from pathlib import Path

import pytest
from crashes import OF_CONFLICTS, POINTS, Dies, both_ways
from world import World, git

pytestmark = pytest.mark.story

PLAN = "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: [a, b]}]\n"
PAIR = "subtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"
# What each step of a conflict passes, in order. The lists hold every point of a conflict.
OPENING = ("conflict.intended", "scene.laid", "scene.headed", "conflict.opened")
TAKING = ("resolution.kept", "resolution.recorded", "resolution.concluded")
GIVING_UP = ("giving.kept", "giving.recorded", "giving.moved", "conflict.kept")
STOPPING = ("scene.headed", "integration.conflicted")
ABORTING = ("giving.recorded", "integration.kept")
# Stores and pins that lie between these points.
WRITING = ("store.append.inserted:1", "store.append.committed:1")


def configure(world: World) -> None:
    """Agents of a and b write the same file."""
    body = 'case "$S" in a|b) echo "$S" > same;; *) echo x > f;; esac; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body),)})


def test_every_point_of_a_conflict_is_walked() -> None:
    walked = {*OPENING, *TAKING, *GIVING_UP, *STOPPING, *ABORTING}
    assert walked == {point for point in POINTS if point.startswith(OF_CONFLICTS)}


def path_of(world: World, *subtask: str) -> Path:
    return Path(world.run("graph-path", "plan", *subtask).out.strip())


def test_opening_and_giving_up_a_merge_survive_a_death_at_every_point(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        configure(world)
        mine = None
        assert world.run("graph-run", world.graph(PLAN)).code == 5
        for point in (*OPENING, *WRITING):
            if dies(point, "graph-resolve", "plan", "c") and point == "conflict.opened":
                mine = path_of_record(world) / "f-mine"
                mine.write_text("not touched\n")
        assert world.run("graph-resolve", "plan", "c").code == 0
        path = path_of(world, "c")
        if mine is not None:
            assert mine.read_text() == "not touched\n"
            mine.unlink()
        assert git(path, "status", "--porcelain") == "AA same"
        (path / "same").write_text("half way\n")
        for point in GIVING_UP:
            dies(point, "graph-resolve", "plan", "c", "--abort")
        assert world.run("graph-resolve", "plan", "c", "--abort").code == 0
        assert git(path, "status", "--porcelain") == ""
        pins = git(world.root, "for-each-ref", "--format=%(refname)", "refs/coordinate-agents/plan/").split()
        kept = [git(world.root, "show", f"{pin}:same") for pin in pins if "/discard-" in pin]
        assert "half way" in kept

    both_ways(world, story)


@pytest.mark.parametrize("how", ["added", "committed"])
def test_taking_a_merge_survives_a_death_at_every_point(world: World, how: str) -> None:
    def story(world: World, dies: Dies) -> None:
        configure(world)
        assert world.run("graph-run", world.graph(PLAN)).code == 5
        assert world.run("graph-resolve", "plan", "c").code == 0
        path = path_of(world, "c")
        (path / "same").write_text("a and b\n")
        git(path, "add", "same")
        if how == "committed":
            git(path, "commit", "-q", "-m", "by hand")
        for point in (*TAKING, *WRITING):
            dies(point, "graph-resolve", "plan", "c", "--continue")
        assert world.run("graph-resolve", "plan", "c", "--continue").code == 0
        assert git(path, "status", "--porcelain") == ""
        done = world.run("graph-run", "plan", "--integrate", "--json")
        assert done.code == 0, str(done)
        assert world.files("coordinate-agents/plan/integration")["same"] == "a and b"

    both_ways(world, story)


def path_of_record(world: World) -> Path:
    """Where the worktree of the merge is, before any event tells."""
    (path,) = world.worktrees.glob("*/plan/+resolve-c")
    return path


def test_an_integration_conflict_survives_a_death_at_every_point(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        configure(world)
        plan = world.graph(PAIR)
        assert world.run("graph-run", plan).code == 0
        for point in STOPPING:
            dies(point, "graph-integrate", "plan")
        assert world.run("graph-integrate", "plan").code == 5
        (path,) = world.worktrees.glob("*/plan/integration")
        (path / "same").write_text("half way\n")
        assert world.run("graph-integrate", "plan").code == 5
        assert (path / "same").read_text() == "half way\n"
        for point in ABORTING:
            if dies(point, "graph-integrate", "plan", "--abort"):
                refused = world.run("graph-integrate", "plan", "--json")
                assert refused.document["error"]["next"] == "coordinate-agents graph-integrate plan --abort"
        assert world.run("graph-integrate", "plan", "--abort").code == 0
        assert git(path, "status", "--porcelain") == ""
        assert world.run("graph-integrate", "plan").code == 5
        (path / "same").write_text("a and b\n")
        git(path, "add", "same")
        for point in (*TAKING, "integration.merged", "integration.published"):
            dies(point, "graph-integrate", "plan", "--continue")
        assert world.run("graph-integrate", "plan", "--continue").code == 0
        assert world.status("plan")["graph"]["state"] == "INTEGRATED"
        assert world.files("coordinate-agents/plan/integration")["same"] == "a and b"

    both_ways(world, story)
