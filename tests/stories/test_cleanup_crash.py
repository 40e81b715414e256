"""graph-cleanup and graph-undo end themselves with SIGKILL at every named point; the same words finish the work."""

import os
from pathlib import Path
from typing import Any

import pytest
from crashes import POINTS, Dies, both_ways
from world import World, git

pytestmark = pytest.mark.story

# In the order of one removal: each command dies a step later than the one before, and the last one ends the work.
CLEANUP_POINTS = ("removal.intended", "remove.kept", "remove.aside", "remove.decided", "remove.deleted")
CLEANUP_POINTS += ("remove.dropped", "removal.removed", "branch.deleted")
DISCARD_POINTS = ("removal.set-aside", "removal.intended", "remove.aside", "remove.decided")
FORGET_POINTS = ("forget.recorded", "forget.session")
_PREFIXES = ("removal.", "remove.", "branch.", "undo.", "forget.")
UNDO_POINTS = ("undo.intended", "undo.created", "undo.filled", "undo.made")


def run(world: World, subtask: str) -> Path:
    """It failed with a commit, and with changes when its id says so. Its worktree."""
    body = 'echo "$S" > "f-$S"; git add .; git commit -qm "$S"; test "$S" = clean || echo more > more; exit 1'
    world.configure({"one": (world.agent(body),)})
    assert world.run("graph-run", world.graph(f"subtasks: [{{id: {subtask}, spec: x}}]\n")).code == 4
    return Path(subtask_of(world)["worktree"])


def subtask_of(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.status("plan")["subtasks"][0]
    return found


def test_a_cleanup_that_died_at_named_points_is_finished_by_the_same_command(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        worktree = run(world, "clean")
        before, tip = world.user_state(), git(world.root, "rev-parse", "coordinate-agents/plan/clean")
        words = ("graph-cleanup", "plan", "--branches", "--json")
        for point in CLEANUP_POINTS:
            dies(point, *words)

        again = world.run(*words)

        assert again.code == 0, str(again)
        assert again.data["items"][0]["outcome"] in ("removed", "absent")
        assert not list(world.worktrees.glob("*"))
        assert not list((world.root / ".git/worktrees").glob("*"))
        assert git(world.root, "for-each-ref", "refs/heads/coordinate-agents") == ""
        assert world.user_state() == before
        back = world.run("graph-undo", "plan", "--json")
        assert back.data["items"][0]["outcome"] == "restored"
        assert git(worktree, "rev-parse", "HEAD") == tip

    both_ways(world, story)


def test_a_discard_that_died_is_finished_and_undone_byte_by_byte(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        worktree = run(world, "spoilt")
        token = world.run("graph-cleanup", "plan", "--discard", "spoilt", "--json").data["items"][0]["token"]
        words = ("graph-cleanup", "plan", "--discard", "spoilt", "--confirm", token, "--json")
        for point in DISCARD_POINTS:
            dies(point, *words)

        again = world.run(*words)

        assert again.code == 0, str(again)
        assert not os.path.lexists(worktree)
        pins = git(world.root, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/plan/spoilt/discard-*")
        assert pins.split() == [subtask_of(world)["discard"]]
        assert world.run("graph-undo", "plan").code == 0
        assert (worktree / "more").read_text() == "more\n"
        assert git(worktree, "status", "--porcelain") == "?? more"

    both_ways(world, story)


@pytest.mark.parametrize("point", ["remove.aside", "remove.decided", "removal.removed"])
def test_a_subtask_whose_removal_died_is_run_again_without_a_second_cleanup(world: World, point: str) -> None:
    worktree = run(world, "clean")
    world.run_dying(point, "graph-cleanup", "plan")
    world.configure({"one": (world.agent('test -f "f-$S"; echo b > b; git add b; git commit -qm b'),)})

    again = world.run("graph-run", "plan", "--retry-failed", "--json")

    assert again.code == 0, str(again)
    assert subtask_of(world)["worktree"] == str(worktree)
    assert sorted(path.name for path in worktree.parent.iterdir()) == ["clean"]
    world.assert_nothing_left("plan")


def test_an_undo_that_died_at_named_points_is_finished_by_the_same_command(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        worktree = run(world, "spoilt")
        token = world.run("graph-cleanup", "plan", "--discard", "spoilt", "--json").data["items"][0]["token"]
        assert world.run("graph-cleanup", "plan", "--discard", "spoilt", "--confirm", token).code == 0
        for point in UNDO_POINTS:
            dies(point, "graph-undo", "plan")

        again = world.run("graph-undo", "plan", "--json")

        assert (again.code, again.data["items"][0]["outcome"]) == (0, "restored"), str(again)
        assert (worktree / "more").read_text() == "more\n"
        assert git(worktree, "status", "--porcelain") == "?? more"
        assert subtask_of(world)["worktree"] == str(worktree)

    both_ways(world, story)


def test_cleanup_after_an_undo_that_died_leaves_no_folder_that_no_record_knows(world: World) -> None:
    """Before, it answered that the subtask has no worktree, while the half-made one stood there for ever."""
    worktree = run(world, "clean")
    assert world.run("graph-cleanup", "plan").code == 0
    for point in ("undo.intended", "undo.created"):
        world.run_dying(point, "graph-undo", "plan")
        assert "graph-undo was cut short" in world.run("graph-cleanup", "plan", "--dry-run").out
        refused = world.run("graph-forget", "plan")
        assert (refused.code, refused.err.splitlines()[-1]) == (1, "Next: coordinate-agents graph-cleanup plan --all")

        again = world.run("graph-cleanup", "plan", "--json")

        assert (again.code, again.data["items"][0]["outcome"]) == (0, "removed"), str(again)
        assert not os.path.lexists(worktree)
    world.assert_nothing_left("plan")
    assert world.run("graph-forget", "plan").code == 0


def test_a_forgetting_that_died_at_named_points_is_finished_by_the_same_command(world: World) -> None:
    run(world, "clean")
    assert world.run("graph-cleanup", "plan").code == 0
    for point in FORGET_POINTS:
        world.run_dying(point, "graph-forget", "plan")
    assert world.run("graph-forget", "plan").code == 0
    assert not list((world.root / ".git/coordinate-agents/sessions").glob("plan.*"))
    world.assert_nothing_left("plan")


def test_every_point_of_a_removal_is_in_a_case_here() -> None:
    told = {*CLEANUP_POINTS, *DISCARD_POINTS, *UNDO_POINTS, *FORGET_POINTS}
    assert {point for point in POINTS if point.startswith(_PREFIXES)} == told
