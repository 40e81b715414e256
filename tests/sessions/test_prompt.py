"""A prompt arrives whole or the start is refused."""

from pathlib import Path

import pytest

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Delivery
from coordinate_agents.sessions.prompt import Delivered, deliver

VALUES = {"worktree": "/w", "root": "/r", "graph": "g", "subtask": "a/b", "agent": "x", "session": "s1"}


def delivered(prompt: str, *args: str, delivery: Delivery = "argument", folder: Path = Path("/x")) -> Delivered:
    return deliver(prompt, args, delivery=delivery, values=VALUES, prompt_file=folder / "prompt.txt")


def code_of(prompt: str, *args: str, delivery: Delivery = "argument") -> str:
    with pytest.raises(SessionError) as caught:
        delivered(prompt, *args, delivery=delivery)
    return f"{caught.value.code}: {caught.value.message}"


def test_argument_delivery_without_a_template_puts_the_prompt_last() -> None:
    assert delivered("do it", "run", "--quiet") == Delivered(("run", "--quiet", "do it"))


def test_templates_are_filled_inside_arguments_and_the_prompt_is_never_expanded() -> None:
    found = delivered("use {worktree} {x}", "--in={worktree}", "-p", "{prompt}", "{graph}/{subtask}")
    assert found == Delivered(("--in=/w", "-p", "use {worktree} {x}", "g/a/b"))


def test_stdin_delivery_leaves_the_arguments_alone() -> None:
    assert delivered("do ✓", "run", delivery="stdin") == Delivered(("run",), "do ✓".encode())


def test_file_delivery_writes_a_file_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    found = delivered("do it", "--task", "{promptFile}", delivery="file", folder=folder)
    assert found == Delivered(("--task", str(folder / "prompt.txt")))
    assert (folder / "prompt.txt").read_text() == "do it"
    assert (folder / "prompt.txt").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_prompt_file_replaces_a_planted_link_instead_of_following_it(tmp_path: Path) -> None:
    (tmp_path / "s1").mkdir()
    (tmp_path / "s1" / "prompt.txt").symlink_to(tmp_path / "victim")
    delivered("do it", "{promptFile}", delivery="file", folder=tmp_path / "s1")
    assert not (tmp_path / "victim").exists()
    assert (tmp_path / "s1" / "prompt.txt").read_text() == "do it"


def test_longest_argument_passes_and_one_more_byte_is_refused() -> None:
    assert len(delivered("x" * 131_071).arguments[0]) == 131_071
    assert code_of("x" * 131_072) == (
        "SPAWN_FAILED: The agent was not started: prompt too long for argument delivery (limit 131071)."
    )
    assert "limit 131071" in code_of("é" * 65_536)
    assert delivered("x" * 200_000, delivery="stdin").stdin == b"x" * 200_000


@pytest.mark.parametrize("delivery", ["argument", "stdin", "file"])
def test_prompt_with_nul_is_refused(delivery: Delivery) -> None:
    assert code_of("a\0b", "{promptFile}", delivery=delivery).startswith("SPAWN_FAILED: ")


def test_unknown_template_is_refused_and_named() -> None:
    assert "{promt}, which is no known template" in code_of("x", "--p={promt}")


def test_braces_that_are_no_word_are_left_alone() -> None:
    assert delivered("x", '{"a": 1}', "{}", "${HOME:-{}}").arguments[:3] == ('{"a": 1}', "{}", "${HOME:-{}}")


def test_file_delivery_that_mentions_no_file_is_refused() -> None:
    assert code_of("x", "run", delivery="file").startswith("INVALID_ADAPTER_CONFIG: ")


def test_template_without_a_value_is_refused() -> None:
    assert "no value for {externalSession}" in code_of("x", "--resume", "{externalSession}")
