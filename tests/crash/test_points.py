"""Driver, host or fork server ends with SIGKILL at a named point; the same command then comes to the same end.

Each point of the three packages is in one case here; every pass of every point is in fixtures/scripts/run_crash_points.
"""

import ast
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from crashes import CRASH_VARIABLE, LOST, OF_CONFLICTS, PLAIN, POINTS, STORIES, UNDONE, WHOLE, Story, attempts, told
from world import World

pytestmark = pytest.mark.story

ROOT = Path(__file__).resolve().parents[2]
# Which pass dies, where it is not the second: what happens once in a run, and appends in the middle of one.
PASSES = {
    **dict.fromkeys(
        (
            "store.create.built",
            "store.create.renamed",
            "store.graph.inserted",
            "store.graph.committed",
            "lease.locked",
            "lease.generation",
            "lease.recorded",
            "integration.merged",
            "integration.published",
            "judge.drafted",
            "judge.moved",
            "leftovers.written",
            "leftovers.moved",
            "leftovers.indexed",
            "copy.packed",
            "copy.half",
            "commit.file",
            "fold.made",
            "pristine.registered",
            "pristine.ready",
            "pristine.removed",
            "pristine.unregistered",
            "server.begun",
        ),
        1,
    ),
    "store.append.begun": 9,
    "store.append.cached": 17,
    "store.append.inserted": 23,
    "store.append.finished": 31,
    "store.append.committed": 37,
    "commit.written": 1,
}
# Points of graph-stop: who dies there.
OF_STOP = {"request.submitted": "author", "request.answered": "driver", "stop.closed": "author without a driver"}
# Points that only agents who stay, reviews and removals pass: tests/stories/test_staying.py, test_reviewing.py,
# test_cleanup_crash.py, test_amending.py.
_ELSEWHERE = ("stay.", "review.", "worktree.cleared", "removal.", "remove.", "branch.", "undo.", "forget.")
_ELSEWHERE += ("hold.", "release.", "store.document.", "deliver.")
_ELSEWHERE += OF_CONFLICTS
TOLD_ELSEWHERE = {point for point in POINTS if point.startswith(_ELSEWHERE)}


def _story(point: str) -> Story:
    match point.partition(".")[0]:
        case "host":
            return PLAIN
        case "lost":
            return LOST
        case "reuse":
            return UNDONE
        case _:
            return WHOLE


def _case(point: str) -> tuple[Story, str]:
    story = _story(point)
    count = PASSES.get(point, 2) if story is WHOLE else 1
    return story, f"{point}:{count}"


CASES = [_case(point) for point in POINTS if point not in {*OF_STOP, *TOLD_ELSEWHERE}]
# The hosts of setup commands and checks, too.
CASES += [(WHOLE, f"{point}:1") for point in ("host.begun", "host.ready", "host.over")]

_undisturbed: dict[str, tuple[dict[str, Any], dict[str, int]]] = {}


@pytest.fixture
def expected(request: pytest.FixtureRequest, tmp_path: Path, isolation: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """What the story of this case comes to when nothing dies; told once in a test process."""
    story: Story = request.getfixturevalue("story")
    if story.name not in _undisturbed:
        place = tmp_path / "undisturbed"
        place.mkdir()
        world = World(place, isolation)
        story.prepare(world)
        done = story.finish(world)
        assert done.code == 0, str(done)
        _undisturbed[story.name] = told(world), attempts(world)
    return _undisturbed[story.name]


@pytest.mark.parametrize(("story", "point"), CASES, ids=[f"{story.name}-{point}" for story, point in CASES])
def test_a_death_at_a_named_point_is_made_good_by_the_same_command(
    expected: tuple[dict[str, Any], dict[str, int]], story: Story, point: str, tmp_path: Path, isolation: Path
) -> None:
    """RC-01."""
    place = tmp_path / "disturbed"
    place.mkdir()
    world = World(place, isolation)
    story.prepare(world)
    before = world.user_state()
    died = story.run_dying(world, point)
    # A host's or a fork server's death is not the driver's: it tells what it could not do, or does without.
    is_drivers = not point.startswith(("host.", "server."))
    assert died.code == -signal.SIGKILL if is_drivers else died.code in (0, 4), f"{point} was not passed: {died}"
    assert world.run("graph-list", "--json").code == 0
    again = story.finish(world)
    assert again.code == 0, str(again)
    whole, tries = expected
    assert told(world) == whole
    if is_drivers and story is not LOST:
        assert attempts(world) == tries
        assert Counter(line[1] for line in world.log_lines() if line[0] == "end") == Counter(whole["agents"])
    assert world.user_state() == before
    world.assert_nothing_left("plan")


@pytest.mark.parametrize(("point", "dying"), OF_STOP.items())
def test_a_stop_that_died_at_a_named_point_is_made_good_by_another_one(world: World, point: str, dying: str) -> None:
    before = world.user_state()
    world.hold("a")
    environment = dict(world.environment)
    if dying == "driver":
        world.environment[CRASH_VARIABLE] = point
    driver = world.start("graph-run", world.graph(PLAIN.plan), "--integrate")
    agent = psutil.Process(world.wait_for_start("a"))
    if dying == "author without a driver":
        driver.kill()
        driver.wait(30)
    world.environment = environment if dying == "driver" else {**environment, CRASH_VARIABLE: point}
    first = world.run("graph-stop", "plan", "a")
    world.environment = environment
    assert first.code == (0 if dying == "driver" else -signal.SIGKILL), str(first)
    if dying == "driver":
        assert driver.wait(30) == -signal.SIGKILL
    again = world.run("graph-stop", "plan")
    assert again.code == 0, str(again)
    driver.wait(30)
    assert not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE
    assert [item["state"] for item in world.status("plan")["subtasks"]] == ["STOPPED", "BLOCKED"]
    world.release("a")
    last = world.run("graph-run", "plan", "--integrate", "--retry-failed")
    assert last.code == 0, str(last)
    assert [line[0] for line in world.log_lines() if line[1] == "a"] == ["start", "start", "end"]
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_every_point_in_the_source_is_in_its_packages_list_and_the_other_way_round() -> None:
    assert sorted(set(_points_in_source())) == sorted(POINTS)
    assert len(set(POINTS)) == len(POINTS)


def test_every_point_has_a_case() -> None:
    cased = {point.partition(":")[0] for _, point in CASES}
    assert cased | set(OF_STOP) | TOLD_ELSEWHERE == set(POINTS)
    assert {story.name for story, _ in CASES} == set(STORIES)


def _points_in_source() -> Iterator[str]:
    for package in ("graph", "worktrees", "sessions"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "crash_point":
                    assert isinstance(node.args[0], ast.Constant), f"{path}: the name of a point is written out"
                    yield node.args[0].value
