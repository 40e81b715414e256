"""Stories that several test files and scripts tell: a whole graph file with the one-commit agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from world import RUN_LIMIT_S, World, git


@dataclass(frozen=True, slots=True)
class Shape:
    """What a graph file says, read without the program: its id and each subtask's prerequisites."""

    id: str
    prerequisites: Mapping[str, Sequence[str]]

    def all_before(self) -> dict[str, set[str]]:
        """Subtask → everything that it builds on, directly or not."""
        before: dict[str, set[str]] = {}

        def fill(start: str) -> None:
            stack = [start]
            while stack:
                name = stack[-1]
                open_ones = [p for p in self.prerequisites[name] if p not in before]
                if open_ones:
                    stack += open_ones
                    continue
                before[name] = set(self.prerequisites[name]).union(*(before[p] for p in self.prerequisites[name]))
                stack.pop()

        for name in self.prerequisites:
            fill(name)
        return before


def shape(path: Path) -> Shape:
    document = yaml.safe_load(path.read_text())
    edges = {}
    for subtask in document["subtasks"]:
        needs = subtask.get("dependsOn") or []
        edges[subtask["id"]] = [needs] if isinstance(needs, str) else needs
    return Shape(document.get("id", path.stem), edges)


def assert_runs_whole(world: World, path: Path, *, limit_s: float = RUN_LIMIT_S) -> None:
    """The graph ends integrated; each subtask started from all that it builds on; the checkout is as it was."""
    told = shape(path)
    before = world.user_state()
    done = world.run("graph-run", path, "--integrate", "--json", limit_s=limit_s)
    assert done.code == 0, str(done)
    assert {item["id"]: item["state"] for item in done.data["subtasks"]} == dict.fromkeys(
        told.prerequisites, "SUCCEEDED"
    )
    below = told.all_before()
    for item in done.data["subtasks"]:
        names = set(git(world.root, "ls-tree", "--name-only", item["base"]).splitlines())
        assert {name for name in names if name.startswith("f-")} == {_file(p) for p in below[item["id"]]}, item["id"]
    tip = done.data["integration"]["commit"]
    assert tip == git(world.root, "rev-parse", f"coordinate-agents/{told.id}/integration")
    assert world.files(tip) == {"README.md": "# sample", **{_file(name): name for name in told.prerequisites}}
    assert sorted(line[1] for line in world.log_lines() if line[0] == "start") == sorted(told.prerequisites)
    assert world.user_state() == before
    world.assert_nothing_left(told.id)


def _file(subtask: str) -> str:
    return "f-" + subtask.replace("/", "+")
