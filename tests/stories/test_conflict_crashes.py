"""graph-resolve and graph-integrate kill themselves at every named point; the same command then finishes."""

from pathlib import Path

import pytest
from crashes import OF_CONFLICTS, POINTS
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


@pytest.fixture
def both(world: World) -> World:
    body = 'case "$S" in a|b) echo "$S" > same;; *) echo x > f;; esac; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body),)})
    return world


def dies(world: World, point: str, *command: str) -> None:
    """The command dies at the point, everything can be looked at meanwhile, and the same command comes to its end."""
    world.run_dying(point, *command)
    assert world.run("graph-status", "plan").code == 0


def test_every_point_of_a_conflict_is_walked() -> None:
    walked = {*OPENING, *TAKING, *GIVING_UP, *STOPPING, *ABORTING}
    assert walked == {point for point in POINTS if point.startswith(OF_CONFLICTS)}


def path_of(world: World, *subtask: str) -> Path:
    return Path(world.run("graph-path", "plan", *subtask).out.strip())


def test_opening_and_giving_up_a_merge_survive_a_death_at_every_point(both: World) -> None:
    assert both.run("graph-run", both.graph(PLAN)).code == 5
    for point in (*OPENING, *WRITING):
        dies(both, point, "graph-resolve", "plan", "c")
        if point == "conflict.opened":
            (path_of_record(both) / "f-mine").write_text("not touched\n")
    assert both.run("graph-resolve", "plan", "c").code == 0
    path = path_of(both, "c")
    assert (path / "f-mine").read_text() == "not touched\n"
    (path / "f-mine").unlink()
    assert git(path, "status", "--porcelain") == "AA same"
    (path / "same").write_text("half way\n")
    for point in GIVING_UP:
        dies(both, point, "graph-resolve", "plan", "c", "--abort")
    assert both.run("graph-resolve", "plan", "c", "--abort").code == 0
    assert git(path, "status", "--porcelain") == ""
    pins = git(both.root, "for-each-ref", "--format=%(refname)", "refs/coordinate-agents/plan/").split()
    kept = [git(both.root, "show", f"{pin}:same") for pin in pins if "/discard-" in pin]
    assert "half way" in kept
    both.assert_nothing_left("plan")


@pytest.mark.parametrize("how", ["added", "committed"])
def test_taking_a_merge_survives_a_death_at_every_point(both: World, how: str) -> None:
    assert both.run("graph-run", both.graph(PLAN)).code == 5
    assert both.run("graph-resolve", "plan", "c").code == 0
    path = path_of(both, "c")
    (path / "same").write_text("a and b\n")
    git(path, "add", "same")
    if how == "committed":
        git(path, "commit", "-q", "-m", "by hand")
    for point in (*TAKING, *WRITING):
        dies(both, point, "graph-resolve", "plan", "c", "--continue")
    assert both.run("graph-resolve", "plan", "c", "--continue").code == 0
    assert git(path, "status", "--porcelain") == ""
    done = both.run("graph-run", "plan", "--integrate", "--json")
    assert done.code == 0, str(done)
    assert both.files("coordinate-agents/plan/integration")["same"] == "a and b"
    both.assert_nothing_left("plan")


def path_of_record(world: World) -> Path:
    """Where the worktree of the merge is, before any event tells."""
    (path,) = world.worktrees.glob("*/plan/+resolve-c")
    return path


def test_an_integration_conflict_survives_a_death_at_every_point(both: World) -> None:
    plan = both.graph(PAIR)
    assert both.run("graph-run", plan).code == 0
    for point in STOPPING:
        dies(both, point, "graph-integrate", "plan")
    (path,) = both.worktrees.glob("*/plan/integration")
    (path / "same").write_text("half way\n")
    assert both.run("graph-integrate", "plan").code == 5
    assert (path / "same").read_text() == "half way\n"
    for point in ABORTING:
        dies(both, point, "graph-integrate", "plan", "--abort")
        refused = both.run("graph-integrate", "plan", "--json")
        assert refused.document["error"]["next"] == "coordinate-agents graph-integrate plan --abort"
    assert both.run("graph-integrate", "plan", "--abort").code == 0
    assert git(path, "status", "--porcelain") == ""
    assert both.run("graph-integrate", "plan").code == 5
    (path / "same").write_text("a and b\n")
    git(path, "add", "same")
    for point in (*TAKING, "integration.merged", "integration.published"):
        dies(both, point, "graph-integrate", "plan", "--continue")
    assert both.run("graph-integrate", "plan", "--continue").code == 0
    assert both.status("plan")["graph"]["state"] == "INTEGRATED"
    assert both.files("coordinate-agents/plan/integration")["same"] == "a and b"
    both.assert_nothing_left("plan")
