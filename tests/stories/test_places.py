"""Repositories in awkward places and states, and an environment that points git elsewhere."""

import subprocess
from pathlib import Path

import pytest
from world import World, commit_file, git, make_repo

pytestmark = pytest.mark.story

PLAN = (
    "subtasks:\n  - {id: a, spec: x}\n  - {id: b, spec: x}\n"
    "  - {id: c, dependsOn: [a, b], spec: x, checks: [[test, -s, f-a], [test, -s, f-b]]}\n"
)


def _assert_runs(world: World) -> None:
    before = world.user_state()
    done = world.run("graph-run", world.graph(PLAN), "--integrate", "--json")
    assert done.code == 0, str(done)
    assert {"f-a", "f-b", "f-c"} <= set(world.files("coordinate-agents/plan/integration"))
    assert world.user_state() == before
    assert world.processes() == []


@pytest.mark.parametrize("name", ["with space", "größe-日本", "new\nline", "-dash", "quo'te\"s", "a$(b)`c`;d"])
def test_a_checkout_whose_path_is_awkward(world: World, name: str) -> None:
    world.root = world.root.rename(world.place / name)
    _assert_runs(world)


def test_a_checkout_reached_through_a_link(world: World) -> None:
    link = world.place / "link"
    link.symlink_to(world.root)
    world.root = link
    _assert_runs(world)


def test_a_run_from_a_folder_below_the_root(world: World) -> None:
    commit_file(world.root, "below/file.txt", "x\n")
    done = subprocess.run(
        [*world.command("graph-run", world.graph(PLAN), "--integrate")],
        cwd=world.root / "below",
        env=world.environment,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert (world.root / ".git" / "coordinate-agents").is_dir()


def test_a_linked_worktree_of_the_user_as_root(world: World) -> None:
    linked = world.place / "linked"
    git(world.root, "worktree", "add", "-q", "-b", "other", str(linked))
    commit_file(linked, "other.txt", "only here\n")
    main, world.root = world.root, linked
    done = world.run("graph-run", world.graph(PLAN), "--integrate", "--json")
    assert done.code == 0, str(done)
    assert done.data["graph"]["baseCommit"] == git(linked, "rev-parse", "other")
    assert "other.txt" in world.files("coordinate-agents/plan/integration")
    assert git(main, "status", "--porcelain") == ""
    assert git(linked, "status", "--porcelain") == ""


def test_a_detached_head_is_a_base_like_any_other(world: World) -> None:
    git(world.root, "checkout", "-q", "--detach")
    _assert_runs(world)


def test_a_sha256_repository(world: World) -> None:
    world.root = make_repo(world.place / "sha256", object_format="sha256")
    _assert_runs(world)


def test_a_shallow_clone(world: World) -> None:
    for number in range(3):
        commit_file(world.root, "count.txt", f"{number}\n")
    shallow = world.place / "shallow"
    git(world.place, "clone", "-q", "--depth", "1", world.root.as_uri(), str(shallow))
    world.root = shallow
    _assert_runs(world)


def test_git_variables_that_point_elsewhere_change_nothing(world: World) -> None:
    elsewhere = make_repo(world.place / "elsewhere")
    tip = git(elsewhere, "rev-parse", "HEAD")
    world.environment |= {
        "GIT_DIR": str(elsewhere / ".git"),
        "GIT_WORK_TREE": str(elsewhere),
        "GIT_INDEX_FILE": str(world.place / "index"),
        "GIT_OBJECT_DIRECTORY": str(elsewhere / ".git" / "objects"),
        "GIT_COMMON_DIR": str(elsewhere / ".git"),
    }
    done = world.run("graph-run", world.graph(PLAN), "--integrate", "--root", world.root)
    assert done.code == 0, str(done)
    assert {"f-a", "f-b", "f-c"} <= set(world.files("coordinate-agents/plan/integration"))
    assert git(elsewhere, "rev-parse", "HEAD") == tip
    assert git(elsewhere, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert not Path(world.place, "index").exists()


@pytest.mark.parametrize(
    ("make", "code", "word"),
    [
        ("no repository", "NOT_A_REPOSITORY", "repository"),
        ("no commit", "REPOSITORY_UNSUPPORTED", "commit"),
        ("branch in the way", "WORKTREE_CONFLICT", "coordinate-agents"),
    ],
)
def test_a_place_where_no_run_can_be_is_refused_early(world: World, make: str, code: str, word: str) -> None:
    match make:
        case "no repository":
            world.root = world.place / "plain"
            world.root.mkdir()
        case "no commit":
            world.root = world.place / "unborn"
            world.root.mkdir()
            git(world.root, "init", "-q")
        case _:
            git(world.root, "branch", "coordinate-agents")
    done = world.run("graph-run", world.graph(PLAN), "--json")
    assert (done.code, done.document["error"]["code"]) == (1, code), str(done)
    assert word in done.document["error"]["message"]
    assert world.log_lines() == []
