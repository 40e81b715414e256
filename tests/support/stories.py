"""Stories that several test files and scripts tell: twelve subtasks that get killed, a whole graph file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from world import RUN_LIMIT_S, World, git

# Three layers of four; every subtask builds on two of the layer before.
_LAYERS = [[f"{layer}{number}" for number in range(4)] for layer in "abc"]
TWELVE_NAMES = [name for layer in _LAYERS for name in layer]
_PREREQUISITES = {
    name: [_LAYERS[depth - 1][n], _LAYERS[depth - 1][(n + 1) % 4]] if depth else []
    for depth, layer in enumerate(_LAYERS)
    for n, name in enumerate(layer)
}
TWELVE = "id: twelve\nsubtasks:\n" + "".join(
    f"  - {{id: {name}, spec: x, dependsOn: {needs}}}\n" for name, needs in _PREREQUISITES.items()
)


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


def assert_twelve_whole(world: World, before: dict[str, str]) -> None:
    """The one right end: all twelve verified and integrated, never two agents at once, nothing left."""
    data = world.status("twelve")
    assert {item["id"]: item["state"] for item in data["subtasks"]} == dict.fromkeys(TWELVE_NAMES, "SUCCEEDED")
    assert world.files("coordinate-agents/twelve/integration") == {
        "README.md": "# sample",
        **{f"f-{name}": name for name in TWELVE_NAMES},
    }
    assert [line for line in world.log_lines() if line[0] == "overlap"] == []
    assert sorted({line[1] for line in world.log_lines() if line[0] == "end"}) == sorted(TWELVE_NAMES)
    assert world.user_state() == before
    world.assert_nothing_left("twelve")


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
