"""Ways on after a trouble that others tell only the beginning of: another agent, a fresh base, a driver, a hold."""

import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from world import FIXTURES, ONE_COMMIT, World, git, until

pytestmark = pytest.mark.story

ONE = "id: plan\nsubtasks: [{id: a, spec: x}]\n"
FORK = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: [a, b]}]\n"
SAME = 'echo "$S" > same\necho "start $S $COORDINATE_AGENTS_ATTEMPT $$ $(pwd)" >> "$FAKE_LOG"\n'
SAME += 'git add -A\ngit commit -qm "work of $S"'


def _item(world: World, subtask: str = "a") -> Any:
    return next(item for item in world.status("plan")["subtasks"] if item["id"] == subtask)


def _states(world: World) -> dict[str, str]:
    return {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}


def _error(world: World, *words: str) -> tuple[str, str]:
    done = world.run(*words, "--json")
    assert done.code != 0, str(done)
    return done.document["error"]["code"], done.document["error"]["next"]


def test_another_agent_goes_on_in_the_kept_worktree_and_stays_the_subtask_s_agent(world: World) -> None:
    world.configure({"one": (world.agent("echo half > half; exit 3"),), "two": (ONE_COMMIT,)})
    assert world.run("graph-run", world.graph(ONE)).code == 4
    worktree = Path(_item(world)["worktree"])
    git(worktree, "add", "half")
    git(worktree, "commit", "-qm", "half of it")
    done = world.run("graph-resume", "plan", "a", "--agent", "two", "--run")
    assert done.code == 0, str(done)
    item = _item(world)
    assert (item["state"], item["attempt"], item["agent"]) == ("SUCCEEDED", 2, "two")
    assert set(world.files(item["verifiedCommit"])) >= {"half", "f-a"}
    world.assert_nothing_left("plan")


def test_a_person_begins_a_failed_subtask_anew_and_finds_again_what_it_had(world: World) -> None:
    first = 'if [ "$COORDINATE_AGENTS_ATTEMPT" = 1 ]; then echo x > old; git add old; git commit -qm old; echo y > left'
    body = f'{first}; exit 3; fi\necho "$S" > "f-$S"; git add -A; git commit -qm "work of $S"'
    world.configure({"one": (world.agent(body),)})
    assert world.run("graph-run", world.graph(ONE)).code == 4
    worktree = Path(_item(world)["worktree"])
    old = git(worktree, "rev-parse", "HEAD")
    done = world.run("graph-resume", "plan", "a", "--from", "base", "--run")
    assert done.code == 0, str(done)
    item = _item(world)
    assert git(world.root, "rev-parse", f"{item['verifiedCommit']}^") == git(world.root, "rev-parse", "main")
    assert set(world.files(item["verifiedCommit"])) == {*world.files("main"), "f-a"}
    discard = "refs/coordinate-agents/plan/a/discard-1"
    assert git(world.root, "show", f"{discard}:left") == "y"
    git(world.root, "merge-base", "--is-ancestor", old, discard)
    world.assert_nothing_left("plan")


def test_what_was_found_is_told_also_where_the_commit_cannot_be_pinned(world: World) -> None:
    """A ref that an agent puts where its pins go; without checks the facts are recorded with the judgement only."""
    pins = '"$(git rev-parse --git-common-dir)/refs/coordinate-agents/plan/a"'
    world.configure({"one": (world.agent(f"{SAME}\nrm -rf {pins}; git rev-parse HEAD > {pins}"),)})
    assert world.run("graph-run", world.graph(ONE)).code == 4
    item = _item(world)
    assert (item["failure"]["code"], item["head"]) == (
        "WORKTREE_CONFLICT",
        git(Path(item["worktree"]), "rev-parse", "HEAD"),
    )
    events = world.run("graph-events", "plan", "--json").data["events"]
    assert [event["type"] for event in events[-3:]] == ["FactsRecorded", "AttemptFailed", "DriveEnded"]


