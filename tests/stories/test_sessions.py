"""A person looks at, writes to, joins and closes the Sessions of a graph that runs."""

import json
import os
import pty
import select
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from world import EVENT_LIMIT_S, World, until

PLAN = "id: plan\nsubtasks: [{id: a, spec: x, checks: ['test -f f-a']}]\n"
# An agent that reads lines from its terminal before it makes its commit.
_TALKS = """
while read -r line; do
  echo "got:$line"
  case "$line" in
    go) echo work > "f-$S"; git add "f-$S"; git commit -qm work; exit 0 ;;
    leave) exit 9 ;;
  esac
done
"""


@pytest.fixture
def talking(world: World) -> Iterator[World]:
    """A graph in the background whose only agent waits for the word `go` on its terminal."""
    world.configure({"talks": (world.agent("echo started; " + _TALKS.strip(), "talks"),)}, default="talks")
    driver = world.start("run", world.graph(PLAN))
    until(lambda: world.run("session-read", "plan/a").code == 0 or None, "the agent's Session is there")
    until(lambda: "started" in world.run("session-read", "plan/a").out or None, "the agent runs")
    yield world
    if driver.poll() is None:
        world.run("stop", "plan")
    driver.wait(60)
    world.assert_nothing_left("plan")


class Attached:
    """session-attach on a terminal of its own."""

    def __init__(self, world: World, *words: str) -> None:
        self.world = world
        self.shown = b""
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            World.command("session-attach", *words),
            cwd=world.root,
            env=world.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: bytes) -> None:
        os.write(self._ours, text)

    def until_shown(self, text: bytes) -> None:
        end = time.monotonic() + EVENT_LIMIT_S
        while text not in self.shown:
            assert time.monotonic() < end, f"{text!r} is not in {self.shown!r}"
            if select.select([self._ours], [], [], 0.2)[0]:
                self.shown += os.read(self._ours, 65536)

    def leave(self) -> int:
        """The detach key; the exit code."""
        self.type(b"\x1d")
        return self.end()

    def end(self) -> int:
        end = time.monotonic() + EVENT_LIMIT_S
        while self.process.poll() is None:
            assert time.monotonic() < end, "session-attach does not end"
            if select.select([self._ours], [], [], 0.05)[0]:
                self._read()
        self._read()
        os.close(self._ours)
        return self.process.wait()

    def _read(self) -> None:
        try:
            while select.select([self._ours], [], [], 0)[0] and (data := os.read(self._ours, 65536)):
                self.shown += data
        except OSError:  # Linux: EIO when the other side closed
            return


# A program that reads its terminal and says nothing for a while is taken for one that asks something.
FREE = ("working", "awaiting-input")


def _phase(world: World, *wanted: str) -> str:
    def look() -> str | None:
        phase = world.status("plan")["subtasks"][0]["phase"]
        return phase if phase in wanted else None

    return until(look, f"the subtask's phase is {wanted}")


def _state(world: World) -> str:
    return str(world.status("plan")["subtasks"][0]["state"])


def test_a_running_subtask_s_session_is_known_by_both_names(talking: World) -> None:
    by_name = talking.run("session-status", "plan/a", "--json").data
    session = by_name["session"]
    assert talking.run("session-status", session["id"], "--json").data["session"]["pid"] == session["pid"]
    status = talking.status("plan")["subtasks"][0]
    assert (session["taskId"], session["subtaskId"], session["agent"]) == ("plan", "a", "talks")
    assert (session["state"], session["cwd"]) == ("busy", status["worktree"])
    assert by_name["subtask"]["worktree"] == status["worktree"]
    assert (by_name["turn"]["id"], by_name["turn"]["outcome"]) == ("t0", None)
    assert status["session"]["id"] == session["id"]
    assert (status["session"]["taskId"], status["session"]["subtaskId"]) == ("plan", "a")
    inspected = talking.run("inspect", "plan", "a", "--json").data
    assert inspected["session"]["pid"] == session["pid"]
    assert inspected["session"]["resolvedCommand"] == str(talking.place / "talks.sh")
    screen = talking.run("inspect", "plan", "a", "--part", "screen").out
    assert screen.splitlines() == ["started"]
    assert [each["id"] for each in talking.run("session-list", "plan", "--json").data["sessions"]] == [session["id"]]


