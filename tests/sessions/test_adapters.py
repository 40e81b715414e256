"""Adapters are data: what each one would execute."""

import pytest

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.prompt import check_templates, deliver


def test_names_are_those_of_the_configuration() -> None:
    assert sorted(ADAPTERS) == ["aider", "claude", "codex", "gemini", "generic", "opencode"]


@pytest.mark.parametrize(
    ("name", "permissions", "arguments"),
    [
        ("generic", None, ()),
        ("codex", None, ("exec", "--skip-git-repo-check", "--sandbox", "workspace-write", "-")),
        ("codex", "ask", ("exec", "--skip-git-repo-check", "-")),
        ("codex", "allow", ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-")),
        ("claude", "edits", ("-p", "--permission-mode", "acceptEdits")),
        ("claude", "deny", ("-p", "--permission-mode", "plan")),
        ("opencode", "allow", ("run",)),
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
    found = deliver("do it", arguments, delivery=adapter.delivery, values={}, prompt_file=prompt_file)
    ways = [
        found.arguments.count("do it"),
        found.stdin == b"do it",
        prompt_file.exists() and str(prompt_file) in found.arguments,
    ]
    assert sum(ways) == 1
