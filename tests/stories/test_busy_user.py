"""A user in the middle of something, who goes on working while the graph runs: what is theirs stays theirs."""

import subprocess

import pytest
from world import World, commit_file, differences, git, make_repo, until

pytestmark = pytest.mark.story

PLAN = """\
subtasks:
  - {id: a, spec: x}
  - {id: b, dependsOn: a, spec: x}
  - {id: c, dependsOn: a, spec: x}
  - {id: d, dependsOn: [b, c], spec: x}
"""


def _make_dirty(world: World) -> None:
    """A stash, a conflict in progress, and staged, unstaged and untracked changes."""
    root = world.root
    for name in ("one.txt", "two.txt", "three.txt"):
        commit_file(root, name, "first\n")
    (root / "one.txt").write_text("stashed\n")
    git(root, "stash", "push", "-q", "-m", "for later")
    git(root, "checkout", "-q", "-b", "side")
    commit_file(root, "one.txt", "theirs\n")
    git(root, "checkout", "-q", "main")
    commit_file(root, "one.txt", "ours\n")
    subprocess.run(["git", "merge", "-q", "side"], cwd=root, check=False, capture_output=True)
    assert (root / ".git" / "MERGE_HEAD").exists()
    (root / "two.txt").write_text("staged\n")
    git(root, "add", "two.txt")
    (root / "two.txt").write_text("staged, and changed again\n")
    (root / "three.txt").unlink()
    (root / "new folder").mkdir()
    (root / "new folder" / "ünticked\n.txt").write_text("untracked\n")
    (root / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (root / ".git" / "info" / "exclude").write_text("*.mine\n")
    (root / "ignored.mine").write_text("ignored\n")


def test_a_dirty_checkout_with_a_conflict_in_progress_stays_as_it_is(world: World) -> None:
    _make_dirty(world)
    before = world.user_state()
    done = world.run("graph-run", world.graph(PLAN), "--integrate", "--json")
    assert done.code == 0, str(done)
    assert differences(before, world.user_state()) == []
    files = world.files("coordinate-agents/plan/integration")
    assert {name: files[name] for name in ("one.txt", "two.txt", "three.txt")} == {
        "one.txt": "ours", "two.txt": "first", "three.txt": "first",
    }  # fmt: skip
    assert {"f-a", "f-b", "f-c", "f-d"} <= set(files)
    world.assert_nothing_left("plan")


def test_a_user_who_commits_branches_fetches_stashes_and_collects_garbage_refuses_nobody(world: World) -> None:
    remote = make_repo(world.place / "remote")
    commit_file(remote, "upstream.txt", "from others\n")
    git(world.root, "remote", "add", "origin", str(remote))
    world.hold("b", "c")
    run = world.start("graph-run", world.graph(PLAN), "--integrate")
    try:
        world.wait_for_start("b")
        base = git(world.root, "rev-parse", "main")
        commit_file(world.root, "mine.txt", "committed while agents work\n")
        git(world.root, "branch", "idea")
        git(world.root, "tag", "-a", "-m", "a tag", "v1")
        git(world.root, "fetch", "-q", "origin")
        (world.root / "mine.txt").write_text("stashed\n")
        git(world.root, "stash", "push", "-q")
        git(world.root, "config", "user.signingKey", "none")
        git(world.root, "reflog", "expire", "--expire-unreachable=now", "--all")
        git(world.root, "gc", "-q", "--prune=now")
        git(world.root, "checkout", "-q", "-b", "elsewhere")
        (world.root / "mine.txt").write_text("not committed\n")
        users = world.user_state()
        world.release("b", "c")
        code = run.wait(60)
    finally:
        run.kill()
    assert code == 0, world.said()
    assert differences(users, world.user_state()) == []
    data = world.status("plan")
    assert data["graph"]["baseCommit"] == base
    assert {item["state"] for item in data["subtasks"]} == {"SUCCEEDED"}
    assert set(world.files("coordinate-agents/plan/integration")) == {"README.md", "f-a", "f-b", "f-c", "f-d"}
    world.assert_nothing_left("plan")


def test_two_runs_of_one_graph_at_once_start_each_subtask_once(world: World) -> None:
    plan = world.graph(PLAN)
    world.hold("a")
    first = world.start("graph-run", plan)
    try:
        world.wait_for_start("a")
        second = world.run("graph-run", plan, "--json")
        assert second.code == 1, str(second)
        assert second.document["error"]["code"] == "LEASE_HELD"
        assert str(first.pid) in second.document["error"]["message"]
        world.release("a")
        assert first.wait(60) == 0, world.said()
    finally:
        first.kill()
    assert sorted(line[1] for line in world.log_lines() if line[0] == "start") == ["a", "b", "c", "d"]


def test_two_graphs_run_side_by_side_in_one_repository(world: World) -> None:
    world.hold("a")
    runs = [world.start("graph-run", world.graph(PLAN, f"{name}.yaml"), "--integrate") for name in ("east", "west")]
    try:
        until(lambda: len([line for line in world.log_lines() if line[0] == "start"]) >= 2 or None, "both start")
        world.release("a")
        assert [run.wait(60) for run in runs] == [0, 0], world.said()
    finally:
        for run in runs:
            run.kill()
    for name in ("east", "west"):
        assert {"f-a", "f-b", "f-c", "f-d"} <= set(world.files(f"coordinate-agents/{name}/integration"))
    world.assert_nothing_left("east", "west")
