"""git fails, is killed or hangs at its n-th call: a clear error, nothing lost, and the same work is finished later.

A sample; fixtures/scripts/run_faults.py goes through every call.
"""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from crashes import MERGED, PLAIN, Story, assert_same, told
from git_faults import Fault, FaultyGit, hurried_command
from world import RUN_LIMIT_S, Done, World

pytestmark = pytest.mark.story

CASES: list[tuple[Fault, int]] = [("fails", number) for number in (1, 2, 3, 5, 6, 8, 11, 14, 17)]
CASES += [("killed", number) for number in (7, 9, 15)] + [("hangs", 9)]

_undisturbed: dict[str, dict[str, Any]] = {}


@pytest.fixture
def expected(tmp_path: Path, isolation: Path) -> dict[str, Any]:
    if MERGED.name not in _undisturbed:
        place = tmp_path / "undisturbed"
        place.mkdir()
        world = World(place, isolation)
        MERGED.prepare(world)
        done = MERGED.finish(world)
        assert done.code == 0, str(done)
        _undisturbed[MERGED.name] = told(world)
    return _undisturbed[MERGED.name]


@pytest.mark.parametrize(("fault", "number"), CASES)
def test_a_faulty_git_is_told_and_later_the_work_is_finished(
    expected: dict[str, Any], fault: Fault, number: int, tmp_path: Path, isolation: Path
) -> None:
    place = tmp_path / "disturbed"
    place.mkdir()
    world = World(place, isolation)
    MERGED.prepare(world)
    before = world.user_state()
    git = FaultyGit(world, fault, number)
    first = _run_hurried(world, MERGED) if fault == "hangs" else MERGED.run(world)
    git.mend()
    assert git.fired is not None, str(first)
    assert "A bug of ours" not in first.err and "Traceback" not in first.err, f"{git.fired}: {first}"
    if first.code != 0:
        assert re.search(r"simulated failure|killed by signal 9|gave no answer|did not end within", first.err), first
    again = MERGED.run(world)
    if again.code != 0:
        again = world.run("graph-run", "plan", "--integrate", "--retry-failed")
    assert again.code == 0, f"{git.fired}: {again}"
    assert_same(told(world), expected)
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_an_old_git_is_refused_by_name_and_number(world: World) -> None:
    old = world.place / "old"
    old.mkdir()
    (old / "git").write_text("#!/bin/sh\necho git version 2.37.9\n")
    (old / "git").chmod(0o755)
    world.environment["PATH"] = f"{old}:{world.environment['PATH']}"
    refused = world.run("graph-run", world.graph(PLAIN.plan))
    assert refused.code == 1, str(refused)
    assert refused.err.splitlines() == [
        f"REPOSITORY_UNSUPPORTED: git 2.37.9 at {old}/git is too old: 2.38 or newer is needed.",
        "Kept: nothing was changed",
        "Next: install a newer git and put it first on PATH",
    ]


def _run_hurried(world: World, story: Story) -> Done:
    argv = hurried_command("graph-run", world.graph(story.plan), "--integrate")
    done = subprocess.run(
        argv,
        cwd=world.root,
        env=world.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
    )
    return Done(("graph-run",), done.returncode, done.stdout, done.stderr)
