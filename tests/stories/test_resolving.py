"""A conflict between prerequisites, merged by a person with their own git: graph-resolve as its user meets it."""

from pathlib import Path
from typing import Any

import pytest
from world import Done, World, git, until

pytestmark = pytest.mark.story

FORK = """id: plan
subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x}
  - {id: c, spec: x, dependsOn: [a, b]}
  - {id: d, spec: x, dependsOn: [b, a]}
"""


@pytest.fixture
def fork(world: World) -> World:
    """Two subtasks write one line of one file; two others need both."""
    body = 'case "$S" in a*|b*|z*) echo "$S" > same;; esac; echo "$S" > "f-$S"; git add -A; git commit -q -m "of $S"'
    world.configure({"one": (world.agent(body),)})
    return world


def subtask(world: World, name: str) -> Any:
    return next(item for item in world.status("plan")["subtasks"] if item["id"] == name)


def opened(world: World, name: str = "c") -> Path:
    done = world.run("graph-resolve", "plan", name, "--json")
    assert done.code == 0, str(done)
    assert done.data["resolve"]["outcome"] == "opened"
    return Path(world.run("graph-path", "plan", name).out.strip())


def continued(world: World, name: str = "c", *options: str) -> Done:
    return world.run("graph-resolve", "plan", name, "--continue", "--json", *options)


