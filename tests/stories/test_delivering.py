"""Delivering: the user names a branch, it holds what is integrated, and nothing else of theirs is touched."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from crashes import Dies, both_ways
from world import World, commit_file, differences, git

from coordinate_agents.worktrees.crashpoints import POINTS as GIT_POINTS

pytestmark = pytest.mark.story

PLAN = "id: plan\ntitle: Orders\nchecks: [git status]\nsubtasks: [{id: a, spec: One | two.}, {id: b, spec: x}]\n"


def integrated(world: World, plan: str = PLAN) -> str:
    done = world.run("graph-run", world.graph(plan), "--integrate", "--json")
    assert done.code == 0, str(done)
    commit: str = done.data["integration"]["commit"]
    return commit


def delivered(world: World, *words: str) -> Any:
    done = world.run("graph-deliver", "plan", "--branch", *words, "--json")
    assert done.code == 0, str(done)
    return done.data


def refusal(world: World, *words: str) -> tuple[int, str, str]:
    done = world.run("graph-deliver", "plan", "--branch", *words, "--json")
    return done.code, done.document["error"]["code"], done.document["error"]["message"]


def records(world: World) -> list[Any]:
    events = world.run("graph-events", "plan", "--json").data["events"]
    return [event for event in events if event["type"] == "BranchDelivered"]


def test_a_delivered_graph_stands_on_the_named_branch_and_says_how_to_publish_it(world: World) -> None:
    commit = integrated(world)
    git(world.root, "remote", "add", "origin", "https://user:word@example.org/x.git")
    before = world.user_state()
    data = delivered(world, "release/1")
    assert git(world.root, "rev-parse", "release/1") == commit
    assert data["delivered"] == {
        "branch": "release/1",
        "commit": commit,
        "source": commit,
        "previous": None,
        "isSquashed": False,
        "recorded": True,
    }
    body = data["bodyFile"]
    assert data["publish"] == [
        "git push --set-upstream origin release/1",
        f"gh pr create --base main --head release/1 --title Orders --body-file {body}",
        f'glab mr create --target-branch main --source-branch release/1 --title Orders --description "$(cat {body})"',
    ]
    changed = differences(before, world.user_state())
    assert all("release/1" in name for name in changed), changed
    assert [(each["data"]["branch"], each["data"]["commit"]) for each in records(world)] == [("release/1", commit)]

    assert delivered(world, "release/1")["delivered"]["recorded"] is False
    assert len(records(world)) == 1
    assert [each["branch"] for each in world.status("plan")["deliveries"]] == ["release/1"]
    assert "Branch release/1 holds" in world.run("graph-deliver", "plan", "--branch", "release/1").out


def test_the_day_of_a_delivery_leads_from_a_moved_base_to_the_same_file_again(world: World) -> None:
    """Main moved meanwhile; a check leaves files that its own .gitignore hides, as pytest does."""
    leaving = "checks: [{name: tests, run: [sh, -c, \"mkdir -p cache; echo '*' > cache/.gitignore; touch cache/x\"]}]\n"
    plan = world.graph(f"id: plan\n{leaving}subtasks: [{{id: a, spec: x}}, {{id: b, spec: x}}]\n")
    assert world.run("graph-run", plan).code == 0
    commit_file(world.root, "meanwhile.txt", "of main\n")
    tip = git(world.root, "rev-parse", "main")
    status = world.run("graph-status", "plan").out.splitlines()
    assert status[:2] == [
        "plan: SUCCEEDED",
        f"base {world.status('plan')['graph']['baseCommit'][:10]}, 1 commit behind main",
    ]
    assert status[-1] == "or on top of main as it is now: coordinate-agents graph-integrate plan --onto main"

    onto = world.run(*status[-1].split("now: coordinate-agents ")[1].split())
    assert f"onto main {tip[:10]} on coordinate-agents/plan/integration" in onto.out
    looked = world.run("graph-review", "plan").out
    assert f"  against main {tip[:10]}; 1/1 checks passed" in looked
    assert (" f-a " in looked, "meanwhile.txt" in looked) == (True, False)
    assert world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED").code == 0
    assert "graph-deliver plan --branch NAME" in world.run("graph-status", "plan").out.splitlines()[-1]
    refused = world.run("graph-deliver", "plan", "--branch", "main")
    assert refused.err.splitlines()[-1] == "Next: coordinate-agents graph-deliver plan --branch NAME"
    told = world.run("graph-deliver", "plan", "--branch", "release").out.splitlines()
    assert told[-1].endswith(": coordinate-agents graph-cleanup plan --all")
    last = world.run("graph-status", "plan").out.splitlines()[-2:]
    assert (last[0], "graph-cleanup plan --all" in last[1]) == ("Delivered to release.", True)

    cleaned = world.run("graph-cleanup", "plan", "--all", "--json")
    assert {each["outcome"] for each in cleaned.data["items"]} == {"removed"}, str(cleaned)
    assert world.run("graph-status", "plan").out.splitlines()[-1] == "Delivered to release."
    again = world.run("graph-run", plan).out.splitlines()
    assert again[-2:] == [
        "Everything in it was done before. Once more, as a graph of its own:",
        f"  coordinate-agents graph-run {plan} --as plan-2",
    ]
    done = world.run(*again[-1].split()[1:], "--json")
    assert (done.code, done.data["graph"]["id"], done.data["graph"]["baseCommit"]) == (0, "plan-2", tip)
    assert world.run("graph-run", "plan", "--as", "x").code == 2


def test_the_body_lists_subtasks_checks_warnings_and_commits_without_acting_markup(world: World) -> None:
    program = world.agent('echo x > "f-$S"; git add -A; git commit -q -m "see @ann | \\`x\\` <b> of $S"')
    world.configure({"one": (program,)})
    integrated(world, PLAN.replace("spec: x}", "spec: x, writes: docs}"))
    body = Path(delivered(world, "release")["bodyFile"])
    assert body.stat().st_mode & 0o777 == 0o600
    told = body.read_text()
    for line in (
        "# Orders",
        r"| `a` | One \| two. | `one` |",
        "- `git status`: passed (`git status`)",
        "- `b`: `1 of 1 changed path outside the write intent: f-b`",
        r"``see @ann \| `x` <b> of a``",
    ):
        assert line in told, told


def test_what_is_not_integrated_stale_or_in_the_way_is_refused_and_nothing_is_made(world: World) -> None:
    assert refusal(world, "release")[1] == "TASK_NOT_FOUND"
    done = world.run("graph-run", world.graph(PLAN), "--json")
    assert done.code == 0, str(done)
    assert refusal(world, "release")[:2] == (1, "TASK_STATE_CONFLICT")
    assert world.run("graph-integrate", "plan").code == 0
    refs = git(world.root, "for-each-ref")
    assert refusal(world, "main")[:2] == (1, "WORKTREE_CONFLICT")
    assert refusal(world, "feature")[:2] == (1, "WORKTREE_CONFLICT")
    assert refusal(world, "a b")[:2] == (2, "INVALID_USAGE")
    assert git(world.root, "for-each-ref") == refs
    worktree = world.status("plan")["integration"]["worktree"]
    git(worktree, "commit", "-q", "--allow-empty", "-m", "by hand")
    assert "its branch stands at" in refusal(world, "release")[2]
    assert records(world) == []


def test_squashed_is_one_commit_of_the_user_and_a_rework_comes_on_top(world: World) -> None:
    world.configure({"one": (world.agent('echo more >> "f-$S"; git add -A; git commit -q -m "work of $S"'),)})
    commit = integrated(world)
    data = delivered(world, "topic", "--squash")
    assert git(world.root, "log", "-1", "--format=%P %an%n%B", "topic").splitlines() == [
        f"{git(world.root, 'rev-parse', 'main')} Ann User",
        "Orders",
        "",
        "- a: One | two.",
        "- b: x",
        "",
        "Coordinate-Agents-Graph: plan",
        f"Coordinate-Agents-Commit: {commit}",
    ]
    asked = world.run("graph-review", "plan", "a", "--decision", "CHANGES_REQUESTED", "--feedback", "More.")
    assert asked.code == 0, str(asked)
    assert refusal(world, "topic", "--squash")[1] == "TASK_STATE_CONFLICT"
    assert world.run("graph-run", "plan", "--integrate").code == 0
    again = delivered(world, "topic", "--squash")
    assert again["delivered"]["previous"] == data["delivered"]["commit"]
    assert git(world.root, "rev-list", "--count", "main..topic") == "2"
    assert world.files("topic")["f-a"] == "more\nmore"


def test_a_delivery_that_died_is_finished_and_recorded_by_the_same_command(world: World) -> None:
    assert {name for name in GIT_POINTS if name.startswith("deliver.")} == {"deliver.decided", "deliver.moved"}

    def story(world: World, dies: Dies) -> None:
        integrated(world)
        before = set(git(world.root, "for-each-ref").splitlines())
        for point in ("deliver.decided", "deliver.moved", "deliver.done"):
            dies(point, "graph-deliver", "plan", "--branch", "release", "--squash")
        data = delivered(world, "release", "--squash")
        assert data["delivered"]["recorded"] is True
        assert git(world.root, "rev-list", "--count", "main..release") == "1"
        assert [each["data"]["commit"] for each in records(world)] == [git(world.root, "rev-parse", "release")]
        (made,) = set(git(world.root, "for-each-ref").splitlines()) - before
        assert made.endswith("refs/heads/release")

    both_ways(world, story)


def test_an_agent_cannot_deliver(world: World) -> None:
    program = world.agent(
        f"{World.command()[0]} graph-deliver plan --branch x --root {world.root} > {world.place}/said 2>&1 || true\n"
        'echo x > "f-$S"; git add -A; git commit -q -m x'
    )
    world.configure({"one": (program,)})
    integrated(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n")
    assert "AGENT_MAY_NOT" in (world.place / "said").read_text()


def test_the_push_that_is_printed_publishes_the_branch(world: World) -> None:
    commit = integrated(world)
    bare = world.place / "remote.git"
    git(world.place, "init", "-q", "--bare", str(bare))
    git(world.root, "remote", "add", "origin", str(bare))
    push = delivered(world, "release")["publish"][0]
    assert git(bare, "for-each-ref") == "", "nothing is pushed by itself"
    subprocess.run(push, shell=True, cwd=world.root, check=True, capture_output=True)
    assert git(bare, "rev-parse", "release") == commit