def test_what_a_person_writes_leads_to_verified_work(talking: World) -> None:
    assert talking.run("session-write", "plan/a", "go", "--submit").code == 0
    until(lambda: _state(talking) == "SUCCEEDED" or None, "the subtask succeeds")
    data = talking.run("session-inspect", "plan/a", "--json").data
    verified = talking.status("plan")["subtasks"][0]["verifiedCommit"]
    assert data["session"]["state"] == "exited"
    assert data["subtask"]["verifiedCommit"] == data["subtask"]["evidence"]["commit"] == verified
    assert "got:go" in data["output"]


def test_every_event_of_a_session_carries_both_ids(talking: World) -> None:
    talking.run("session-write", "plan/a", "go", "--submit")
    until(lambda: _state(talking) == "SUCCEEDED" or None, "the subtask succeeds")
    database = talking.root / ".git" / "coordinate-agents" / "state.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT type, graph_id, subtask_id, session_id, data FROM events").fetchall()
    connection.close()
    of_sessions = [row for row in rows if "session" in json.loads(row[4] or "{}")]
    assert {row[0] for row in of_sessions} == {"SessionStarting", "SessionStarted", "TurnEnded", "CommandStarting"}
    assert {row[1:3] for row in of_sessions} == {("plan", "a")}
    assert all(row[3] and row[3].startswith("plan.a.a1") for row in of_sessions)


def test_closing_a_subtask_s_session_is_seen_by_its_driver(talking: World) -> None:
    data = talking.run("session-close", "plan/a", "--json").data
    assert data["survivors"] == []
    until(lambda: _state(talking) == "STOPPED" or None, "the subtask is stopped")


def test_joined_and_writing_the_subtask_is_held_until_the_person_leaves(talking: World) -> None:
    joined = Attached(talking, "plan/a")
    joined.until_shown(b"started")
    _phase(talking, "held")
    joined.type(b"hello\r")
    joined.until_shown(b"got:hello")
    assert joined.leave() == 0
    assert b"runs on" in joined.shown
    _phase(talking, *FREE)
    assert _state(talking) == "RUNNING"
    phases = [
        event["data"]["phase"]
        for event in talking.run("events", "plan", "--json").data["events"]
        if event["type"] == "PhaseChanged"
    ]
    assert "held" in phases and phases[-1] in FREE


def test_a_person_finishes_the_work_while_joined(talking: World) -> None:
    joined = Attached(talking, "plan/a")
    joined.until_shown(b"started")
    joined.type(b"go\r")
    assert joined.end() == 0
    assert b"ended (exit code 0)" in joined.shown
    until(lambda: _state(talking) == "SUCCEEDED" or None, "the subtask succeeds")


def test_reading_only_holds_nothing_and_types_nothing(talking: World) -> None:
    joined = Attached(talking, "plan/a", "--read-only")
    joined.until_shown(b"started")
    joined.type(b"go\r")
    talking.run("session-write", "plan/a", "from elsewhere", "--submit")
    joined.until_shown(b"got:from elsewhere")
    assert _phase(talking, *FREE, "held") in FREE
    assert joined.leave() == 0
    assert b"got:go" not in joined.shown


def test_a_hold_ends_with_the_person_s_terminal_however_it_ends(talking: World) -> None:
    joined = Attached(talking, "plan/a")
    joined.until_shown(b"started")
    _phase(talking, "held")
    joined.process.send_signal(signal.SIGKILL)
    joined.end()
    _phase(talking, *FREE)


def test_nothing_is_verified_while_a_person_is_joined_after_a_driver_came_back(talking: World, tmp_path: Path) -> None:
    joined = Attached(talking, "plan/a")
    joined.until_shown(b"started")
    _phase(talking, "held")
    driver = talking.status("plan")["graph"]["driver"]["pid"]
    os.kill(driver, signal.SIGKILL)
    until(lambda: talking.status("plan")["graph"]["driver"] is None or None, "the driver is gone")
    again = talking.start("run", "plan")
    until(lambda: talking.status("plan")["graph"]["driver"] is not None or None, "another driver drives")
    assert _phase(talking, "held") == "held"
    assert joined.leave() == 0
    _phase(talking, *FREE)
    talking.run("session-write", "plan/a", "go", "--submit")
    assert again.wait(60) == 0, talking.said()
