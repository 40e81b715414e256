"""Adapters are data: what each one would execute."""

import re

import pytest

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.adapters.base import phrase
from coordinate_agents.sessions.prompt import check_templates, deliver

VALUES = {"externalSession": "0-0-0-0"}


def test_names_are_those_of_the_configuration() -> None:
    assert sorted(ADAPTERS) == ["acp", "aider", "claude", "codex", "gemini", "generic", "opencode"]


@pytest.mark.parametrize(
    ("name", "permissions", "arguments"),
    [
        ("generic", None, ()),
        ("codex", None, ("exec", "--skip-git-repo-check", "--sandbox", "workspace-write", "-")),
        ("codex", "ask", ("exec", "--skip-git-repo-check", "-")),
        ("codex", "allow", ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-")),
        (
            "claude",
            "edits",
            ("-p", "--permission-mode", "acceptEdits", "--session-id", "{externalSession}"),
        ),
        ("claude", "deny", ("-p", "--permission-mode", "plan", "--session-id", "{externalSession}")),
        ("opencode", "edits", ("run", "--format", "json")),
        ("opencode", "allow", ("run", "--format", "json", "--auto")),
        ("gemini", None, ("--approval-mode", "auto_edit", "--prompt", "{prompt}")),
    ],
)
def test_arguments_follow_the_permission_mode(name: str, permissions: str | None, arguments: tuple[str, ...]) -> None:
    assert ADAPTERS[name].arguments(permissions) == arguments


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_adapter_delivers_a_prompt_exactly_once(name: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    adapter = ADAPTERS[name]
    arguments = adapter.arguments(None)
    check_templates(arguments)
    prompt_file = tmp_path / "s1" / "prompt.txt"
    found = deliver("do it", arguments, delivery=adapter.delivery, values=VALUES, prompt_file=prompt_file)
    ways = [
        found.arguments.count("do it"),
        found.stdin == b"do it",
        prompt_file.exists() and str(prompt_file) in found.arguments,
    ]
    assert sum(ways) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("generic", None),
        (
            "codex",
            ("exec", "--skip-git-repo-check", "--sandbox", "workspace-write", "resume", "{externalSession}", "-"),
        ),
        ("claude", ("-p", "--permission-mode", "acceptEdits", "--resume", "{externalSession}")),
        ("opencode", ("run", "--format", "json", "--session", "{externalSession}")),
        ("gemini", None),
        ("aider", None),
    ],
)
def test_a_further_turn_names_the_conversation(name: str, arguments: tuple[str, ...] | None) -> None:
    assert ADAPTERS[name].resume_arguments(None) == arguments


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("generic", ()),
        ("codex", ("--no-daemon", "--sandbox", "workspace-write")),
        ("claude", ("--session-id", "{externalSession}", "--permission-mode", "acceptEdits")),
    ],
)
def test_a_program_that_stays_has_arguments_of_its_own(name: str, arguments: tuple[str, ...]) -> None:
    assert ADAPTERS[name].interactive_arguments(None) == arguments


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_pattern_of_an_adapter_compiles_and_stays_alone(name: str) -> None:
    adapter = ADAPTERS[name]
    patterns = [rule.pattern for rule in (*adapter.questions, *adapter.limits)]
    if adapter.interactive is not None:
        rules = adapter.interactive.input
        patterns += [*rules.ready, *rules.acknowledged, *(rule.pattern for rule in rules.questions)]
        patterns += [*adapter.interactive.idle, *adapter.interactive.busy]
    for pattern in patterns:
        compiled = re.compile(pattern)
        assert compiled.search("") is None, "it would match output that says nothing"


def test_a_phrase_is_found_however_its_words_are_spaced() -> None:
    pattern = phrase("Trust this folder? (yes)")
    assert re.search(pattern, "Trustthisfolder?\n(yes)")
    assert re.search(pattern, "Trust  this folder? (yes)")
    assert not re.search(pattern, "Trust that folder? (yes)")
