"""A read verb with --json loads only what it needs: looked at in the real process."""

import subprocess

import pytest
from world import PROGRAM, World

HEAVY = {
    "anyio", "asyncio", "click", "git", "networkx", "psutil", "pydantic", "rich", "subprocess", "tempfile", "uuid",
    "yaml",
}  # fmt: skip


def _loaded(world: World, *words: str) -> set[str]:
    """Top-level names of all modules that the process imported, as the interpreter reports them."""
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=world.root,
        env=world.environment | {"PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}


@pytest.mark.parametrize("words", [("status",), ("list",), ("graph-status", "plan")])
def test_a_read_verb_with_json_loads_nothing_heavy(world: World, words: tuple[str, ...]) -> None:
    world.run("create", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    loaded = _loaded(world, *words, "--json")
    assert "sqlite3" in loaded
    assert loaded & HEAVY == set()


def test_a_read_verb_in_text_loads_click_and_nothing_else_heavy(world: World) -> None:
    world.run("create", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    assert _loaded(world, "status") & (HEAVY - {"subprocess", "tempfile", "uuid"}) == {"click"}


def test_no_package_of_ours_is_importable_under_a_common_name(world: World) -> None:
    loaded = _loaded(world, "list", "--json")
    assert "coordinate_agents" in loaded
    assert loaded & {"cli", "graph", "sessions", "worktrees"} == set()
