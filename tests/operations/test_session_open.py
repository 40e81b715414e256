"""session-open: one healthy terminal per scope, never another agent's program, never a second agent in a worktree."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from terminals import terminal_agent
from world import ONE_COMMIT, Done, World, until


@pytest.fixture
def place(world: World) -> Iterator[World]:
    """A world with the agents `term` and `other`; every Session is closed at the end."""
    world.configure({"term": (terminal_agent(world),), "other": (terminal_agent(world, "other"),)}, default="term")
    yield world
    for session in world.run("session-list", "--json").data["sessions"]:
        assert world.run("session-close", session["id"], "--now", "--bound", "5s").code == 0


def _open(world: World, *words: str) -> Any:
    done = world.run("session-open", *words, "--json")
    assert done.code == 0, str(done)
    return done.data


def _is_refused(done: Done, following: str) -> None:
    error = done.document["error"]
    assert (done.code, error["code"], error["next"]) == (1, "SESSION_STATE_CONFLICT", following)
    assert error["message"].count("did not start") == 1


def test_a_terminal_opens_in_the_checkout_and_says_who_it_is(place: World) -> None:
    data = _open(place)
    session = data["session"]
    command = str(place.place / "term.sh")
    assert data["reused"] is False
    assert {name: session[name] for name in ("agent", "adapter", "command", "resolvedCommand", "commandSource")} == {
        "agent": "term",
        "adapter": "generic",
        "command": command,
        "resolvedCommand": command,
        "commandSource": "user",
    }
    assert (session["state"], session["driver"], session["degraded"]) == ("running", "pty", False)
    assert (session["cwd"], session["taskId"], session["subtaskId"]) == (str(place.root), None, None)
    assert Path(f"/proc/{session['pid']}").exists() and Path(f"/proc/{session['hostPid']}").exists()


def test_a_healthy_match_is_used_again_and_another_agent_gets_its_own(place: World) -> None:
    first = _open(place)["session"]
    again = _open(place)
    assert (again["reused"], again["session"]["id"], again["session"]["pid"]) == (True, first["id"], first["pid"])
    other = _open(place, "--agent", "other")
    assert other["reused"] is False
    assert other["session"]["resolvedCommand"] == str(place.place / "other.sh")


def test_another_effective_executable_of_the_same_agent_is_another_session(place: World) -> None:
    first = _open(place)["session"]
    place.configure({"term": (terminal_agent(place, "newer"),)}, default="term")
    second = _open(place)
    assert (second["reused"], second["session"]["id"] == first["id"]) == (False, False)
    assert second["session"]["resolvedCommand"] == str(place.place / "newer.sh")


def test_a_session_that_ended_is_not_used_again(place: World) -> None:
    first = _open(place)["session"]
    place.run("session-close", first["id"], "--now")
    second = _open(place)
    assert (second["reused"], second["session"]["id"] == first["id"]) == (False, False)


def test_two_opens_at_once_start_one_process(place: World) -> None:
    calls = [
        subprocess.Popen(
            World.command("session-open", "--json"), cwd=place.root, env=place.environment, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    assert [call.wait(60) for call in calls] == [0, 0, 0]
    for call in calls:
        assert call.stdout is not None
        call.stdout.close()
    assert len(place.run("session-list", "--json").data["sessions"]) == 1


def test_a_program_that_is_not_there_is_fatal_and_nothing_else_starts(place: World) -> None:
    place.configure({"term": ("/nowhere/agent",), "other": (terminal_agent(place, "other"),)}, default="term")
    done = place.run("session-open", "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "EXECUTABLE_NOT_FOUND")
    assert place.run("session-list", "--json").data["sessions"] == []


def test_a_subtask_s_worktree_gets_a_terminal_once_nobody_drives_it(place: World) -> None:
    place.configure({"one": (ONE_COMMIT,), "term": (terminal_agent(place),)}, default="one")
    assert place.run("run", place.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 0
    worktree = place.run("path", "plan", "a").out.strip()
    data = _open(place, "plan/a", "--agent", "term")
    session = data["session"]
    assert (session["cwd"], session["taskId"], session["subtaskId"]) == (worktree, "plan", "a")
    assert _open(place, "plan/a", "--agent", "term")["reused"] is True
    # Its own scope: the checkout's terminal is another one.
    assert _open(place, "--agent", "term")["session"]["id"] != session["id"]
    status = place.run("session-status", "plan/a", "--json").data
    assert status["session"]["id"] == session["id"]
    assert status["subtask"]["verifiedCommit"] == place.status("plan")["subtasks"][0]["verifiedCommit"]
    assert place.run("session-write", "plan/a", "pwd", "--keys", "Enter").code == 0
    until(lambda: worktree in place.run("session-read", "plan/a").out or None, "the terminal answers")
    events = place.run("graph-events", "plan", "a", "--json").data["events"]
    opened = [event for event in events if event["type"] == "SessionOpened"]
    assert [(each["taskId"], each["subtaskId"], each["sessionId"]) for each in opened] == [("plan", "a", session["id"])]
    assert opened[0]["data"]["agent"] == "term"
    assert place.status("plan")["graph"]["state"] == "SUCCEEDED"


def test_no_second_agent_is_opened_where_one_works(place: World) -> None:
    place.configure({"one": (ONE_COMMIT,), "term": (terminal_agent(place),)}, default="one")
    place.hold("a")
    driver = place.start("run", place.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    place.wait_for_start("a")
    done = place.run("session-open", "plan/a", "--agent", "term", "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT")
    assert done.document["error"]["sessionId"] == "plan.a.a1"
    same = _open(place, "plan/a")
    assert (same["reused"], same["session"]["id"]) == (True, "plan.a.a1")
    place.release("a")
    assert driver.wait(60) == 0, place.said()


def test_a_graph_s_attempt_waits_for_no_terminal_in_its_worktree_but_says_whose_it_is(place: World) -> None:
    place.configure({"failing": (place.agent("exit 1"),), "term": (terminal_agent(place),)}, default="failing")
    plan = place.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    assert place.run("run", plan).code == 4
    session = _open(place, "plan/a", "--agent", "term")["session"]["id"]
    done = place.run("run", "plan", "--retry-failed", "--json")
    assert done.code == 4, str(done)
    failure = done.data["subtasks"][0]["failure"]
    assert failure["code"] == "SESSION_STATE_CONFLICT"
    assert session in failure["message"] and failure["next"] == f"coordinate-agents session-close {session}"
    # A dispatch by hand is refused before it costs an attempt, of a failed one and of a ready one.
    before, close = done.data["subtasks"][0], f"coordinate-agents session-close {session}"
    _is_refused(place.run("task-dispatch", "plan", "--json"), close)
    assert place.status("plan")["subtasks"] == [before]
    assert place.run("resume", "plan").code == 0
    for words in (("task-dispatch", "plan"), ("dispatch", "plan", "a")):
        _is_refused(place.run(*words, "--json"), close)
    ready = place.status("plan")["subtasks"][0]
    assert (ready["state"], ready["attempt"]) == ("READY", before["attempt"])
    # Nor does a person's look: what stands there may change meanwhile.
    looked = place.run("check", "plan", "a", "--json").document["error"]
    assert (looked["code"], looked["next"]) == ("SESSION_STATE_CONFLICT", f"coordinate-agents session-close {session}")
    assert place.run("session-status", session, "--json").data["session"]["liveness"] == "live"


def test_a_subtask_that_never_started_has_no_place_for_a_terminal(place: World) -> None:
    place.run("create", place.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    done = place.run("session-open", "plan/a", "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT")
    assert done.document["error"]["next"] == "coordinate-agents graph-run plan"


def test_a_program_that_ends_at_once_is_not_said_to_be_open(place: World) -> None:
    place.configure({"short": ("/bin/sh", "-c", "echo no use; exit 4")}, default="short")

    def opened() -> object:
        done = place.run("session-open", "--json")
        session = done.data["session"]
        # It may still be alive for a moment when it is looked at.
        return (done.code, session["exitCode"]) if session["liveness"] == "ended" else None

    assert until(opened, "an end is seen at once") == (1, 4)


def test_what_is_said_at_the_opening_is_no_answer_to_what_the_program_asks_first(world: World) -> None:
    program = world.place / "asks.sh"
    program.write_text("#!/bin/sh\nprintf 'Do you trust this folder? [y/N] '; read a; echo \"answer=$a\"; cat\n")
    program.chmod(0o755)
    world.configure({"term": (program,)}, default="term")
    done = world.run("session-open", "--say", "do the work", "--json")
    assert (done.code, done.document["data"]["delivered"]) == (1, "false"), str(done)
    assert "trust dialog" in done.document["data"]["reason"]
    session = done.document["data"]["session"]["id"]
    again = world.run("session-open", "--say", "do the work", "--json").document["data"]
    assert (again["reused"], again["delivered"]) == (True, "false")
    assert "answer=" not in world.run("session-read", session).out
    assert world.run("session-answer", session, "--text", "n").code == 0
    assert world.run("session-open", "--say", "do the work", "--json").data["delivered"] == "true"
    shown = until(lambda: "do the work" in (out := world.run("session-read", session).out) and out, "it is shown")
    assert "answer=n" in shown
    assert world.run("session-close", session, "--now").code == 0
