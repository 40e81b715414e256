"""An integration that stops: a conflict, a broken whole, changes in the way. Finished by hand, or given up."""

from pathlib import Path
from typing import Any

import pytest
from world import Done, World, commit_file, git

pytestmark = pytest.mark.story

TRIO = "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: k, spec: x}]\n"


@pytest.fixture
def trio(world: World) -> World:
    """a and b write one line of one file; k does not."""
    body = 'case "$S" in a|b) echo "$S" > same;; esac; echo "$S" > "f-$S"; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body),)})
    return world


def integrate(world: World, *options: str) -> Done:
    return world.run("graph-integrate", "plan", "--json", *options)


def worktree(world: World) -> Path:
    return Path(world.run("graph-path", "plan").out.strip())


def error(done: Done) -> Any:
    return done.document["error"]


def test_conflict_waits_in_the_integrations_own_worktree_and_is_finished_there(trio: World) -> None:  # IN-01
    before = trio.user_state()
    check = "! test -e f-k || ! grep -q a same || grep -q b same"
    plan = trio.graph(f'checks: [{{name: both, run: [sh, -c, "{check}"]}}]\n{TRIO}')
    done = trio.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 5, str(done)
    shown = done.data["integration"]
    assert shown["conflict"] == {"subtasks": ["a", "b"], "paths": ["same"], "applied": ["a"]}
    assert shown["failure"]["next"] == "coordinate-agents graph-integrate plan --continue"
    assert trio.user_state() == before
    assert not list((trio.root / ".git").glob("MERGE_*"))
    path = worktree(trio)
    assert git(path, "status", "--porcelain").splitlines() == ["A  f-b", "AA same"]
    (path / "same").write_text("half way\n")
    assert integrate(trio).code == 5
    assert (path / "same").read_text() == "half way\n"
    refused = integrate(trio, "--continue")
    assert (refused.code, error(refused)["code"]) == (1, "DIRTY_WORKTREE")

    (path / "same").write_text("a and b\n")
    git(path, "add", "same")
    done = integrate(trio, "--continue")

    assert done.code == 0, str(done)
    assert done.data["graph"]["state"] == "INTEGRATED"
    assert done.data["integrate"]["resolution"]["madeBy"] == "runtime"
    merged = trio.files("coordinate-agents/plan/integration")
    assert merged == {"README.md": "# sample", "f-a": "a", "f-b": "b", "f-k": "k", "same": "a and b"}
    assert integrate(trio).data["integration"]["commit"] == done.data["integration"]["commit"]
    again = integrate(trio, "--continue")
    assert (again.code, again.data["integration"]["commit"]) == (0, done.data["integration"]["commit"])
    assert trio.user_state() == before
    trio.assert_nothing_left("plan")


def test_conflict_that_is_given_up_leaves_no_merge_and_keeps_what_was_there(trio: World) -> None:
    assert trio.run("graph-run", trio.graph(TRIO), "--integrate").code == 5
    path = worktree(trio)
    (path / "same").write_text("half way\n")

    done = integrate(trio, "--abort")

    assert done.code == 0, str(done)
    assert done.data["graph"]["state"] == "SUCCEEDED"
    assert git(trio.root, "show", f"{done.data['integrate']['kept']}:same") == "half way"
    assert git(path, "status", "--porcelain", "--branch") == "## coordinate-agents/plan/integration"
    assert git(path, "rev-parse", "HEAD") == done.data["graph"]["baseCommit"]
    again = integrate(trio, "--abort")
    assert (again.code, again.data["integrate"]["kept"]) == (0, None)
    assert integrate(trio).code == 5
    assert (path / "same").read_text().count("<<<<<<<") == 1


def test_integration_onto_a_newer_main_names_main_and_goes_back_to_the_last_good_one(trio: World) -> None:
    text = "subtasks: [{id: a, spec: x}, {id: k, spec: x}]\n"
    first = trio.run("graph-run", trio.graph(text), "--integrate", "--json")
    assert first.code == 0, str(first)
    clean = commit_file(trio.root, "newer.txt", "newer\n")
    moved = integrate(trio, "--onto", "main")
    assert moved.code == 0, str(moved)
    assert moved.data["integration"]["onto"] == clean
    assert trio.files("coordinate-agents/plan/integration")["newer.txt"] == "newer"
    assert integrate(trio).data["integration"]["commit"] == moved.data["integration"]["commit"]

    other = commit_file(trio.root, "same", "mine\n")
    stopped = integrate(trio, "--onto", "main")
    assert stopped.code == 5, str(stopped)
    assert stopped.data["integration"]["conflict"] == {
        "subtasks": ["main", "a"],
        "paths": ["same"],
        "applied": ["main"],
    }
    assert (worktree(trio) / "same").read_text().startswith(f"<<<<<<< main ({other[:12]})\nmine\n")
    refused = integrate(trio, "--onto", clean)
    assert error(refused)["next"] == "coordinate-agents graph-integrate plan --abort"
    back = integrate(trio, "--abort")
    assert back.data["graph"]["state"] == "INTEGRATED"
    assert back.data["integration"]["commit"] == moved.data["integration"]["commit"]
    assert git(trio.root, "rev-parse", "coordinate-agents/plan/integration") == moved.data["integration"]["commit"]

    assert integrate(trio, "--onto", "main").code == 5
    (worktree(trio) / "same").write_text("mine and a\n")
    git(worktree(trio), "commit", "-q", "-a", "-m", "by hand")
    done = integrate(trio, "--continue")
    assert (done.code, done.data["integration"]["onto"]) == (0, other), str(done)
    assert git(trio.root, "merge-base", other, done.data["integration"]["commit"]) == other
    assert trio.run("graph-integrate", "plan", "--onto", "nowhere").code in (1, 2)


