"""One subtask's troubles, as a person meets them: resume, redo, check, accept, hold, tell, dispatch, recover."""

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from world import World, git, until

pytestmark = pytest.mark.story

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
_STARTS = 'echo "start $S $COORDINATE_AGENTS_ATTEMPT $$ $(pwd)" >> "$FAKE_LOG"'
GROWS = 'echo "$COORDINATE_AGENTS_ATTEMPT" >> "f-$S"\ngit add -A\ngit commit -qm "work of $S"'


def _states(world: World) -> dict[str, str]:
    return {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}


def _item(world: World, subtask: str) -> Any:
    return next(item for item in world.status("plan")["subtasks"] if item["id"] == subtask)


def _refused(world: World, *words: str) -> tuple[str, str]:
    done = world.run(*words, "--json")
    assert done.code != 0, str(done)
    error = done.document["error"]
    return error["code"], error["next"]


def _log(world: World) -> tuple[int, Any]:
    """The number of events, and everything in the database that a verb could have changed."""
    with sqlite3.connect(f"file:{world.root}/.git/coordinate-agents/state.db?mode=ro", uri=True) as database:
        tables = ["events", "graphs", "requests"]
        rows = [database.execute(f"SELECT * FROM {name}").fetchall() for name in tables]
    return len(rows[0]), rows


def _killed_run(world: World, plan: str = PLAN) -> Path:
    """A driver and its agent's host killed while the agent of `a` stands at its gate; the worktree of `a`."""
    world.hold("a")
    run = world.start("graph-run", world.graph(plan))
    agent = psutil.Process(world.wait_for_start("a"))
    host = agent.parent()
    assert host is not None
    os.kill(run.pid, signal.SIGKILL)
    run.wait(30)
    host.kill()
    until(lambda: not agent.is_running() or None, "the agent dies with its host")
    return Path(_item(world, "a")["worktree"])


def test_edits_that_nobody_saved_survive_a_killed_session_and_its_agent_is_told(world: World) -> None:
    """RC-05."""
    prompts = world.place / "prompts"
    waits = 'while [ -e "$FAKE_GATES/$S.hold" ]; do sleep 0.02; done'
    world.configure({"one": (world.agent(f'{_STARTS}\n{waits}\nprintf "%s\\n" "$1" >> {prompts}\n{GROWS}'),)})
    worktree = _killed_run(world)
    edits = {"README.md": "edited\n", "new.txt": "by hand\n"}
    for name, text in edits.items():
        (worktree / name).write_text(text)
    told = world.run("graph-recover", "plan", "--json")
    assert (told.code, told.data["recover"]["changed"]) == (0, ["a"]), str(told)
    assert _item(world, "a")["reason"].startswith("interrupted")
    assert world.run("graph-resume", "plan", "a", "--say", "keep my edits").code == 0
    assert {name: (worktree / name).read_text() for name in edits} == edits
    world.release("a")
    assert world.run("graph-resume", "plan", "--run").code == 0
    assert "keep my edits" in prompts.read_text()
    assert "It already holds 2 paths with changes that nobody committed" in prompts.read_text()
    files = world.files("coordinate-agents/plan/a")
    assert {name: files[name] for name in edits} == {name: text.strip() for name, text in edits.items()}
    world.assert_nothing_left("plan")


def test_recovering_again_writes_nothing_and_what_was_deleted_by_hand_is_said(world: World) -> None:
    """RC-03."""
    worktree = _killed_run(world)
    assert world.run("graph-recover", "plan").code == 0
    before = _log(world)
    again = world.run("graph-recover", "plan", "--json")
    assert (again.code, again.data["recover"]["changed"]) == (0, [])
    git(world.root, "worktree", "remove", "--force", "--force", worktree)
    git(world.root, "branch", "-D", "coordinate-agents/plan/a")
    done = world.run("graph-recover", "plan", "--json")
    assert done.data["recover"]["subtasks"][0]["problems"] == [
        f"worktree {worktree}: gone",
        "branch coordinate-agents/plan/a is gone",
    ]
    assert _log(world) == before
    world.release("a")
    assert world.run("graph-resume", "plan", "a", "--run").code == 0
    assert _states(world) == {"a": "SUCCEEDED", "b": "SUCCEEDED"}


