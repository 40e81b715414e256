"""A verified commit that is truly gone, back-dated work, and the limits of one run."""

from pathlib import Path
from typing import Any

import pytest
from world import World, git

pytestmark = pytest.mark.story

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}, {id: other, spec: x}]\n"
DATES = "export GIT_COMMITTER_DATE=2001-01-01T00:00:00Z GIT_AUTHOR_DATE=2001-01-01T00:00:00Z"
WORK = 'echo x > "f-$S"; git add .; git commit -qm "work of $S"'


def _states(world: World) -> dict[str, str]:
    return {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}


def _item(world: World, subtask: str) -> Any:
    return next(item for item in world.status("plan")["subtasks"] if item["id"] == subtask)


def _destroy(world: World, subtask: str) -> str:
    """Delete everything that keeps the subtask's verified commit, and the commit."""
    item = _item(world, subtask)
    git(world.root, "worktree", "remove", "--force", "--force", item["worktree"])
    refs = git(world.root, "for-each-ref", "--format=delete %(refname)", "refs/coordinate-agents").splitlines()
    for line in (*refs, f"delete refs/heads/{item['branch']}"):
        git(world.root, "update-ref", "-d", line.removeprefix("delete "))
    git(world.root, "reflog", "expire", "--all", "--expire=now")
    git(world.root, "gc", "--quiet", "--prune=now")
    return str(item["verifiedCommit"])


def test_a_verified_commit_that_is_gone_stops_what_builds_on_it_and_is_named(world: World) -> None:
    """SC-09: before, the whole graph stopped at a ref that git would not set, or an INTERNAL_ERROR of git was told."""
    assert world.run("graph-run", world.graph(PLAN), "--until", "a").code == 0
    gone = _destroy(world, "a")
    done = world.run("graph-run", "plan", "--json")
    assert done.code == 4, str(done)
    assert _states(world) == {"a": "SUCCEEDED", "b": "BLOCKED", "other": "SUCCEEDED"}
    assert [each["subtask"] for each in done.data["attention"]] == ["b"]
    failure = _item(world, "b")["failure"]
    redo = "coordinate-agents graph-resume plan a --redo"
    assert (failure["code"], failure["next"]) == ("WORKTREE_CONFLICT", redo)
    assert failure["message"] == f"a's verified commit {gone} is missing from this repository."
    assert _item(world, "b")["reason"] == failure["message"]
    assert [line[1] for line in world.log_lines() if line[0] == "start"] == ["a", "other"]
    verified = world.run("graph-verify", "plan", "--json")
    assert verified.code == 4, str(verified)
    assert [item["problems"] for item in verified.data["certificates"]] == [
        [f"commit {gone} is missing from this repository"],
        [],
    ]
    assert redo in world.run("graph-inspect", "plan", "b").out
    assert redo in world.run("graph-why", "plan", "b").out
    again = world.run(*redo.split()[1:], "--json")
    assert again.data["resume"]["reset"] == ["a", "b"], str(again)
    assert world.run("graph-run", "plan").code == 0
    assert _states(world) == dict.fromkeys(("a", "b", "other"), "SUCCEEDED")
    assert _item(world, "b")["base"] == _item(world, "a")["verifiedCommit"]
    world.assert_nothing_left("plan")


def test_back_dated_work_is_found_and_built_on(world: World) -> None:
    """EV-09, SC-03: neither a verdict nor a base looks at dates; b sees a's commit before it has its prompt."""
    see = f'{DATES}\n[ "$S" != b ] || test -f f-a || exit 9\n{WORK}'
    world.configure({"one": (world.agent(see),)})
    done = world.run("graph-run", world.graph(PLAN), "--json")
    assert done.code == 0, str(done)
    a, b = _item(world, "a"), _item(world, "b")
    assert git(world.root, "show", "-s", "--format=%ct", b["verifiedCommit"]) == "978307200"
    assert b["base"] == a["verifiedCommit"]


