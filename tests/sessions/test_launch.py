"""What an agent or a command is started with, from settings to a Launch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinate_agents.sessions.agent import AgentSettings, CommandRequest, TurnOutput, TurnReading, TurnRequest
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.launch import Agents
from coordinate_agents.sessions.model import SessionId, Usage


def program(folder: Path, name: str = "agent") -> str:
    path = folder / name
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return str(path)


def agents(tmp_path: Path, **environment: str) -> Agents:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    return Agents(tmp_path / "sessions", root=str(root), environment={"PATH": "/usr/bin:/bin", **environment})


def turn(tmp_path: Path, made: Agents, settings: AgentSettings, *, is_continuation: bool = False) -> TurnRequest:
    return TurnRequest(
        session_id=SessionId("g.t.a1"),
        agent=made.resolve(settings),
        prompt="Add the tables.",
        cwd=str(tmp_path),
        root=str(tmp_path / "root"),
        graph="g",
        subtask="t",
        identity={"COORDINATE_AGENTS_SUBTASK": "t"},
        marker="m" * 32,
        is_continuation=is_continuation,
    )


def test_agent_that_trusts_pwd_works_in_its_worktree(tmp_path: Path) -> None:
    made = agents(tmp_path, PWD="/somewhere/else")
    settings = AgentSettings(agent="a", adapter="generic", command=program(tmp_path))
    assert made.turn(turn(tmp_path, made, settings)).env["PWD"] == str(tmp_path)
    request = CommandRequest(SessionId("c"), ("true",), str(tmp_path), {}, "m" * 32, 1.0)
    assert made.command(request).env["PWD"] == str(tmp_path)


def test_prompt_is_the_last_argument_by_default(tmp_path: Path) -> None:
    made = agents(tmp_path)
    command = program(tmp_path)
    settings = AgentSettings(agent="a", adapter="generic", command=command, args=("--task",))
    assert made.turn(turn(tmp_path, made, settings)).argv == (command, "--task", "Add the tables.")


def test_continuation_uses_the_resume_arguments(tmp_path: Path) -> None:
    made = agents(tmp_path)
    command = program(tmp_path)
    settings = AgentSettings(
        agent="a", adapter="generic", command=command, args=("new",), resume_args=("again", "{prompt}")
    )
    assert made.resolve(settings).can_continue
    launch = made.turn(turn(tmp_path, made, settings, is_continuation=True))
    assert launch.argv == (command, "again", "Add the tables.")


def test_file_delivery_keeps_the_prompt_outside_the_worktree(tmp_path: Path) -> None:
    made = agents(tmp_path)
    settings = AgentSettings(
        agent="a", adapter="generic", command=program(tmp_path), args=("{promptFile}",), delivery="file"
    )
    launch = made.turn(turn(tmp_path, made, settings))
    path = tmp_path / "sessions" / "g.t.a1" / "prompt.md"
    assert launch.argv[1:] == (str(path),)
    assert path.read_text() == "Add the tables."
    assert path.stat().st_mode & 0o777 == 0o600
    assert launch.env["COORDINATE_AGENTS_PROMPT_FILE"] == str(path)


def test_configured_command_that_is_missing_is_never_replaced(tmp_path: Path) -> None:
    made = agents(tmp_path)
    with pytest.raises(SessionError) as raised:
        made.resolve(AgentSettings(agent="a", adapter="generic", command="/no/such/agy-proxy"))
    assert raised.value.code == "EXECUTABLE_NOT_FOUND"
    assert "/no/such/agy-proxy" in raised.value.message


def test_program_below_the_checkout_is_not_found_by_its_bare_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    program(root / "bin", "sneaky")
    made = agents(tmp_path, PATH=f"{root}/bin:/usr/bin")
    with pytest.raises(SessionError) as raised:
        made.resolve(AgentSettings(agent="a", adapter="generic", command="sneaky"))
    assert raised.value.code == "EXECUTABLE_NOT_FOUND"


def test_submitted_words_are_read_bounded_and_through_no_link(tmp_path: Path) -> None:
    made = agents(tmp_path)
    folder = tmp_path / "sessions" / "g.t.a1"
    folder.mkdir(parents=True)
    assert made.submitted(SessionId("g.t.a1")) == ""
    (folder / "submit").write_text(" done \n" + "x" * 9000)
    assert len(made.submitted(SessionId("g.t.a1"))) <= 2048
    (folder / "submit").unlink()
    (folder / "submit").symlink_to("/etc/passwd")
    assert made.submitted(SessionId("g.t.a1")) == ""


def interactive(tmp_path: Path, **more: Any) -> AgentSettings:
    return AgentSettings(
        **{"agent": "a", "adapter": "generic", "command": program(tmp_path), "mode": "interactive", **more}
    )


def test_program_that_stays_finds_its_prompt_in_a_file_and_is_typed_it_later(tmp_path: Path) -> None:
    made = agents(tmp_path)
    launch = made.turn(turn(tmp_path, made, interactive(tmp_path, args=("--stay",))))
    assert launch.argv[1:] == ("--stay",)
    assert launch.stdin is None
    assert launch.input is not None
    assert launch.env["COORDINATE_AGENTS_PROMPT_FILE"] == str(tmp_path / "sessions" / "g.t.a1" / "prompt.md")
    assert made.typed(SessionId("g.t.a1")) == "Add the tables."


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mode": None, "delivery": "paste"}, "delivery paste needs mode interactive"),
        ({"delivery": "stdin"}, "delivery stdin ends a program that stays"),
        ({"driver": "pipe"}, "mode interactive needs a terminal"),
    ],
)
def test_combination_in_which_no_prompt_could_arrive_is_refused(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(SessionError, match=said) as raised:
        agents(tmp_path).resolve(interactive(tmp_path, **more))
    assert raised.value.code == "INVALID_ADAPTER_CONFIG"


def test_adapter_that_cannot_be_typed_into_is_refused_as_a_program_that_stays(tmp_path: Path) -> None:
    with pytest.raises(SessionError) as raised:
        agents(tmp_path).resolve(interactive(tmp_path, adapter="gemini"))
    assert raised.value.code == "UNSUPPORTED_CAPABILITY"


def test_prompt_that_is_too_long_to_be_typed_starts_nothing(tmp_path: Path) -> None:
    made = agents(tmp_path)
    request = replace(turn(tmp_path, made, interactive(tmp_path)), prompt="x" * (256 * 1024 + 1))
    with pytest.raises(SessionError, match="too long to be typed"):
        made.turn(request)


def test_conversation_gets_an_id_of_its_session_alone(tmp_path: Path) -> None:
    made = agents(tmp_path)
    settings = AgentSettings(agent="a", adapter="claude", command=program(tmp_path))
    request = turn(tmp_path, made, settings)
    first, other = made.turn(request), made.turn(replace(request, marker="n" * 32))
    assert first.argv[-2] == "--session-id"
    assert first.argv[-1] != other.argv[-1]
    reading = made.reading(request.agent, request.session_id, marker=request.marker, tail="", has_failed=False, now=0.0)
    assert reading.external_session == first.argv[-1]
    again = made.turn(replace(request, is_continuation=True, external_session=reading.external_session))
    assert again.argv[-2:] == ("--resume", first.argv[-1])


def test_adapters_own_resume_arguments_do_not_follow_configured_arguments(tmp_path: Path) -> None:
    made = agents(tmp_path)
    resolved = made.resolve(AgentSettings(agent="a", adapter="claude", command=program(tmp_path), args=("-p",)))
    assert (resolved.resume_args, resolved.can_continue) == (None, False)


def test_turn_that_took_up_a_conversation_keeps_its_id(tmp_path: Path) -> None:
    made = agents(tmp_path)
    request = turn(tmp_path, made, AgentSettings(agent="a", adapter="claude", command=program(tmp_path)))
    reading = made.reading(
        request.agent, request.session_id, marker="other", tail="", has_failed=False, now=0.0, known="first"
    )
    assert reading.external_session == "first"


def test_idle_terminal_that_was_opened_for_no_turn_asks_nothing_by_reading_its_input(tmp_path: Path) -> None:
    """It waits for a person's next line; within a turn the same silence is a question."""
    made = agents(tmp_path)
    request = turn(tmp_path, made, AgentSettings("a", "generic", command=program(tmp_path), mode="interactive"))
    rules = [made.turn(replace(request, prompt=prompt)).input for prompt in ("", "Add the tables.")]
    assert [each is not None and each.silent_s for each in rules] == [0.0, 2.0]
    assert rules[0] is not None and [rule.kind for rule in rules[0].questions] == ["trust", "login", "yes-no"]


