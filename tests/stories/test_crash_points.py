"""graph-run ends itself with SIGKILL at every named point it passes; the same command then comes to the same end."""

import re
import signal
from pathlib import Path

import pytest
from world import World, git

from coordinate_agents.graph.crashpoints import CRASH_VARIABLE, POINTS

pytestmark = pytest.mark.story

# A diamond: two of its bases are single commits, one is a merge that the Runtime makes.
PLAN = """
id: plan
checks: [{name: own-file, run: [sh, -c, 'test -f "f-$COORDINATE_AGENTS_SUBTASK" || test -f f-d']}]
subtasks:
  - {id: a, spec: x}
  - {id: b, dependsOn: a, spec: x}
  - {id: c, dependsOn: a, spec: x}
  - {id: d, dependsOn: [b, c], spec: x}
"""
NAMES = ("a", "b", "c", "d")
SETUP = 'setup: [{run: [sh, -c, "test -f README.md"]}]\n'
RUN_POINTS = [point for point in POINTS if not point.startswith("request.")]
# Points that a run passes once, whatever the graph.
ONCE = {"store.create.built", "store.create.renamed", "store.graph.inserted", "store.graph.committed"}
ONCE |= {"lease.locked", "lease.generation", "lease.recorded", "integration.merged", "integration.published"}
# The passes at which to die: of the per-subtask points the first and the last, of the store's some in the middle.
CASES = [
    f"{point}:{count}"
    for point in RUN_POINTS
    for count in ((1,) if point in ONCE else (1, 9, 23, 37) if point.startswith("store.append.") else (1, 4))
]


def _end(world: World) -> dict[str, object]:
    """What two ways to the same end must have in common; commit times and so hashes differ."""
    data = world.status("plan")
    return {
        "graph": data["graph"]["state"],
        "subtasks": {item["id"]: (item["state"], item["attempt"]) for item in data["subtasks"]},
        "tree": git(world.root, "rev-parse", "coordinate-agents/plan/integration^{tree}"),
        "below d": sorted(git(world.root, "ls-tree", "--name-only", data["subtasks"][3]["base"]).splitlines()),
        "pins": sorted(
            re.sub(r"-\d+$", "", name)
            for name in git(world.root, "for-each-ref", "--format=%(refname)", "refs/coordinate-agents/").splitlines()
            if "/kept-" not in name
        ),
        "branches": git(world.root, "for-each-ref", "--format=%(refname)", "refs/heads/").splitlines(),
    }


def _prepare(world: World) -> Path:
    config = world.home / ".config" / "coordinate-agents" / "config.yaml"
    config.write_text(config.read_text() + SETUP)
    return world.graph(PLAN)


@pytest.mark.parametrize("point", CASES)
def test_a_run_that_died_at_a_named_point_is_finished_by_the_same_command(world: World, point: str) -> None:
    plan, before = _prepare(world), world.user_state()
    world.environment[CRASH_VARIABLE] = point
    died = world.run("graph-run", plan, "--integrate")
    assert died.code == -signal.SIGKILL, f"{point} was not passed: {died}"
    del world.environment[CRASH_VARIABLE]
    assert world.run("graph-list", "--json").code == 0
    again = world.run("graph-run", plan, "--integrate")
    assert again.code == 0, str(again)
    end = _end(world)
    assert end["graph"] == "INTEGRATED"
    assert end["subtasks"] == dict.fromkeys(NAMES, ("SUCCEEDED", 1))
    assert end["below d"] == ["README.md", "f-a", "f-b", "f-c"]
    assert end["branches"] == [
        *(f"refs/heads/coordinate-agents/plan/{name}" for name in (*NAMES, "integration")),
        *("refs/heads/feature", "refs/heads/main", "refs/heads/topic"),
    ]
    assert world.files("coordinate-agents/plan/integration") == {
        "README.md": "# sample",
        **{f"f-{name}": name for name in NAMES},
    }
    assert [line[0:2] for line in world.log_lines() if line[0] == "overlap"] == []
    assert sorted(line[1] for line in world.log_lines() if line[0] == "end") == sorted(NAMES)
    assert world.run("graph-verify", "plan").code == 0
    assert world.user_state() == before
    world.assert_nothing_left("plan")
