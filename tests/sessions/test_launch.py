"""What an agent or a command is started with, from settings to a Launch."""

from pathlib import Path

import pytest

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.launch import Agents
from coordinate_agents.sessions.model import AgentSettings, CommandRequest, SessionId, TurnRequest


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
