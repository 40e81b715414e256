"""Reviews: what is integrated is looked at, approved or sent back; the same process makes the changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from crashes import Dies, both_ways
from world import FIXTURES, ONE_COMMIT, World, git

from coordinate_agents.graph.crashpoints import POINTS

pytestmark = pytest.mark.story

STAYS = FIXTURES / "agents" / "stays.py"
ADDS = 'echo "turn $TURN" >> "f-$S"; git add -A; git commit -q -m "turn $TURN"; : > "$COORDINATE_AGENTS_SUBMIT_FILE"'
CHAIN = "id: plan\nsubtasks: [{id: a, spec: Write f-a.}, {id: b, spec: x, dependsOn: a}]\n"
CHANGES = ("--decision", "CHANGES_REQUESTED", "--feedback")


@pytest.fixture
def world(world: World) -> Iterator[World]:
    yield world
    world.run("graph-stop", "plan")
    world.assert_nothing_left("plan")


def staying(world: World, body: str = ADDS, *more: str) -> None:
    """Agents that stay; beside them `one` and others that end with their turn."""
    script = world.place / "stays.sh"
    script.write_text(f'S="$COORDINATE_AGENTS_SUBTASK"\n{body}\n')
    lines = ["version: 1", "defaultAgent: stays", "agents:", "  stays:", "    adapter: generic"]
    lines += [f"    command: {STAYS}", "    mode: interactive", f"    args: [{script}]", *more]
    world.configure_text("\n".join([*lines, "  one:", f"    command: {ONE_COMMIT}"]) + "\n")


def by_id(data: Any) -> Any:
    return {subtask["id"]: subtask for subtask in data["subtasks"]}


def turns(world: World, subtask: str) -> list[list[str]]:
    """[turn of its process, pid, file with the prompt]."""
    return [line[2:] for line in world.log_lines() if line[:2] == ["turn", subtask]]


def integrated(world: World, plan: str = CHAIN) -> Any:
    done = world.run("graph-run", world.graph(plan), "--integrate", "--json")
    assert done.code == 0, str(done)
    assert done.data["graph"]["state"] == "INTEGRATED"
    return done.data


def refusal(world: World, *words: str) -> tuple[int, str, str]:
    done = world.run("graph-review", *words, "--json")
    assert done.code in (1, 2), str(done)
    return done.code, done.document["error"]["code"], done.document["error"]["message"]


def decisions(world: World) -> list[Any]:
    found = world.run("graph-events", "plan", "--json").data["events"]
    return [event["data"] for event in found if event["type"] == "ReviewDecided"]


def test_changes_are_made_by_the_same_process_and_only_what_builds_on_them_runs_again(world: World) -> None:
    staying(world)
    before = world.user_state()
    plan = CHAIN.replace("]\n", ", {id: c, spec: x, agent: one}]\n")
    first = by_id(integrated(world, plan))
    opened = world.run("graph-review", "plan", "--json")
    assert opened.code == 5, str(opened)
    assert opened.data["graph"]["state"] == "REVIEWING"
    assert [item["kind"] for item in opened.data["attention"]] == ["review"]
    assert opened.data["material"]["integration"]["commit"] == opened.data["integration"]["commit"]
    assert "3 files changed" in opened.data["material"]["integration"]["stat"]
    asked = world.run("graph-review", "plan", "a", *CHANGES, "Say more.\nAnd better.", "--json")
    assert asked.code == 0, str(asked)
    assert (asked.data["decided"]["rework"], asked.data["decided"]["again"]) == (["a"], ["b"])
    assert asked.data["graph"]["state"] == "CHANGES_REQUESTED"
    assert (asked.data["review"]["state"], asked.data["review"]["subtasks"]) == ("CHANGES_REQUESTED", ["a"])
    assert {name: each["state"] for name, each in by_id(asked.data).items()} == {
        "a": "READY",
        "b": "WAITING",
        "c": "SUCCEEDED",
    }
    done = world.run("graph-run", "plan", "--integrate", "--json")
    assert done.code == 0, str(done)
    again = by_id(done.data)
    assert [
        (again[name]["attempt"], again[name]["verifiedCommit"] == first[name]["verifiedCommit"]) for name in "abc"
    ] == [
        (1, False),
        (2, False),
        (1, True),
    ]
    (_, pid, _), (turn, pid_again, prompt) = turns(world, "a")
    assert (turn, pid_again) == ("2", pid)
    assert "was reviewed, and changes are requested" in Path(prompt).read_text()
    assert "Say more.\nAnd better.\n" in Path(prompt).read_text()
    assert git(world.root, "show", f"{again['a']['verifiedCommit']}:f-a") == "turn 1\nturn 2"
    assert again["b"]["base"] == again["a"]["verifiedCommit"]
    assert (done.data["graph"]["state"], done.data["review"]) == ("INTEGRATED", None)
    assert world.run("graph-verify", "plan").code == 0
    approved = world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED", "--json")
    assert approved.code == 0, str(approved)
    assert approved.data["graph"]["state"] == "APPROVED"
    commit = done.data["integration"]["commit"]
    assert [(each["decision"], each["commit"], each.get("who", "user")) for each in decisions(world)] == [
        ("CHANGES_REQUESTED", first["a"]["verifiedCommit"], "user"),
        ("REVIEW_APPROVED", commit, "user"),
    ]
    assert world.user_state() == before
    # Nobody needs the idle agents any more.
    world.assert_nothing_left("plan")
    assert by_id(world.status("plan"))["a"]["session"]["state"] == "exited"
    assert (
        world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED", "--json").data["decided"]["recorded"]
        is False
    )


def test_an_approval_is_void_as_soon_as_a_head_moves(world: World) -> None:
    integrated(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED").code == 0
    assert world.status("plan")["graph"]["state"] == "APPROVED"
    redo = world.run("graph-resume", "plan", "a", "--redo", "--from", "base", "--json")
    assert redo.code == 0, str(redo)
    assert world.status("plan")["graph"]["state"] == "STOPPED"
    assert world.run("graph-run", "plan").code == 0
    data = world.status("plan")
    assert (data["graph"]["state"], data["review"]["current"], data["integration"]["current"]) == (
        "SUCCEEDED",
        False,
        False,
    )
    assert world.run("graph-run", "plan", "--integrate").code == 0
    assert world.status("plan")["graph"]["state"] == "INTEGRATED"


def test_an_agent_that_ends_with_its_turn_gets_a_whole_prompt_with_the_feedback_in_the_same_worktree(
    world: World,
) -> None:
    body = (
        'cat "$1" > prompt-$COORDINATE_AGENTS_ATTEMPT; echo $S >> "f-$S"; git add f-*; git commit -qm work; rm prompt-*'
    )
    program = world.agent(body.replace("prompt-$", f"{world.place}/prompt-$").replace("rm prompt-*", "true"))
    world.configure({"one": (program, "{promptFile}")})
    first = by_id(integrated(world, "id: plan\nsubtasks: [{id: a, spec: Write the line.}]\n"))["a"]
    assert world.run("graph-review", "plan", *CHANGES, "Write it twice.").code == 0
    done = world.run("graph-run", "plan", "--integrate", "--json")
    assert done.code == 0, str(done)
    again = by_id(done.data)["a"]
    assert (again["attempt"], again["worktree"], again["base"]) == (1, first["worktree"], first["base"])
    assert git(world.root, "show", f"{again['verifiedCommit']}:f-a") == "a\na"
    prompt = (world.place / "prompt-1").read_text()
    for words in ("Write the line.", first["verifiedCommit"], "Write it twice.", "words of a person"):
        assert words in prompt


def test_a_rework_that_changes_nothing_is_refused_until_a_person_finds_that_nothing_need_change(world: World) -> None:
    staying(world, f'if [ "$TURN" = 1 ]; then {ADDS}; else : > "$COORDINATE_AGENTS_SUBMIT_FILE"; fi')
    reviewed = by_id(integrated(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n"))["a"]["verifiedCommit"]
    assert world.run("graph-review", "plan", "a", *CHANGES, "More.").code == 0
    done = world.run("graph-run", "plan", "--json")
    refused = by_id(done.data)["a"]
    assert (done.code, refused["state"], refused["failure"]["code"]) == (4, "FAILED", "EVIDENCE_REJECTED")
    words = f"no new commit since a review of {reviewed[:12]} asked for changes"
    assert words in refused["failure"]["message"]
    looked = world.run("graph-check", "plan", "a", "--json")
    checked = by_id(looked.data)["a"]
    assert (looked.code, checked["state"], checked["verifiedCommit"]) == (0, "SUCCEEDED", reviewed)
    assert "nothing changed since a review asked for changes" in checked["reason"]


def test_a_review_of_what_moved_since_or_is_dirty_is_refused_and_decides_nothing(world: World) -> None:
    data = integrated(world)
    commit, place = data["integration"]["commit"], data["integration"]["worktree"]
    approve = ("--decision", "REVIEW_APPROVED")
    assert refusal(world, "plan", *approve, "--commit", "0" * 40)[1] == "TASK_STATE_CONFLICT"
    Path(place, "README.md").write_text("edited by hand\n")
    assert refusal(world, "plan", *approve)[1] == "DIRTY_WORKTREE"
    git(Path(place), "commit", "-qam", "by hand")
    code, name, message = refusal(world, "plan", *approve)
    assert (code, name) == (1, "TASK_STATE_CONFLICT")
    assert "its branch stands at" in message
    git(Path(place), "reset", "-q", "--hard", commit)
    b = by_id(data)["b"]["worktree"]
    git(Path(b), "commit", "-q", "--allow-empty", "-m", "one more")
    assert "subtask b was verified at" in refusal(world, "plan", *approve)[2]
    git(Path(b), "reset", "-q", "--hard", "HEAD~1")
    Path(b, "left.txt").write_text("x")
    assert refusal(world, "plan", "b", *approve)[1] == "DIRTY_WORKTREE"
    Path(b, "left.txt").unlink()
    assert decisions(world) == []
    assert world.run("graph-review", "plan", *approve, "--commit", commit[:12]).code == 0


def test_a_decision_after_another_integration_than_the_one_that_was_opened_is_stale(world: World) -> None:
    integrated(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-review", "plan").code == 5
    assert world.run("graph-resume", "plan", "a", "--redo", "--from", "base").code == 0
    assert refusal(world, "plan", "--decision", "REVIEW_APPROVED")[1] == "TASK_STATE_CONFLICT"
    assert world.run("graph-run", "plan", "--integrate").code == 0
    assert "The review is stale" in refusal(world, "plan", "--decision", "REVIEW_APPROVED")[2]
    assert world.run("graph-review", "plan").code == 5
    assert world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED").code == 0


def test_what_a_reviewing_agent_prints_or_runs_is_no_decision(world: World) -> None:
    # EV-16: each reviewer prints one of these, and tries to approve by itself.
    printed = (
        "I cannot **APPROVE** this",
        "**VERDICT: APPROVE**",
        "## Verdict\nREVISE ... once fixed I would approve",
        "verdict: commented",
        "",
    )
    for number, words in enumerate(printed):
        (world.place / f"words-r{number}").write_text(words)
    program = world.agent(
        f"cat {world.place}/words-$S\n"
        f"{World.command()[0]} graph-review plan --decision REVIEW_APPROVED --root {world.root}"
        f" > {world.place}/said-$S 2>&1 || true",
        "reviewer",
    )
    world.configure({"one": (ONE_COMMIT,), "reviewer": (program,)})
    reviewers = "".join(
        f", {{id: r{number}, spec: Review a., agent: reviewer, dependsOn: a, writes: []}}"
        for number in range(len(printed))
    )
    integrated(world, f"id: plan\nsubtasks: [{{id: a, spec: x}}{reviewers}]\n")
    for number in range(len(printed)):
        assert "AGENT_MAY_NOT" in (world.place / f"said-r{number}").read_text()
    for words in printed:
        assert world.run("graph-review", "plan", "--decision", words or "APPROVED").code == 2
    assert decisions(world) == []
    assert world.status("plan")["graph"]["state"] == "INTEGRATED"


def test_changes_of_nobody_in_particular_go_to_the_only_last_subtask_or_are_refused(world: World) -> None:
    integrated(world, "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n")
    code, name, message = refusal(world, "plan", *CHANGES, "More.")
    assert (code, name) == (2, "INVALID_USAGE")
    assert "a, b" in message or "a and b" in message
    assert refusal(world, "plan", "a", "--decision", "CHANGES_REQUESTED")[1] == "INVALID_USAGE"
    asked = world.run("graph-review", "plan", "a", "--and", "b", *CHANGES, "More.", "--json")
    assert asked.data["decided"]["rework"] == ["a", "b"]


def test_a_dead_process_is_followed_by_one_that_knows_the_whole(world: World) -> None:
    staying(world)
    integrated(world, "id: plan\nsubtasks: [{id: a, spec: Write f-a.}]\n")
    psutil.Process(int(turns(world, "a")[0][1])).kill()
    assert world.run("graph-review", "plan", "a", *CHANGES, "Once more.").code == 0
    done = world.run("graph-run", "plan", "--json")
    assert done.code == 0, str(done)
    assert by_id(done.data)["a"]["attempt"] == 1
    turn, _, prompt = turns(world, "a")[1]
    assert turn == "1", "a process of its own"
    told = Path(prompt).read_text()
    assert "Write f-a." in told
    assert "Once more." in told


def test_a_running_driver_carries_the_decision_out(world: World) -> None:
    staying(world)
    world.hold("c")
    driver = world.start("graph-run", world.graph(CHAIN.replace("]\n", ", {id: c, spec: x, agent: one}]\n")))
    world.wait_for_start("c")
    waited = world.run("graph-wait", "plan", "--for", "b", "--timeout", "60s")
    assert waited.code == 0, str(waited)
    asked = world.run("graph-review", "plan", "a", *CHANGES, "More.", "--json")
    assert asked.code == 0, str(asked)
    assert refusal(world, "plan", "c", *CHANGES, "More.")[1] == "TASK_STATE_CONFLICT"
    waited = world.run("graph-wait", "plan", "--for", "b", "--timeout", "60s")
    assert waited.code == 0, str(waited)
    world.release("c")
    assert driver.wait(60) == 0
    assert {name: each["attempt"] for name, each in by_id(world.status("plan")).items()} == {"a": 1, "b": 2, "c": 1}
    assert len({pid for _, pid, _ in turns(world, "a")}) == 1


def test_an_approval_whose_process_died_is_finished_by_the_same_command(world: World) -> None:
    assert [point for point in POINTS if point.startswith("review.")] == ["review.recorded"]

    def story(world: World, dies: Dies) -> None:
        staying(world)
        integrated(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n")
        if dies("review.recorded", "graph-review", "plan", "--decision", "REVIEW_APPROVED"):
            assert world.status("plan")["graph"]["state"] == "APPROVED"
        assert world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED").code == 0
        assert len(decisions(world)) == 1

    both_ways(world, story)


def test_a_fresh_start_that_died_with_its_place_cleared_goes_on(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        world.configure({"one": (world.agent('echo more >> "f-$S"; git add -A; git commit -q -m "work of $S"'),)})
        integrated(world)
        assert world.run("graph-review", "plan", "a", *CHANGES, "More.").code == 0
        dies("worktree.cleared", "graph-run", "plan")
        done = world.run("graph-run", "plan", "--integrate", "--json")
        assert done.code == 0, str(done)
        again = by_id(done.data)
        assert (again["b"]["attempt"], again["b"]["base"]) == (2, again["a"]["verifiedCommit"])

    both_ways(world, story)