def test_a_redo_begins_what_was_built_on_it_anew_and_sets_its_unsaved_work_aside(world: World) -> None:
    world.configure({"one": (world.agent(GROWS),)})
    assert world.run("graph-run", world.graph(PLAN)).code == 0
    before = {item["id"]: item["verifiedCommit"] for item in world.status("plan")["subtasks"]}
    (Path(_item(world, "b")["worktree"]) / "unsaved.txt").write_text("by hand\n")
    assert _refused(world, "graph-resume", "plan", "a", "--say", "more")[0] == "TASK_STATE_CONFLICT"
    done = world.run("graph-resume", "plan", "a", "--redo", "--json")
    assert done.data["resume"]["reset"] == ["a", "b"], str(done)
    assert world.run("graph-resume", "plan", "a", "--redo", "--json").data["resume"]["reset"] == []
    assert _refused(world, "graph-dispatch", "plan", "b")[0] == "TASK_STATE_CONFLICT"
    assert world.run("graph-run", "plan").code == 0
    again = {item["id"]: item for item in world.status("plan")["subtasks"]}
    assert again["b"]["base"] == again["a"]["verifiedCommit"] != before["a"]
    assert git(world.root, "show", "refs/coordinate-agents/plan/b/discard-1:unsaved.txt") == "by hand"
    git(world.root, "merge-base", "--is-ancestor", before["b"], "refs/coordinate-agents/plan/b/verified-1")
    assert world.run("graph-verify", "plan").code == 0
    world.assert_nothing_left("plan")


def test_a_hand_fix_is_verified_where_it_stands_and_starts_nothing(world: World) -> None:
    world.configure({"one": (world.agent("echo half > half; exit 3"),)})
    assert world.run("graph-run", world.graph(PLAN)).code == 4
    worktree = Path(_item(world, "a")["worktree"])
    done = world.run("graph-check", "plan", "a", "--json")
    assert done.code == 4, str(done)
    assert _item(world, "a")["failure"]["code"] == "EVIDENCE_REJECTED"
    git(worktree, "add", "half")
    git(worktree, "commit", "-qm", "by hand")
    done = world.run("graph-check", "plan", "a", "--json")
    assert (done.code, _states(world)) == (0, {"a": "SUCCEEDED", "b": "READY"}), str(done)
    assert [_item(world, "a")["attempt"], len(world.log_lines())] == [1, 0]
    before = _log(world)
    assert world.run("graph-check", "plan", "a").code == 0
    assert _log(world) == before
    git(worktree, "commit", "-q", "--allow-empty", "-m", "later")
    assert _refused(world, "graph-check", "plan", "a")[1] == "coordinate-agents graph-resume plan a --redo"


def test_a_check_of_a_subtask_that_was_cleaned_up_says_so(world: World) -> None:
    """Before, it ended with INTERNAL_ERROR for one that succeeded, and called one that failed never started."""
    plan = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, checks: [{name: bad, run: ['false']}]}]\n"
    assert world.run("graph-run", world.graph(plan)).code == 4
    assert world.run("graph-cleanup", "plan", "--early").code == 0
    before = _log(world)
    done = world.run("graph-check", "plan", "a", "--json")
    assert (done.code, _item(world, "a")["worktree"]) == (0, None), str(done)
    assert done.data["check"]["note"].startswith("nothing to do: subtask a succeeded with"), str(done)
    assert _refused(world, "graph-check", "plan", "b")[1] == "coordinate-agents graph-undo plan b"
    assert _log(world) == before
    assert world.run("graph-undo", "plan", "b").code == 0
    assert world.run("graph-check", "plan", "b").code == 4


def test_a_failing_check_is_accepted_with_a_reason_that_stands_in_the_certificate(world: World) -> None:
    plan = (
        "id: plan\nsubtasks: [{id: a, spec: x, checks: [{name: flaky, run: ['false']}, {name: ok, run: ['true']}]}]\n"
    )
    assert world.run("graph-run", world.graph(plan)).code == 4
    accept = ("graph-accept", "plan", "a", "--reason", "known flaky", "--waive")
    assert _refused(world, *accept, "clean")[0] == "EVIDENCE_REJECTED"
    assert _refused(world, *accept, "nothing")[0] == "INVALID_USAGE"
    world.environment["COORDINATE_AGENTS_SESSION"] = "plan.a.a1"
    assert _refused(world, *accept, "flaky")[0] == "AGENT_MAY_NOT"
    del world.environment["COORDINATE_AGENTS_SESSION"]
    (Path(_item(world, "a")["worktree"]) / "left").write_text("x")
    assert world.run(*accept, "flaky").code == 4
    (Path(_item(world, "a")["worktree"]) / "left").unlink()
    done = world.run(*accept, "flaky", "--json")
    assert done.code == 0, str(done)
    assert _item(world, "a")["evidence"]["waivers"] == [{"what": "check:flaky", "who": "user", "reason": "known flaky"}]
    assert [check["outcome"] for check in _item(world, "a")["evidence"]["checks"]] == ["failed", "passed"]
    verified = world.run("graph-verify", "plan", "--json")
    assert (verified.code, verified.data["certificates"][0]["waivers"]) == (0, ["check:flaky"]), str(verified)


