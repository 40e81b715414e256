"""Driver, host or fork server ends with SIGKILL at a named point; the same command then comes to the same end.

One story dies at one point after the other, in the order of a run, and is then finished: each death here comes on top
of those before it. Every pass of every point, alone in its story, is in fixtures/scripts/run_faults.py.
"""

import ast
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from crashes import (
    LOST,
    OF_CONFLICTS,
    PLAIN,
    POINTS,
    STORIES,
    UNDONE,
    WHOLE,
    Dies,
    Story,
    assert_same,
    attempts,
    both_ways,
    told,
)
from world import Done, World

pytestmark = [pytest.mark.story, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
# Story and points, `point:n` for the n-th pass of that run. What a and b pass is passed once more by c, and much of it
# by the integration: a death is mostly at the first pass that is still to come.
CHAINS: dict[str, tuple[Story, str]] = {
    "creation": (
        WHOLE,
        "store.create.built store.create.renamed judge.drafted judge.moved store.graph.inserted store.graph.committed"
        " lease.locked lease.generation lease.recorded store.append.begun:3 base.snapshot base.made",
    ),
    "worktrees": (
        WHOLE,
        "tree.reserving:2 tree.folder tree.reserved tree.branch tree.registered tree.laid tree.ready worktree.created"
        " store.append.cached:8 start.folder start.claimed start.recorded start.forked start.specified setup.done",
    ),
    "turns": (
        WHOLE,
        "session.intended store.append.inserted:9 turn.seen commit.written leftovers.written leftovers.moved"
        " verify.facts commit.file folder.drafted:3 session.started verify.committed check.ended",
    ),
    "verification": (
        WHOLE,
        "leftovers.indexed pristine.registered pristine.ready pristine.removed pristine.unregistered pin.secured"
        " pin.made verify.pinned blob.drafted verify.certified store.append.finished:9",
    ),
    "integration": (
        WHOLE,
        "fold.made store.append.committed:7 copy.packed copy.half integration.merged tree.reserved tree.laid"
        " integration.published",
    ),
    "another integration": (UNDONE, "reuse.kept reuse.recorded reuse.renewed reuse.branch reuse.head"),
    # Nothing ran: no death costs an attempt.
    "starts of agents": (
        PLAIN,
        "session.intended start.folder start.claimed folder.drafted:1 folder.drafted:2 start.recorded start.forked"
        " start.specified",
    ),
    "hosts that begin": (
        PLAIN,
        "host.begun host.recorded host.served host.spawned host.child host.ready",
    ),
    "hosts that end": (PLAIN, "host.over host.drained host.final host.hidden"),
    # The hosts of setup commands and checks, too.
    "hosts of commands": (WHOLE, "host.begun host.ready host.over"),
    "fork servers": (PLAIN, "server.begun server.asked:2 server.forked:2"),
    "losses": (LOST, "lost.locked lost.ended lost.recorded"),
}
# Points of graph-stop: who dies there.
OF_STOP = {"request.submitted": "author", "request.answered": "driver", "stop.closed": "author without a driver"}
# Points that no such run passes, by their beginnings, and the tests that name each of them.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "crash/test_verbs.py": ("hold.", "release."),
    "stories/test_amending.py": ("store.document.",),
    "stories/test_cleanup_crash.py": ("removal.", "remove.", "branch.", "undo.", "forget."),
    "stories/test_conflict_crashes.py": OF_CONFLICTS,
    "stories/test_delivering.py": ("deliver.",),
    "stories/test_reviewing.py": ("review.", "worktree.cleared"),
    "stories/test_staying.py": ("stay.",),
}

_undisturbed: dict[str, tuple[dict[str, Any], dict[str, int]]] = {}