def test_a_base_conflict_is_what_wait_and_dispatch_say_with_the_verb_that_leads_out(world: World) -> None:
    world.configure({"one": (world.agent(SAME),)})
    plan = world.graph(FORK)
    assert [world.run("graph-run", plan, "--until", each).code for each in ("a", "b")] == [0, 0]
    following = "coordinate-agents graph-resolve plan c"
    assert _error(world, "graph-dispatch", "plan", "c") == ("BASE_CONFLICT", following)
    assert _error(world, "graph-dispatch", "plan", "c") == ("TASK_STATE_CONFLICT", following)
    assert world.run("graph-wait", "plan", "--timeout", "20s").code == 5
    assert world.run("graph-wait", "plan", "--for", "c", "--timeout", "20s").code == 5
    assert [line[1] for line in world.log_lines()] == ["a", "b"]
    world.assert_nothing_left("plan")


def test_a_live_driver_verifies_a_hand_fix_and_what_is_accepted_and_goes_on_with_what_waited(world: World) -> None:
    plan = """id: plan
subtasks:
  - {id: a, spec: x, agent: fails}
  - {id: b, spec: x, agent: two, checks: [{name: flaky, run: ['false']}]}
  - {id: c, spec: x, agent: two, dependsOn: [a, b]}
  - {id: z, spec: x, agent: two}
"""
    world.configure({"fails": (world.agent("echo half > half; exit 3"),), "two": (ONE_COMMIT,)}, default="two")
    world.hold("z")
    run = world.start("graph-run", world.graph(plan))
    world.wait_for_start("z")
    until(lambda: (_states(world)["a"], _states(world)["b"]) == ("FAILED", "FAILED") or None, "two fail")
    checked = world.run("graph-check", "plan", "a", "--json")
    assert (checked.code, _item(world)["failure"]["code"]) == (4, "EVIDENCE_REJECTED"), str(checked)
    worktree = Path(_item(world)["worktree"])
    git(worktree, "add", "half")
    git(worktree, "commit", "-qm", "by hand")
    assert world.run("graph-check", "plan", "a").code == 0
    accepted = world.run("graph-accept", "plan", "b", "--reason", "known flaky", "--waive", "flaky")
    assert accepted.code == 0, str(accepted)
    until(lambda: _states(world)["c"] == "SUCCEEDED" or None, "what waited for both is done by the same driver")
    assert world.status("plan")["graph"]["driver"]["pid"] == run.pid
    world.release("z")
    assert run.wait(60) == 0, world.said()
    assert [_item(world, each)["attempt"] for each in "abcz"] == [1, 1, 1, 1]
    world.assert_nothing_left("plan")


def test_recover_verifies_an_idle_agent_that_submitted_while_nobody_drove(world: World) -> None:
    script = world.place / "turn.sh"
    script.write_text(
        'while [ -e "$FAKE_GATES/a.hold" ]; do sleep 0.02; done\n'
        'echo x > f-a; git add -A; git commit -qm work; : > "$COORDINATE_AGENTS_SUBMIT_FILE"\n'
    )
    agent = f"{{adapter: generic, command: {FIXTURES / 'agents' / 'stays.py'}, mode: interactive, args: [{script}]}}"
    world.configure_text(f"version: 1\nagents:\n  one: {agent}\n")
    world.hold("a")
    run = world.start("graph-run", world.graph(ONE))
    until(lambda: "turn a 1" in world.log.read_text() or None, "its first turn begins")
    run.kill()
    run.wait(30)
    assert world.run("graph-recover", "plan", "--json").data["recover"]["changed"] == []
    world.release("a")
    done = until(lambda: _recovered(world), "it submits, and a recover sees it")
    assert done["subtasks"][0]["after"] == "succeeded"
    assert world.run("graph-stop", "plan").code == 0
    world.assert_nothing_left("plan")


def _recovered(world: World) -> Any:
    told = world.run("graph-recover", "plan", "--json").data["recover"]
    return told if told["changed"] else None


def test_recover_verifies_a_session_that_ended_before_its_start_was_recorded(world: World) -> None:
    world.run_dying("session.started", "graph-run", world.graph(ONE))
    until(lambda: ["end", "a"] in [line[:2] for line in world.log_lines()] or None, "its agent ends")
    until(lambda: not world.processes() or None, "its host ends", tell=world.processes)
    told = world.run("graph-recover", "plan", "--json").data["recover"]
    assert (told["changed"], told["subtasks"][0]["after"]) == (["a"], "succeeded")
    assert world.run("graph-recover", "plan", "--json").data["recover"]["changed"] == []
    assert len(world.log_lines()) == 2


