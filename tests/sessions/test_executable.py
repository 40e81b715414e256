"""From a configured command to one file, or a refusal that names every place."""

import os
from pathlib import Path

import pytest

from coordinate_agents.sessions.agent import ResolvedExecutable
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.executable import resolve


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def find(command: str, *path: Path | str, root: Path | str = "/nonexistent") -> ResolvedExecutable:
    entries = os.pathsep.join(str(entry) for entry in path)
    return resolve(command, relative_to=str(root), path=entries, skip_below=(str(root),), source="agents.x.command")


def refusal(command: str, *path: Path | str, root: Path | str = "/nonexistent") -> SessionError:
    with pytest.raises(SessionError) as caught:
        find(command, *path, root=root)
    return caught.value


def test_name_is_found_in_the_first_place_of_the_path_that_has_it(tmp_path: Path) -> None:
    wanted = program(tmp_path / "b" / "agent")
    program(tmp_path / "c" / "agent")
    found = find("agent", tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert found == ResolvedExecutable("agent", str(wanted), "agents.x.command", str(wanted))


def test_path_with_a_slash_is_relative_to_the_root_and_may_be_odd(tmp_path: Path) -> None:
    wanted = program(tmp_path / "öd d" / "agent v1")
    assert find("./öd d/agent v1", root=tmp_path).path == str(wanted)
    assert find(str(wanted), root="/").path == str(wanted)


def test_link_is_followed_and_both_names_are_kept(tmp_path: Path) -> None:
    wanted = program(tmp_path / "lib" / "agent-1.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent").symlink_to(wanted)
    found = find("agent", tmp_path / "bin")
    assert (found.path, found.name) == (str(wanted), str(tmp_path / "bin" / "agent"))


def test_missing_command_names_every_place(tmp_path: Path) -> None:
    error = refusal("agent", tmp_path / "a", tmp_path / "b")
    assert error.code == "EXECUTABLE_NOT_FOUND"
    assert error.message == (
        f"The command 'agent' (agents.x.command) was not found. Looked at: {tmp_path}/a/agent: does not exist; "
        f"{tmp_path}/b/agent: does not exist."
    )


@pytest.mark.parametrize("command", ["", "a\0b"])
def test_command_that_is_no_name_is_refused(command: str) -> None:
    assert refusal(command, "/bin").code == "EXECUTABLE_NOT_FOUND"


def test_places_below_the_repository_and_relative_ones_are_not_looked_at(tmp_path: Path) -> None:
    program(tmp_path / "repo" / "bin" / "agent")
    (tmp_path / "link").symlink_to(tmp_path / "repo" / "bin")
    error = refusal("agent", tmp_path / "repo" / "bin", tmp_path / "link", "", "bin", root=tmp_path / "repo")
    assert error.code == "EXECUTABLE_NOT_FOUND"
    assert error.message.count("not looked at") == 4


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("#!/bin/sh\n", 0o644, "is not executable"),
        ("", 0o755, "is empty"),
        ("#!/no/such/interpreter -x\n", 0o755, "needs the interpreter /no/such/interpreter, which is missing"),
        ("#!/bin/sh\r\necho\r\n", 0o755, "has a carriage return in its first line"),
        ("#!\n", 0o755, "names no interpreter in its first line"),
    ],
)
def test_file_that_cannot_run_is_refused_and_no_later_one_is_taken(
    tmp_path: Path, text: str, mode: int, reason: str
) -> None:
    program(tmp_path / "a" / "agent", text, mode)
    program(tmp_path / "b" / "agent")
    error = refusal("agent", tmp_path / "a", tmp_path / "b")
    if os.geteuid() == 0 and mode == 0o644:
        assert "not executable" in error.message
    assert (error.code, reason in error.message) == ("EXECUTABLE_NOT_RUNNABLE", True)


def test_link_to_nothing_and_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    assert "a symbolic link to nothing" in refusal("./gone", root=tmp_path).message
    assert "is not a regular file" in refusal("./folder", root=tmp_path).message


def test_folder_of_that_name_on_the_path_does_not_hide_the_program(tmp_path: Path) -> None:
    (tmp_path / "a" / "agent").mkdir(parents=True)
    wanted = program(tmp_path / "b" / "agent")
    assert find("agent", tmp_path / "a", tmp_path / "b").path == str(wanted)
