"""The integration on its own: later, twice, checked on the merged tree, refused while the graph is unfinished."""

import pytest
from world import World, git

pytestmark = pytest.mark.story

PAIR = "subtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"


def test_integration_that_is_asked_for_later_merges_what_was_verified(world: World) -> None:
    assert world.run("graph-run", world.graph(PAIR)).code == 0
    done = world.run("graph-integrate", "plan", "--json")
    assert done.code == 0, str(done)
    assert done.data["graph"]["state"] == "INTEGRATED"
    assert world.files("coordinate-agents/plan/integration") == {"README.md": "# sample", "f-a": "a", "f-b": "b"}


def test_integration_that_is_done_is_not_done_again(world: World) -> None:  # IN-09
    plan = world.graph('integration: {checks: [["true"]]}\n' + PAIR)
    first = world.run("graph-run", plan, "--integrate", "--json")
    events = len(world.run("graph-events", "plan", "--json").data["events"])
    again = world.run("graph-integrate", "plan", "--json")
    assert (first.code, again.code) == (0, 0), f"{first}\n{again}"
    assert again.data["integration"]["commit"] == first.data["integration"]["commit"]
    assert len(world.run("graph-events", "plan", "--json").data["events"]) == events + 2


def test_integration_that_died_after_its_branch_moved_is_the_same_merge_afterwards(world: World) -> None:  # IN-09
    world.run_dying("integration.published", "graph-run", world.graph(PAIR), "--integrate")
    merged = git(world.root, "rev-parse", "coordinate-agents/plan/integration")
    for _ in range(2):
        done = world.run("graph-integrate", "plan", "--json")
        assert (done.code, done.data["integration"]["commit"]) == (0, merged), str(done)
    assert git(world.root, "rev-parse", "coordinate-agents/plan/integration") == merged
    assert git(world.root, "rev-list", "--count", "--merges", merged) == "1"
    assert [line[0] for line in world.log_lines()].count("start") == 2
    world.assert_nothing_left("plan")


def test_unfinished_graph_is_not_integrated_and_says_what_is_missing(world: World) -> None:
    assert world.run("graph-create", world.graph(PAIR)).code == 0
    done = world.run("graph-integrate", "plan", "--json")
    assert done.code == 1, str(done)
    assert done.document["error"]["code"] == "TASK_STATE_CONFLICT"
    assert "a, b" in done.document["error"]["message"]


def test_each_passes_alone_and_both_fail_together(world: World) -> None:  # IN-07
    (world.root / "lib.py").write_text("def g():\n    return 1\n")
    git(world.root, "add", "lib.py")
    git(world.root, "commit", "-q", "-m", "a library")
    body = (
        'case "$S" in a) sed -i s/g/h/ lib.py;; b) echo "import lib; lib.g()" > use.py;; esac\n'
        "git add -A; git commit -q -m x"
    )
    world.configure({"one": (world.agent(body),)})
    check = '[sh, -c, "test ! -e use.py || python3 use.py"]'
    done = world.run("graph-run", world.graph(f"checks: [{check}]\n{PAIR}"), "--integrate", "--json")
    assert done.code == 4, str(done)
    assert {item["state"] for item in done.data["subtasks"]} == {"SUCCEEDED"}
    assert done.data["integration"]["state"] == "failed"
    failure = done.data["integration"]["failure"]
    assert failure["code"] == "CHECK_FAILED"
    assert "a, b" in failure["message"]
    assert "AttributeError" in failure["tail"]


def test_user_settings_hooks_and_signing_change_no_merge(world: World) -> None:  # IN-04, IN-05
    trap = world.place / "trap"
    hook = f"#!/bin/sh\ntouch {trap}\nexit 1\n"
    hooks = world.place / "hooks"
    hooks.mkdir()
    for name in ("pre-merge-commit", "commit-msg", "post-merge", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(hook)
        (hooks / name).chmod(0o755)
    body = 'echo "$S" > "f-$S"; git add -A; git -c core.hooksPath=/dev/null -c commit.gpgsign=false commit -q -m x'
    world.configure({"one": (world.agent(body),)})
    for key, value in (
        ("core.hooksPath", str(hooks)),
        ("commit.gpgsign", "true"),
        ("gpg.program", "/bin/false"),
        ("branch.main.mergeoptions", "--squash"),
        ("merge.ff", "only"),
        ("merge.conflictStyle", "zdiff3"),
        ("user.useConfigOnly", "true"),
    ):
        git(world.root, "config", key, value)
    git(world.root, "config", "--unset", "user.email")
    world.environment["GIT_EDITOR"] = "sleep 999"
    done = world.run("graph-run", world.graph(PAIR), "--integrate", "--json")
    assert done.code == 0, str(done)
    commit = done.data["integration"]["commit"]
    assert len(git(world.root, "show", "-s", "--format=%P", commit).split()) == 2
    assert not trap.exists()


def test_subtasks_that_change_nothing_leave_nothing_to_integrate(world: World) -> None:  # IN-03
    world.configure({"one": (world.agent("true"),)})
    plan = world.graph("subtasks: [{id: a, spec: x, expect: nothing}, {id: b, spec: x, writes: []}]\n")
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    assert done.data["graph"]["state"] == "SUCCEEDED"
    assert done.data["integration"] is None


def test_integration_that_was_removed_by_hand_is_made_again(world: World) -> None:
    first = world.run("graph-run", world.graph(PAIR), "--integrate", "--json")
    assert first.code == 0, str(first)
    git(world.root, "worktree", "remove", "--force", "--force", first.data["integration"]["worktree"])
    git(world.root, "branch", "-D", "coordinate-agents/plan/integration")
    again = world.run("graph-integrate", "plan", "--json")
    assert again.code == 0, str(again)
    commit = first.data["integration"]["commit"]
    assert again.data["integration"]["commit"] == commit
    assert git(world.root, "rev-parse", "coordinate-agents/plan/integration") == commit
    assert world.files("coordinate-agents/plan/integration") == {"README.md": "# sample", "f-a": "a", "f-b": "b"}
