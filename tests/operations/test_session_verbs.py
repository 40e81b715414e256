"""Reading, writing, answering, interrupting and closing a Session through the command line."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from terminals import terminal_agent
from world import Done, World, until


@dataclass(frozen=True)
class Open:
    """A world with one open terminal."""

    world: World
    id: str

    def run(self, verb: str, *words: str) -> Done:
        return self.world.run(f"session-{verb}", self.id, *words)

    def data(self, verb: str, *words: str) -> Any:
        return self.run(verb, *words, "--json").data

    def shows(self, text: str) -> Any:
        """What `session-read` says once the text is in it."""

        def look() -> Any:
            data = self.data("read")
            return data if text in data["output"] else None

        return until(look, f"the Session prints {text!r}")

    def say(self, line: str) -> None:
        done = self.run("write", line, "--submit")
        assert done.code == 0, str(done)


@pytest.fixture
def opened(world: World) -> Iterator[Open]:
    world.configure({"term": (terminal_agent(world),)}, default="term")
    found = Open(world, world.run("session-open", "--json").data["session"]["id"])
    found.shows("ready> ")
    yield found
    assert found.run("close", "--now", "--bound", "5s").code == 0


def test_what_is_written_arrives_and_is_read_from_the_cursor_on(opened: Open) -> None:
    before = opened.shows("ready> ")["nextCursor"]
    opened.say("hello there")
    opened.shows("got:hello there\nready> ")
    data = opened.data("read", "--cursor", str(before))
    assert data["cursor"] == before
    assert data["output"].splitlines() == ["hello there", "got:hello there", "ready> "]
    assert (data["droppedBytes"], data["truncated"]) == (0, False)
    nothing = opened.data("read", "--cursor", str(data["nextCursor"]))
    assert (nothing["output"], nothing["nextCursor"]) == ("", data["nextCursor"])


def test_a_read_is_bounded_and_goes_on_where_it_stopped(opened: Open) -> None:
    opened.say("one")
    opened.shows("got:one\nready> ")
    pieces, cursor = [], 0
    for _ in range(40):
        data = opened.data("read", "--cursor", str(cursor), "--max-bytes", "7")
        pieces.append(data["output"])
        cursor = data["nextCursor"]
        if not data["truncated"]:
            break
    assert "".join(pieces).splitlines() == ["ready> one", "got:one", "ready> "]
    assert len(opened.data("read", "--cursor", "0", "--max-lines", "1")["output"].splitlines()) == 1


def test_a_read_waits_for_output_that_is_not_there_yet(opened: Open) -> None:
    cursor = opened.shows("ready> ")["nextCursor"]
    reader = subprocess.Popen(
        World.command("session-read", opened.id, "--cursor", str(cursor), "--wait", "20s"),
        cwd=opened.world.root,
        env=opened.world.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    opened.say("late")
    out, _ = reader.communicate(timeout=30)
    assert out.startswith("late")


def test_following_ends_with_the_session_and_breaks_no_line(opened: Open) -> None:
    follower = subprocess.Popen(
        World.command("session-read", opened.id, "--cursor", "0", "--follow"),
        cwd=opened.world.root,
        env=opened.world.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    opened.say("first")
    opened.shows("got:first\nready> ")
    opened.say("quit 3")
    out, _ = follower.communicate(timeout=30)
    assert out.splitlines() == ["ready> first", "got:first", "ready> quit 3"]
    assert opened.data("status")["session"]["exitCode"] == 3


def test_the_end_is_readable_and_nothing_can_be_written_any_more(opened: Open) -> None:
    opened.say("quit 7")
    until(lambda: opened.data("status")["session"]["state"] == "exited" or None, "the Session ends")
    data = opened.data("read", "--cursor", "0")
    assert (data["ended"], data["session"]["exitCode"], data["output"][:7]) == (True, 7, "ready> ")
    for words in (("write", "x"), ("interrupt",), ("answer", "--text", "x")):
        done = opened.run(words[0], *words[1:], "--json")
        assert (done.code, done.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT"), words
        assert done.document["error"]["next"] == f"coordinate-agents session-read {opened.id}"


def test_text_comes_from_standard_input(opened: Open) -> None:
    subprocess.run(
        World.command("session-write", opened.id, "-", "--submit"),
        input=b"from a pipe",
        cwd=opened.world.root,
        env=opened.world.environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    opened.shows("got:from a pipe\n")


def test_named_keys_are_pressed_and_others_are_refused(opened: Open) -> None:
    assert opened.run("write", "keyed", "--keys", "Enter").code == 0
    opened.shows("got:keyed\n")
    done = opened.run("write", "--keys", "Hyper-x", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "INVALID_USAGE")


@pytest.mark.parametrize("words", [(), ("--submit",), ("--keys", " ")])
def test_nothing_to_write_is_bad_usage(opened: Open, words: tuple[str, ...]) -> None:
    done = opened.run("write", *words, "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "INVALID_USAGE")


def test_text_that_is_too_long_is_refused_whole(opened: Open) -> None:
    done = subprocess.run(
        World.command("session-write", opened.id, "-", "--json"),
        input=b"x" * (256 * 1024 + 1),
        cwd=opened.world.root,
        env=opened.world.environment,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 2
    assert opened.data("read", "--cursor", "0")["output"] == "ready> "


def test_a_question_is_shown_and_a_stale_answer_is_refused(opened: Open) -> None:
    opened.say("ask")
    session = until(lambda: ((s := opened.data("status")["session"])["question"] and s) or None, "the question is seen")
    question = session["question"]
    assert (session["state"], question["kind"]) == ("awaiting-input", "yes-no")
    assert question["text"].rstrip().endswith("Go on? [y/N]")
    stale = opened.run("answer", "--request", "q-000000000000", "--allow", "--json")
    assert (stale.code, stale.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT")
    assert "answer=" not in opened.data("read")["output"]
    assert opened.run("answer", "--request", question["request"], "--allow").code == 0
    opened.shows("answer=y\n")
    again = opened.run("answer", "--request", question["request"], "--allow", "--json")
    assert (again.code, again.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT")


def test_an_answer_without_a_question_types_nothing(opened: Open) -> None:
    done = opened.run("answer", "--deny", "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT")
    assert opened.data("read", "--cursor", "0")["output"] == "ready> "


def test_an_interrupt_reaches_the_program(opened: Open) -> None:
    assert opened.run("interrupt").code == 0
    session = until(
        lambda: ((s := opened.data("status")["session"])["state"] == "exited" and s) or None,
        "the program is interrupted",
    )
    assert session["signal"] == 2


def test_the_screen_is_what_a_person_would_see(opened: Open) -> None:
    opened.say("seen")
    opened.shows("got:seen\nready> ")
    screen = opened.data("inspect", "--screen")["screen"]
    assert [line for line in screen["lines"] if line] == ["ready> seen", "got:seen", "ready>"]
    assert (screen["row"], screen["column"], screen["isAlternate"]) == (2, 7, False)
    assert "got:seen" in opened.run("inspect", "--screen").out


def test_closing_ends_everything_and_closing_twice_is_no_error(opened: Open) -> None:
    pid = opened.data("status")["session"]["pid"]
    data = opened.data("close", "--bound", "5s")
    assert (data["survivors"], data["wasLive"], data["session"]["state"]) == ([], True, "exited")
    assert not any(str(pid) in line.split() for line in opened.world.processes())
    again = opened.data("close")
    assert (again["survivors"], again["wasLive"]) == ([], False)


def test_what_an_agent_prints_cannot_act_on_a_person_s_terminal(opened: Open) -> None:
    opened.say("sequences")
    opened.shows("after\n")
    for verb in ("read", "inspect", "status"):
        assert "\x1b" not in opened.run(verb).out, verb
        assert "\x07" not in opened.run(verb).out, verb


def test_the_list_shows_what_lives_and_counts_what_ended(opened: Open) -> None:
    assert [each["id"] for each in opened.world.run("session-list", "--json").data["sessions"]] == [opened.id]
    opened.run("close", "--now")
    assert opened.world.run("session-list", "--json").data == {"sessions": [], "ended": 1}
    assert [each["id"] for each in opened.world.run("session-list", "--all", "--json").data["sessions"]] == [opened.id]


@pytest.mark.parametrize("word", ["nobody", "../../etc", "a/b", "/x", "x/", ""])
def test_a_word_that_means_no_session_is_an_error_that_leads_on(world: World, word: str) -> None:
    done = world.run("session-status", word, "--json")
    assert done.document["error"]["code"] in ("SESSION_NOT_FOUND", "TASK_NOT_FOUND", "INVALID_USAGE"), str(done)
    assert done.document["error"]["next"].startswith("coordinate-agents ")


def test_inside_an_agent_only_looking_is_allowed(opened: Open) -> None:
    opened.world.environment["COORDINATE_AGENTS_SESSION"] = "other.x.a1"
    try:
        looks = [("status",), ("read",), ("inspect",)]
        assert [opened.run(*words).code for words in looks] == [0, 0, 0]
        changes = [("write", "x"), ("close",), ("interrupt",), ("answer", "--allow"), ("attach",)]
        codes = {opened.run(words[0], *words[1:], "--json").document["error"]["code"] for words in changes}
        assert codes == {"AGENT_MAY_NOT"}
        opening = opened.world.run("session-open", "--json")
        assert opening.document["error"]["code"] == "AGENT_MAY_NOT"
    finally:
        del opened.world.environment["COORDINATE_AGENTS_SESSION"]


def test_attaching_without_a_terminal_is_bad_usage(opened: Open) -> None:
    done = opened.run("attach", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "INVALID_USAGE")
    assert done.document["error"]["next"] == f"coordinate-agents session-read {opened.id} --follow"


def test_text_is_not_submitted_into_a_dialog(opened: Open) -> None:
    opened.say("trust")
    question = until(lambda: opened.data("status")["session"]["question"], "the dialog is seen")
    assert question["kind"] == "trust"
    done = opened.run("write", "do the work", "--submit", "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "SESSION_STATE_CONFLICT")
    guess = opened.run("answer", "--request", question["request"], "--allow", "--json")
    error = guess.document["error"]
    assert (guess.code, error["code"], question["answers"]) == (1, "UNSUPPORTED_CAPABILITY", [])
    assert "--option KEYS" in error["message"] and "Do you trust the files here?" in error["message"]
    assert "trusted=" not in opened.data("read")["output"]
    assert opened.run("answer", "--request", question["request"], "--option", "n Enter").code == 0
    opened.shows("trusted=n\n")


BYPASS = """#!/bin/sh
stty raw -echo
printf 'WARNING: Claude Code running in Bypass Permissions mode\\r\\n\\r\\n'
printf 'In Bypass Permissions mode, it will not ask.\\r\\n'
printf 'https://code.claude.com/docs/en/security\\r\\n\\r\\n'
printf '  \\342\\235\\257 1. No, exit\\r\\n    2. Yes, I accept\\r\\n\\r\\n'
printf 'Enter to confirm \\302\\267 Esc to cancel\\r\\n'
key=$(dd bs=1 count=1 2>/dev/null)
printf '\\033[2J\\033[Hpressed=%s\\r\\n' "$key"
sleep 600
"""


@pytest.mark.parametrize(("answer", "key"), [("--allow", "2"), ("--deny", "1")])
def test_a_known_dialog_is_answered_by_the_key_that_its_adapter_knows(world: World, answer: str, key: str) -> None:
    program = world.place / "claude.sh"
    program.write_text(BYPASS)
    program.chmod(0o755)
    agent = {"adapter": "claude", "command": str(program), "mode": "interactive", "permissions": "allow"}
    world.configure_text(json.dumps({"version": 1, "defaultAgent": "term", "agents": {"term": agent}}))
    opened = Open(world, world.run("session-open", "--json").data["session"]["id"])
    question = until(lambda: opened.data("status")["session"]["question"], "the dialog is seen")
    assert (question["kind"], question["answers"]) == ("permission", ["allow", "deny"])
    assert opened.run("answer", "--request", question["request"], answer).code == 0
    opened.shows(f"pressed={key}\n")
    assert opened.run("close", "--now", "--bound", "5s").code == 0


def test_the_last_activity_is_that_of_the_last_output_and_not_of_the_record(opened: Open) -> None:
    before = opened.data("status")["session"]["lastActivityAt"]
    opened.say("hello")
    opened.shows("got:hello\n")
    assert opened.data("status")["session"]["lastActivityAt"] > before