def test_a_dispatched_subtask_is_verified_by_whoever_comes_next(world: World) -> None:
    plan = PLAN.replace("spec: x}", "spec: x, writes: [f-a]}").replace("]\n", ", {id: c, spec: x, writes: [f-a]}]\n")
    assert world.run("graph-create", world.graph(plan)).code == 0
    world.hold("a")
    started = world.run("graph-dispatch", "plan", "a", "--json")
    assert (started.code, started.data["dispatch"]["session"]) == (0, "plan.a.a1"), str(started)
    assert _refused(world, "graph-dispatch", "plan", "a")[0] == "TASK_ALREADY_RUNNING"
    conflict = world.run("graph-dispatch", "plan", "c", "--json").document["error"]
    assert (conflict["reason"], conflict["patterns"]) == ("WRITE_INTENT_CONFLICT", ["f-a", "f-a"])
    world.release("a")
    waited = world.run("graph-wait", "plan", "--for", "a", "--timeout", "60s")
    assert waited.code == 0, str(waited)
    assert _states(world) == {"a": "SUCCEEDED", "b": "READY", "c": "READY"}


def test_a_held_subtask_starts_only_after_its_release_whoever_drives(world: World) -> None:
    assert world.run("graph-create", world.graph(PLAN)).code == 0
    assert world.run("graph-hold", "plan", "b").code == 0
    assert world.run("graph-run", "plan").code == 4
    assert _states(world) == {"a": "SUCCEEDED", "b": "READY"}
    before = _log(world)
    assert world.run("graph-hold", "plan", "b").code == 0
    assert _log(world) == before
    assert _refused(world, "graph-dispatch", "plan", "b")[1] == "coordinate-agents graph-release plan b"
    assert world.run("graph-release", "plan", "b").code == 0
    assert world.run("graph-run", "plan").code == 0


def test_a_hold_of_a_running_subtask_outlives_its_driver_and_nothing_is_verified(world: World) -> None:
    world.hold("a")
    run = world.start("graph-run", world.graph(PLAN))
    world.wait_for_start("a")
    held = world.run("graph-hold", "plan", "a", "--json")
    assert held.code == 0, str(held)
    run.kill()
    run.wait(30)
    world.release("a")
    again = world.start("graph-run", "plan")
    until(lambda: ["end", "a"] in [line[:2] for line in world.log_lines()] or None, "the agent ends")
    until(lambda: world.status("plan")["graph"]["driver"], "another driver comes")
    assert (_item(world, "a")["state"], _item(world, "a")["phase"]) == ("RUNNING", "held")
    assert world.run("graph-release", "plan", "a").code == 0
    assert again.wait(60) == 0, world.said()


def test_words_to_an_agent_that_reads_nothing_are_its_next_turn(world: World) -> None:
    prompts = world.place / "prompts"
    wait = 'while [ -e "$FAKE_GATES/$S.hold" ]; do sleep 0.02; done'
    world.configure({"one": (world.agent(f'{_STARTS}\n{wait}\nprintf "%s\\n" "$1" >> {prompts}\n{GROWS}'),)})
    world.hold("a")
    run = world.start("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    world.wait_for_start("a")
    done = world.run("graph-tell", "plan", "a", "use tabs", "--json")
    assert (done.code, done.data["told"]) == (0, "queued"), str(done)
    world.release("a")
    assert run.wait(60) == 0, world.said()
    assert [line[:3] for line in world.log_lines()] == [["start", "a", "1"], ["start", "a", "1"]]
    assert prompts.read_text().count("use tabs") == 1
    assert _refused(world, "graph-tell", "plan", "a", "more")[0] == "TASK_STATE_CONFLICT"


def test_a_driver_resumes_on_request_what_failed_meanwhile(world: World) -> None:
    """SC-06: beside a live driver nothing starts twice, and who resumes is no second driver."""
    once = '[ "$COORDINATE_AGENTS_ATTEMPT" -ge 2 ] || exit 7'
    world.configure({"one": (world.agent(f"{once}\n{GROWS}"),), "two": (Path(__file__).parents[2] / _ONE,)})
    world.hold("b")
    run = world.start(
        "graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, agent: two}]\n")
    )
    world.wait_for_start("b")
    until(lambda: (_states(world)["a"] == "FAILED") or None, "a fails")
    done = world.run("graph-resume", "plan", "a", "--json")
    assert (done.code, done.data["resume"]["reset"]) == (0, ["a"]), str(done)
    until(lambda: (_states(world)["a"] == "SUCCEEDED") or None, "a is done again by the same driver")
    recovered = world.run("graph-recover", "plan", "--json")
    assert (recovered.code, recovered.data["recover"]["driver"]) == (0, run.pid)
    world.release("b")
    assert run.wait(60) == 0, world.said()
    assert _item(world, "a")["attempt"] == 2


_ONE = "fixtures/agents/fake_one_commit.sh"