def test_whole_that_fails_its_check_is_mended_in_the_merge_itself(world: World) -> None:  # IN-07
    commit_file(world.root, "lib.py", "def g():\n    return 1\n")
    body = (
        'case "$S" in a) sed -i s/g/h/ lib.py;; b) echo "import lib; lib.g()" > use.py;; esac\n'
        "git add -A; git commit -q -m x"
    )
    world.configure({"one": (world.agent(body),)})
    text = 'checks: [[sh, -c, "test ! -e use.py || python3 use.py"]]\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n'
    assert world.run("graph-run", world.graph(text), "--integrate").code == 4
    path = worktree(world)
    assert git(path, "status", "--porcelain", "--untracked-files=no") == ""
    (path / "use.py").write_text("import lib; lib.h()\n")
    refused = integrate(world, "--continue")
    assert (refused.code, error(refused)["code"]) == (1, "DIRTY_WORKTREE")
    assert error(refused)["next"] == f"git -C {path} commit --amend -a"
    git(path, "commit", "-q", "-a", "--amend", "-m", "Merge, and follow the new name")

    done = integrate(world, "--continue")

    assert done.code == 0, str(done)
    assert done.data["integrate"]["resolution"]["otherPaths"] == ["use.py"]
    assert world.files("coordinate-agents/plan/integration")["use.py"] == "import lib; lib.h()"
    assert integrate(world).data["integration"]["commit"] == git(path, "rev-parse", "HEAD")


def test_changes_of_unknown_origin_are_never_overwritten_and_can_be_set_aside(trio: World) -> None:
    text = "subtasks: [{id: a, spec: x}, {id: k, spec: x}]\n"
    first = trio.run("graph-run", trio.graph(text), "--integrate", "--json")
    path = worktree(trio)
    (path / "same").write_text("somebody's\n")
    commit_file(trio.root, "newer.txt", "newer\n")

    refused = integrate(trio, "--onto", "main")

    assert refused.code == 4, str(refused)
    failure = refused.data["integration"]["failure"]
    assert (failure["code"], failure["next"]) == ("DIRTY_WORKTREE", "coordinate-agents graph-integrate plan --abort")
    assert (path / "same").read_text() == "somebody's\n"
    back = integrate(trio, "--abort")
    assert back.data["integration"]["commit"] == first.data["integration"]["commit"]
    assert git(trio.root, "show", f"{back.data['integrate']['kept']}:same") == "somebody's"
    assert git(path, "status", "--porcelain") == ""
    assert integrate(trio, "--onto", "main").code == 0


def test_merge_of_commits_that_were_redone_is_given_up_before_another_begins(trio: World) -> None:
    plan = trio.graph(TRIO)
    assert trio.run("graph-run", plan, "--integrate").code == 5
    path = worktree(trio)
    (path / "same").write_text("half way\n")
    assert trio.run("graph-resume", "plan", "k", "--redo", "--from", "base").code == 0
    assert trio.run("graph-run", "plan", "--integrate").code == 5
    assert (path / "same").read_text() == "half way\n"
    for options in ((), ("--continue",)):
        refused = integrate(trio, *options)
        assert refused.code == 1, str(refused)
        assert error(refused)["next"] == "coordinate-agents graph-integrate plan --abort"
    assert integrate(trio, "--abort").code == 0
    assert integrate(trio).code == 5
    (path / "same").write_text("a and b\n")
    git(path, "add", "same")
    assert integrate(trio, "--continue").code == 0


def test_merge_by_hand_of_an_integration_serves_the_base_of_a_subtask_that_is_added_later(trio: World) -> None:
    assert trio.run("graph-run", trio.graph(TRIO), "--integrate").code == 5
    path = worktree(trio)
    (path / "same").write_text("a and b\n")
    git(path, "add", "same")
    assert integrate(trio, "--continue").code == 0
    more = trio.graph(TRIO.replace("]\n", ", {id: z, dependsOn: [a, b], spec: x}]\n"))
    assert trio.run("graph-amend", "plan", more).code == 0

    done = trio.run("graph-run", "plan", "--integrate", "--json")

    assert (done.code, done.data["graph"]["state"]) == (0, "INTEGRATED"), str(done)
    base = {item["id"]: item for item in done.data["subtasks"]}["z"]["base"]
    assert git(trio.root, "show", f"{base}:same") == "a and b"
    merged = trio.files("coordinate-agents/plan/integration")
    assert merged == {"README.md": "# sample", "same": "a and b", **{f"f-{name}": name for name in "abkz"}}