def test_a_limit_that_no_run_can_keep_is_refused_with_its_range(world: World) -> None:
    """SC-07: what a limit of one does stands in test_scheduling.py."""
    for limit in ("0", "-1", "10000"):
        done = world.run("graph-run", world.graph(f"maxConcurrency: {limit}\n{PLAN}"), "--json")
        said = [problem["message"] for problem in done.document["error"]["problems"]]
        assert (done.code, said) == (2, [f"{limit} is outside the range of maxConcurrency, 1 to 256"]), str(done)
    assert world.log_lines() == []


def test_a_good_commit_of_a_killed_agent_is_named_kept_and_can_be_verified(world: World) -> None:
    """EV-17."""
    world.configure({"one": (world.agent(f"{WORK}\nkill -9 $$"),)})
    assert world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 4
    failed = _item(world, "a")
    tip = git(world.root, "rev-parse", "coordinate-agents/plan/a")
    assert f"commit {tip[:12]} present, not verified" in failed["failure"]["message"]
    done = world.run("graph-check", "plan", "a", "--json")
    assert (done.code, _item(world, "a")["verifiedCommit"]) == (0, tip), str(done)
    assert Path(failed["worktree"]).is_dir()


def test_the_commit_of_an_attempt_that_crashed_is_evidence_of_the_next(world: World) -> None:
    """EV-03: the start commit is recorded before the agent starts and never moves on a resume."""
    world.configure({"one": (world.agent(f'[ "$COORDINATE_AGENTS_ATTEMPT" = 2 ] || {{ {WORK}; kill -9 $$; }}'),)})
    assert world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 4
    base, tip = _item(world, "a")["base"], git(world.root, "rev-parse", "coordinate-agents/plan/a")
    assert world.run("graph-run", "plan", "--retry-failed").code == 0
    item = _item(world, "a")
    assert (item["attempt"], item["base"], item["verifiedCommit"]) == (2, base, tip)


def test_what_moves_a_branch_after_its_verdict_is_told_kept_and_never_built_on(world: World) -> None:
    """EV-07: one that goes on is left, one that was rewritten is set back. Before, nothing held what it held."""
    assert world.run("graph-run", world.graph(PLAN), "--until", "a").code == 0
    item = _item(world, "a")
    worktree, verified = Path(item["worktree"]), item["verifiedCommit"]
    (worktree / "late").write_text("late\n")
    git(worktree, "add", "late")
    git(worktree, "commit", "-q", "-m", "late")
    late = git(worktree, "rev-parse", "HEAD")
    recovered = world.run("graph-recover", "plan", "--json").data["recover"]["subtasks"][0]
    assert recovered["problems"] == [f"branch is at {late[:12]}, verified is {verified[:12]}"]
    git(worktree, "reset", "-q", "--soft", "HEAD~2")
    git(worktree, "commit", "-q", "-m", "sneaky")
    sneaky = git(worktree, "rev-parse", "HEAD")

    done = world.run("graph-run", "plan", "--integrate")

    assert done.code == 0, str(done)
    said = f"branch coordinate-agents/plan/a is set back to its verified commit {verified[:12]}; {sneaky[:12]}, where"
    assert said in done.err, str(done)
    assert (_item(world, "a")["verifiedCommit"], _item(world, "b")["base"]) == (verified, verified)
    assert "late" not in world.files("coordinate-agents/plan/integration")
    assert git(world.root, "rev-parse", "refs/coordinate-agents/plan/a/kept-1") == sneaky
    world.assert_nothing_left("plan")


def test_an_integration_names_the_verified_commit_that_is_gone(world: World) -> None:
    """SC-09."""
    assert world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 0
    gone = _destroy(world, "a")
    done = world.run("graph-integrate", "plan", "--json")
    assert done.code == 4, str(done)
    failure = done.data["integration"]["failure"]
    assert failure["message"] == f"a's verified commit {gone} is missing from this repository."
    assert failure["next"] == "coordinate-agents graph-resume plan a --redo"
    assert world.run(*failure["next"].split()[1:]).code == 0
    assert world.run("graph-run", "plan", "--integrate").code == 0