# Both draw only the letters that change, so no whole line was printed.
WORKS = "\x1b[2J\x1b[10;1H• Working on status 400\x1b[12;1H› Ask Codex to do anything"
REFUSED = "\x1b[10;1H■ unexpected status 401 Unauthorized: Incorrect API key."


def read(tmp_path: Path, adapter: str, output: TurnOutput | None, tail: str = "") -> TurnReading:
    made = agents(tmp_path)
    settings = AgentSettings("a", adapter, command=program(tmp_path), mode="interactive")
    return made.reading(
        made.resolve(settings), SessionId("g.t.a1"), marker="m", tail=tail, has_failed=False, now=0.0, output=output
    )


@pytest.mark.parametrize(
    ("before", "printed", "is_whole", "code"),
    [
        ("", WORKS + REFUSED, True, "AUTH_REQUIRED"),
        (WORKS, REFUSED, True, "AUTH_REQUIRED"),
        (WORKS + REFUSED, "\x1b[11;1H• Done.", True, None),  # an earlier turn's
        ("", WORKS + REFUSED, False, None),  # whose it is is not known
    ],
)
def test_refusal_that_is_drawn_in_this_turn_is_seen_on_the_screen(
    tmp_path: Path, before: str, printed: str, is_whole: bool, code: str | None
) -> None:
    assert read(tmp_path, "codex", TurnOutput(before, printed, is_whole), "•Working■unexp").code == code
    assert read(tmp_path, "codex", TurnOutput(before, printed, is_whole), REFUSED[7:]).code == "AUTH_REQUIRED"


def test_turn_of_a_program_that_stays_took_what_it_printed_in_it(tmp_path: Path) -> None:
    said = "\x1b[1mTokens: 2.3k sent, 120 received.\x1b[0m\r\n"
    output = TurnOutput(said, f"{said}Applied edit\r\n{said}> ", is_whole=True)
    assert read(tmp_path, "aider", output).usage == Usage(4600, None, 240)
    assert read(tmp_path, "aider", replace(output, is_whole=False)).usage is None
    assert read(tmp_path, "aider", None).usage is None
    # Of codex at a terminal such a line is anybody's.
    assert read(tmp_path, "codex", TurnOutput("", "tokens used 5\r\n", is_whole=True)).usage is None