def test_one_merge_by_hand_serves_every_subtask_that_needs_it(fork: World) -> None:
    assert fork.run("graph-run", fork.graph(FORK)).code == 5
    before = fork.user_state()
    path = opened(fork)
    assert git(path, "status", "--porcelain").splitlines() == ["A  f-b", "AA same"]
    (path / "same").write_text("a and b\n")
    git(path, "add", "same")
    git(path, "commit", "-q", "-m", "Merge them by hand")
    merge = git(path, "rev-parse", "HEAD")

    done = continued(fork)

    assert done.code == 0, str(done)
    assert done.data["resolve"] == {
        "subtask": "c",
        "action": "continue",
        "outcome": "ready",
        "resolution": {"commit": merge, "madeBy": "person", "otherPaths": [], "untracked": []},
        "also": ["d"],
        "kept": None,
    }
    assert [(item["state"], item["conflict"]) for item in done.data["subtasks"][2:]] == [("READY", None)] * 2
    ended = fork.run("graph-run", "plan", "--integrate", "--json")
    assert ended.code == 0, str(ended)
    assert [item["base"] for item in ended.data["subtasks"][2:]] == [merge, merge]
    assert fork.files("coordinate-agents/plan/integration")["same"] == "a and b"
    assert fork.run("graph-verify", "plan").code == 0
    (path / "left").write_text("untracked\n")
    stays = fork.run("graph-cleanup", "plan", "c", "--early", "--json")
    assert [item["outcome"] for item in stays.document["data"]["items"]] == ["removed", "refused"], str(stays)
    (path / "left").unlink()
    gone = fork.run("graph-cleanup", "plan", "c", "--early", "--json")
    assert [item["outcome"] for item in gone.data["items"]] == ["absent", "removed"], str(gone)
    assert (path.exists(), subtask(fork, "c")["conflictWorktree"]) == (False, None)
    assert fork.run("graph-cleanup", "plan", "--early", "--branches").code == 0
    assert "+resolve" not in git(fork.root, "branch", "--list", "coordinate-agents/*")
    assert merge in git(fork.root, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/plan/")
    assert fork.user_state() == before
    fork.assert_nothing_left("plan")


def test_index_that_was_only_added_is_committed_in_the_persons_name(fork: World) -> None:
    assert fork.run("graph-run", fork.graph(FORK)).code == 5
    path = opened(fork)
    refused = continued(fork)
    assert (refused.code, refused.document["error"]["code"]) == (1, "DIRTY_WORKTREE")
    assert "same is not resolved yet" in refused.document["error"]["message"]
    (path / "same").write_text("<<<<<<< left\n")
    (path / "README.md").write_text("# told\n")
    git(path, "add", "-A")
    assert "same still has conflict markers" in continued(fork).document["error"]["message"]

    done = continued(fork, "c", "--keep-markers")

    assert done.code == 0, str(done)
    resolution = done.data["resolve"]["resolution"]
    assert (resolution["madeBy"], resolution["otherPaths"]) == ("runtime", ["README.md"])
    assert git(fork.root, "log", "-1", "--format=%an <%ae>", resolution["commit"]) == "Ann User <ann@example.org>"
    again = continued(fork)
    assert (again.code, again.data["resolve"]["outcome"]) == (0, "ready")
    assert again.data["resolve"]["resolution"] is None


def test_three_prerequisites_are_merged_one_after_the_other(fork: World) -> None:
    text = "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: z, spec: x}, {id: c, spec: x, dependsOn: [a, b, z]}]\n"
    assert fork.run("graph-run", fork.graph(text)).code == 5
    path = opened(fork)
    (path / "same").write_text("a and b\n")
    git(path, "commit", "-q", "-a", "-m", "the first")
    following = continued(fork)
    assert following.code == 5, str(following)
    assert following.data["resolve"]["outcome"] == "opened"
    assert subtask(fork, "c")["conflict"] == {"subtasks": ["a", "z"], "paths": ["same"], "applied": ["a", "b"]}
    assert Path(fork.run("graph-path", "plan", "c").out.strip()) == path
    assert (path / "same").read_text().splitlines()[1:4] == ["a and b", "=======", "z"]
    (path / "same").write_text("all three\n")
    git(path, "add", "same")
    assert continued(fork).data["resolve"]["outcome"] == "ready"
    assert fork.run("graph-run", "plan").code == 0
    assert fork.files("coordinate-agents/plan/c")["same"] == "all three"


def test_merge_that_is_taken_back_is_kept_and_begun_anew(fork: World) -> None:
    assert fork.run("graph-run", fork.graph(FORK)).code == 5
    path = opened(fork)
    (path / "same").write_text("half way\n")
    done = fork.run("graph-resolve", "plan", "c", "--abort", "--json")
    assert done.code == 0, str(done)
    assert done.data["resolve"]["outcome"] == "given-up"
    assert git(fork.root, "show", f"{done.data['resolve']['kept']}:same") == "half way"
    assert git(path, "status", "--porcelain") == ""
    assert subtask(fork, "c")["failure"]["next"] == "coordinate-agents graph-resolve plan c"
    again = fork.run("graph-resolve", "plan", "c", "--abort", "--json")
    assert (again.code, again.data["resolve"]["kept"]) == (0, None)
    assert opened(fork) == path
    assert (path / "same").read_text().count("<<<<<<<") == 1
    fork.assert_nothing_left("plan")


def test_resolution_of_a_prerequisite_that_was_redone_is_not_used(world: World) -> None:
    body = (
        'case "$S" in a|b) echo "$S $COORDINATE_AGENTS_ATTEMPT" > same;; esac\n'
        'echo "$S" > "f-$S"; git add -A; git commit -q -m "of $S"'
    )
    world.configure({"one": (world.agent(body),)})
    text = "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: [a, b]}]\n"
    assert world.run("graph-run", world.graph(text)).code == 5
    path = opened(world)
    (path / "same").write_text("the first\n")
    git(path, "commit", "-q", "-a", "-m", "by hand")
    assert continued(world).code == 0
    assert world.run("graph-run", "plan").code == 0
    redone = world.run("graph-resume", "plan", "a", "--redo", "--from", "base")
    assert redone.code == 0, str(redone)
    assert world.run("graph-run", "plan").code == 5
    assert subtask(world, "c")["conflict"]["subtasks"] == ["a", "b"]
    assert opened(world) == path
    assert (path / "same").read_text().splitlines()[1:4] == ["a 2", "=======", "b 1"]
    (path / "same").write_text("the second\n")
    git(path, "add", "same")
    assert continued(world).code == 0
    assert world.run("graph-run", "plan", "--integrate").code == 0
    assert world.files("coordinate-agents/plan/integration")["same"] == "the second"


def test_worktree_that_was_removed_by_hand_is_opened_anew(fork: World) -> None:
    assert fork.run("graph-run", fork.graph(FORK)).code == 5
    path = opened(fork)
    git(fork.root, "worktree", "remove", "--force", "--force", str(path))
    refused = continued(fork)
    assert (refused.code, refused.document["error"]["next"]) == (1, "coordinate-agents graph-resolve plan c")
    assert opened(fork) == path
    (path / "same").write_text("a and b\n")
    git(path, "commit", "-q", "-a", "-m", "by hand")
    git(fork.root, "branch", "-f", "mine", git(path, "rev-parse", "HEAD"))
    assert continued(fork).code == 0
    git(fork.root, "worktree", "remove", "--force", "--force", str(path))
    assert fork.run("graph-run", "plan").code == 0


def test_driver_that_runs_takes_the_merge_and_starts_what_it_frees(world: World) -> None:
    body = (
        'case "$S" in a|b) echo "$S" > same; git add -A; git commit -q -m "of $S";; esac\n'
        'case "$S" in slow) while test -e "$FAKE_GATES/slow.hold"; do sleep 0.05; done;; esac\n'
        'echo "$S" > "f-$S"; git add -A; git commit -q -m "and $S"'
    )
    world.configure({"one": (world.agent(body),)})
    world.hold("slow")
    driver = world.start("graph-run", world.graph(f"{FORK}  - {{id: slow, spec: x}}\n"))
    until(lambda: (world.run("graph-list").code == 0 and _blocked(world)) or None, "c and d are blocked")
    path = opened(world)
    (path / "same").write_text("a and b\n")
    refused = continued(world)
    assert (refused.code, refused.document["error"]["code"]) == (1, "DIRTY_WORKTREE")
    git(path, "add", "same")
    done = continued(world)
    assert (done.code, done.data["resolve"]["outcome"]) == (0, "ready"), str(done)
    until(lambda: subtask(world, "d")["state"] == "SUCCEEDED" or None, "d runs in the same drive")
    assert done.data["graph"]["driver"]["pid"] == driver.pid
    world.release("slow")
    assert driver.wait(timeout=60) == 0, world.said()
    world.assert_nothing_left("plan")


def _blocked(world: World) -> bool:
    shown = world.run("graph-status", "plan", "--json")
    return shown.code == 0 and [item["state"] for item in shown.data["subtasks"][2:4]] == ["BLOCKED"] * 2


def test_subtask_without_a_conflict_is_refused_and_the_only_one_need_not_be_named(fork: World) -> None:
    text = "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: [a, b]}]\n"
    plan = fork.graph(text)
    assert fork.run("graph-create", plan).code == 0
    refused = fork.run("graph-resolve", "plan", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "TASK_STATE_CONFLICT")
    assert fork.run("graph-run", plan).code == 5
    shown = fork.run("graph-resolve", "plan")
    assert shown.code == 0, str(shown)
    assert "a and b do not merge in same." in shown.out
    assert "coordinate-agents graph-resolve plan c --continue" in shown.out
    assert fork.run("graph-resolve", "plan", "a").code == 1
    assert fork.run("graph-resolve", "plan", "c", "--continue", "--abort").code == 2


def test_submodule_that_both_moved_is_merged_by_hand(world: World) -> None:
    library = world.place / "library"
    git(world.place, "init", "-q", "-b", "main", str(library))
    commits = []
    for name in ("old", "left", "right"):
        git(library, "checkout", "-q", "-B", name, *(["old"] if name != "old" else []))
        (library / "file").write_text(f"{name}\n")
        git(library, "add", "-A")
        git(library, "commit", "-q", "-m", name)
        commits.append(git(library, "rev-parse", "HEAD"))
    git(world.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(world.root / "lib", "checkout", "-q", commits[0])
    git(world.root, "commit", "-q", "-a", "-m", "a submodule")
    body = f'case "$S" in a) C={commits[1]};; b) C={commits[2]};; *) echo x > x; git add x; C=;; esac\n' + (
        'test -z "$C" || git update-index --cacheinfo "160000,$C,lib"; git commit -q -m "of $S"'
    )
    world.configure({"one": (world.agent(body),)})
    text = "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: [a, b]}]\n"
    done = world.run("graph-run", world.graph(text), "--json")
    assert done.code == 5, str(done)
    assert subtask(world, "c")["conflict"]["paths"] == ["lib"]
    path = opened(world)
    git(path, "update-index", "--cacheinfo", f"160000,{commits[2]},lib")
    taken = continued(world)
    assert taken.code == 0, str(taken)
    assert world.run("graph-run", "plan").code == 0
    assert git(world.root, "rev-parse", "coordinate-agents/plan/c:lib") == commits[2]