def test_stopping_resuming_and_cleaning_up_a_finished_graph_twice_changes_nothing(world: World) -> None:
    """RC-07."""
    assert world.run("graph-run", world.graph(PLAN)).code == 0
    before = _log(world)
    for words in (("graph-stop",), ("graph-stop", "--drain"), ("graph-resume",), ("graph-recover",)):
        done = world.run(words[0], "plan", *words[1:])
        assert (done.code, "othing to " in done.out) == (0, True), str(done)
    assert _log(world) == before
    assert world.run("graph-cleanup", "plan").code == 0
    events = _log(world)[0]
    for words, said in (
        ("graph-cleanup", "here is no worktree"),
        ("graph-resume", "othing to "),
        ("graph-stop", "othing to "),
    ):
        done = world.run(words, "plan")
        assert (done.code, said in done.out) == (0, True), str(done)
    assert _log(world)[0] == events
    assert world.status("plan")["graph"]["state"] == "SUCCEEDED"


def test_a_changed_setting_that_runs_code_is_accepted_only_by_its_own_fingerprint(world: World) -> None:
    setting = 'git config core.sshCommand "ssh -v"'
    world.configure({"one": (world.agent(f"{GROWS}\n{setting}"),)})
    world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    seen = world.run("graph-inspect", "plan", "--json").data
    fingerprint = seen["sharedFingerprint"]
    assert world.run("graph-integrate", "plan").code == 5
    assert _refused(world, "graph-resume", "plan", "--accept-shared", "0" * 16)[0] == "SHARED_STATE_CHANGED"
    done = world.run("graph-resume", "plan", "--accept-shared", fingerprint, "--json")
    assert (done.code, done.data["attention"][0]["next"]) == (0, "coordinate-agents graph-integrate plan"), str(done)
    assert world.run("graph-integrate", "plan").code == 0


def test_a_brief_status_is_small_and_tells_what_changed(world: World) -> None:
    world.run("graph-create", world.graph(PLAN))
    first = world.run("graph-status", "plan", "--brief", "--json")
    cursor = first.data["cursor"]
    same = world.run("graph-status", "plan", "--since", str(cursor), "--wait", "100ms", "--json")
    assert (same.data["changed"], len(same.out.encode()) <= 1024) == (False, True)
    assert world.run("graph-run", "plan").code == 0
    then = world.run("graph-status", "plan", "--since", str(cursor), "--json").data
    assert [(each["id"], each["state"]) for each in then["subtasks"]] == [("a", "SUCCEEDED"), ("b", "SUCCEEDED")]
    git(world.root, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    assert world.status("plan")["graph"]["baseBehind"] == 1


def test_a_dependent_is_built_on_the_verified_commit_though_branch_and_worktree_are_gone(world: World) -> None:
    """SC-09."""
    assert world.run("graph-run", world.graph(PLAN), "--until", "a").code == 0
    verified = _item(world, "a")["verifiedCommit"]
    git(world.root, "worktree", "remove", "--force", "--force", _item(world, "a")["worktree"])
    git(world.root, "branch", "-D", "coordinate-agents/plan/a")
    assert world.run("graph-run", "plan").code == 0
    assert _item(world, "b")["base"] == verified


_CHAT = r"""
import os, subprocess, tty
tty.setraw(0)
os.write(1, b"> ")
words, turns = b"", 0
while data := os.read(0, 65536):
    words += data
    if not words.endswith(b"\r"):
        continue
    turns += 1
    with open(os.environ["FAKE_LOG"], "ab") as log:
        log.write(b"turn %d %s\n" % (turns, b"tabs" if b"use tabs" in words else b"prompt"))
    words = b""
    os.write(1, b"got it\r\n> ")
    if turns == 2:
        subprocess.run("echo x > made; git add -A; git commit -qm made", shell=True, check=True)
        with open(os.environ["COORDINATE_AGENTS_SUBMIT_FILE"], "w") as summary:
            summary.write("done")
"""


def test_words_to_a_program_that_reads_its_terminal_are_typed_now(world: World) -> None:
    chat = world.place / "chat.py"
    chat.write_text(f"#!{sys.executable}\n{_CHAT}")
    chat.chmod(0o755)
    world.configure_text(
        f"version: 1\nagents:\n  chat: {{adapter: generic, command: {chat}, mode: interactive, delivery: paste}}\n"
    )
    run = world.start("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    until(lambda: "turn 1 prompt" in world.log.read_text() or None, "the agent has its prompt")
    done = world.run("graph-tell", "plan", "a", "use tabs", "--json")
    assert (done.code, done.data["told"]) == (0, "now"), str(done)
    assert run.wait(60) == 0, world.said()
    assert world.log.read_text().splitlines() == ["turn 1 prompt", "turn 2 tabs"]
    assert world.run("graph-stop", "plan").code == 0
    world.assert_nothing_left("plan")