class Chain:
    """A story that dies again and again below `place`, in a new world whenever it came to its end."""

    def __init__(self, story: Story, place: Path, home: Path, *, costs_attempts: bool) -> None:
        self._story, self._place, self._home = story, place, home
        self._costs_attempts = costs_attempts
        if story.name not in _undisturbed:
            world = self._begin()
            done = story.finish(world)
            assert done.code == 0, str(done)
            _undisturbed[story.name] = told(world), attempts(world)
        self._world = self._begin()

    def dies_at(self, point: str) -> None:
        """In the run that is due; where that one was past the point, in the first of a new world."""
        if self._driver_dies(point):
            return
        assert self._deaths > 0, f"{point} was not passed"
        self.is_whole()
        self._world = self._begin()
        assert self._driver_dies(point), f"{point} was not passed"

    def loses_at(self, point: str) -> None:
        """A host or fork server dies: the driver tells what it could not do, or does without."""
        done = self._run_dying(point)
        assert done.code in (0, 4), f"{point}: {done}"
        assert self._died, f"{point} was not passed: {done}"
        if done.code == 0:
            self.is_whole()
            self._world = self._begin()

    def is_whole(self) -> None:
        """The same command comes to what an undisturbed run comes to."""
        if self._deaths == 0:
            return
        again = self._story.finish(self._world)
        assert again.code == 0, str(again)
        whole, tries = _undisturbed[self._story.name]
        assert_same(told(self._world), whole)
        if not self._costs_attempts:
            assert attempts(self._world) == tries
            ends = Counter(line[1] for line in self._world.log_lines() if line[0] == "end")
            assert ends == Counter(whole["agents"])
        assert self._world.user_state() == self._before
        self._world.assert_nothing_left("plan")

    def _begin(self) -> World:
        place = self._place / f"world{len(list(self._place.iterdir()))}"
        place.mkdir()
        world = World(place, self._home)
        self._story.prepare(world)
        self._before, self._deaths, self._died = world.user_state(), 0, False
        return world

    def _driver_dies(self, point: str) -> bool:
        done = self._run_dying(point)
        assert done.code == (-signal.SIGKILL if self._died else 0), f"{point}: {done}"
        return self._died

    def _run_dying(self, point: str) -> Done:
        before = self._world.deaths(point)
        done = self._story.run_dying(self._world, point)
        self._died = self._world.deaths(point) > before
        self._deaths += 1
        assert self._world.run("graph-list", "--json").code == 0
        return done


@pytest.mark.parametrize("name", CHAINS)
def test_deaths_at_named_points_are_made_good_by_the_same_command(name: str, tmp_path: Path, isolation: Path) -> None:
    """RC-01."""
    story, points = CHAINS[name]
    is_drivers = not points.startswith(("host.", "server."))
    # A host takes its agent along, and so the attempt.
    chain = Chain(story, tmp_path, isolation, costs_attempts=not is_drivers or story is LOST)
    for point in points.split():
        (chain.dies_at if is_drivers else chain.loses_at)(point)
    chain.is_whole()


@pytest.mark.parametrize(("point", "dying"), OF_STOP.items())
def test_a_stop_that_died_at_a_named_point_is_made_good_by_another_one(world: World, point: str, dying: str) -> None:
    def story(world: World, dies: Dies) -> None:
        world.hold("a")
        is_disturbed = world is disturbed
        with world.dying_at(point if is_disturbed and dying == "driver" else ""):
            driver = world.start("graph-run", world.graph(PLAIN.plan), "--integrate")
        agent = psutil.Process(world.wait_for_start("a"))
        if is_disturbed and dying == "author without a driver":
            driver.kill()
            driver.wait(30)
        if is_disturbed and dying == "driver":
            assert world.run("graph-stop", "plan", "a").code == 0
            assert (driver.wait(30), world.deaths(point)) == (-signal.SIGKILL, 1)
        else:
            dies(point, "graph-stop", "plan", "a")
        again = world.run("graph-stop", "plan")
        assert again.code == 0, str(again)
        driver.wait(30)
        assert not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE
        assert [item["state"] for item in world.status("plan")["subtasks"]] == ["STOPPED", "BLOCKED"]
        world.release("a")
        last = world.run("graph-run", "plan", "--integrate", "--retry-failed")
        assert last.code == 0, str(last)
        assert [line[0] for line in world.log_lines() if line[1] == "a"] == ["start", "start", "end"]

    disturbed = world
    both_ways(world, story, name="stop")


def test_every_point_in_the_source_is_in_its_packages_list_and_the_other_way_round() -> None:
    assert sorted(set(_points_in_source())) == sorted(POINTS)
    assert len(set(POINTS)) == len(POINTS)


def test_every_point_has_a_case() -> None:
    """Each case looks for the mark of who died there: a point that is not passed is found by its case."""
    cased = {point.partition(":")[0] for _, points in CHAINS.values() for point in points.split()} | set(OF_STOP)
    for name, beginnings in ELSEWHERE.items():
        told = {point.partition(":")[0] for point in _texts_in(ROOT / "tests" / name)}
        cased |= {point for point in told & set(POINTS) if point.startswith(beginnings)}
    assert sorted(set(POINTS) - cased) == []
    assert {story.name for story, _ in CHAINS.values()} == set(STORIES)


def _texts_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _points_in_source() -> Iterator[str]:
    for package in ("graph", "worktrees", "sessions"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "crash_point":
                    assert isinstance(node.args[0], ast.Constant), f"{path}: the name of a point is written out"
                    yield node.args[0].value