def test_the_deadline_of_a_held_agent_stands_still(world: World) -> None:
    limit_s = 6
    world.hold("a")
    run = world.start("graph-run", world.graph(f"id: plan\nsubtasks: [{{id: a, spec: x, timeout: {limit_s}s}}]\n"))
    agent = psutil.Process(world.wait_for_start("a"))
    assert world.run("graph-hold", "plan", "a").code == 0
    assert agent.is_running(), "held too late to tell"
    over = time.monotonic() + limit_s + 1
    until(lambda: time.monotonic() > over or not agent.is_running() or None, "its limit is over")
    assert (agent.is_running(), _item(world)["phase"]) == (True, "held")
    world.release("a")
    assert world.run("graph-release", "plan", "a").code == 0
    assert run.wait(60) == 0, world.said()
    assert _item(world)["attempt"] == 1


def test_a_released_subtask_is_verified_only_with_a_slot(world: World) -> None:
    """Of one slot: while somebody else has it, the check that a hold cut short must not run."""
    plan = "id: plan\nmaxConcurrency: 1\nsubtasks: [{id: a, spec: x, checks: [[sh, %s]]}, {id: b, spec: x}]\n"
    waits = 'while [ -e "$FAKE_GATES/check.hold" ]; do sleep 0.02; done'
    check = world.agent(f'echo "check $S" >> "$FAKE_LOG"\n{waits}', "check")
    world.hold("check", "b")
    run = world.start("graph-run", world.graph(plan % check))
    until(lambda: ["check", "a"] in world.log_lines() or None, "its check runs")
    assert world.run("graph-hold", "plan", "a").code == 0
    world.wait_for_start("b")
    world.release("check")
    assert world.run("graph-release", "plan", "a").code == 0
    # Whoever drives has answered: what follows from the release at once is recorded.
    assert _item(world)["phase"] == "held"
    world.release("b")
    assert run.wait(60) == 0, world.said()
    told = [line[:2] for line in world.log_lines()]
    assert told[told.index(["start", "b"]) :] == [["start", "b"], ["end", "b"], ["check", "a"]]
    world.assert_nothing_left("plan")


def test_an_integration_branch_deleted_below_its_worktree_is_set_back_from_the_record(world: World) -> None:
    grows = 'echo "$COORDINATE_AGENTS_ATTEMPT" > "f-$S"; git add -A; git commit -qm "work of $S"'
    world.configure({"one": (world.agent(grows),)})
    assert world.run("graph-run", world.graph(ONE), "--integrate").code == 0
    branch = "refs/heads/coordinate-agents/plan/integration"
    commit = world.status("plan")["integration"]["commit"]
    git(world.root, "update-ref", "-d", branch)
    done = world.run("graph-integrate", "plan")
    assert done.code == 0, str(done)
    assert git(world.root, "rev-parse", branch) == commit
    git(world.root, "update-ref", "-d", branch)
    assert world.run("graph-resume", "plan", "a", "--redo").code == 0
    done = world.run("graph-run", "plan", "--integrate")
    assert done.code == 0, str(done)
    assert git(world.root, "rev-parse", branch) == world.status("plan")["integration"]["commit"] != commit
    world.assert_nothing_left("plan")


def test_a_conflict_whose_branch_was_deleted_can_still_be_given_up(world: World) -> None:
    world.configure({"one": (world.agent(SAME),)})
    plan = FORK.replace(", {id: c, spec: x, dependsOn: [a, b]}", "")
    assert world.run("graph-run", world.graph(plan), "--integrate").code == 5
    git(world.root, "update-ref", "-d", "refs/heads/coordinate-agents/plan/integration")
    done = world.run("graph-integrate", "plan", "--abort")
    assert done.code == 0, str(done)
    again = world.run("graph-integrate", "plan")
    assert again.code == 5, str(again)
