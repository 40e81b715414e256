"""What an agent inherits, and what it never does."""

import subprocess

import pytest

from coordinate_agents.sessions.environment import GIT_LOCAL, agent_environment, secret_values


def environment(parent: dict[str, str], **more: dict[str, str]) -> dict[str, str]:
    return agent_environment(parent, extra=more.get("extra", {}), identity=more.get("identity", {}))


def test_gits_repository_variables_are_exactly_those_git_names() -> None:
    named = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    assert set(named.stdout.split()) == GIT_LOCAL


def test_ordinary_environment_passes_and_only_gc_is_added() -> None:
    parent = {"PATH": "/bin", "HOME": "/h", "LANG": "de_DE.UTF-8", "TERM": "screen", "GIT_AUTHOR_NAME": "Ann",
              "GIT_SSH_COMMAND": "ssh -i k", "GIT_TERMINAL_PROMPT": "0", "HTTPS_PROXY": "http://p"}  # fmt: skip
    assert environment(parent) == {
        **parent,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "gc.auto",
        "GIT_CONFIG_VALUE_0": "0",
    }


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_TRACE",
        "GIT_TRACE2_EVENT",
        "GIT_CONFIG_KEY_7",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "OPENCODE",
        "COORDINATE_AGENTS_TOKEN",
        "COORDINATE_AGENTS_SESSION_MARK",
        "COORDINATE_AGENTS_ANYTHING",
        "NOTIFY_SOCKET",
    ],
)
def test_variable_that_would_mislead_an_agent_is_removed(name: str) -> None:
    assert name not in environment({name: "1", "LANG": "C.UTF-8"})


@pytest.mark.parametrize("name", ["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG"])
def test_login_and_settings_of_an_agent_stay(name: str) -> None:
    assert environment({name: "x"})[name] == "x"


def test_configuration_adds_but_never_sets_identity() -> None:
    env = environment(
        {"LEVEL": "1"},
        extra={"LEVEL": "2", "COORDINATE_AGENTS_TOKEN": "forged", "COORDINATE_AGENTS_SUBTASK": "other"},
        identity={"COORDINATE_AGENTS_SUBTASK": "api"},
    )
    assert env["LEVEL"] == "2"
    assert env["COORDINATE_AGENTS_SUBTASK"] == "api"
    assert "COORDINATE_AGENTS_TOKEN" not in env


def test_configured_git_settings_are_kept_before_ours() -> None:
    env = environment({}, extra={"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"})
    assert [env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_KEY_1"]] == ["2", "a.b", "gc.auto"]
    value = subprocess.run(["git", "config", "gc.auto"], env=env, capture_output=True, text=True)
    assert value.stdout == "0\n"


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        ({}, "C.UTF-8"),
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "C.UTF-8"),
        ({"LANG": "en_US.utf8"}, ""),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "C"}, ""),
    ],
)
def test_locale_is_utf8_in_any_case(parent: dict[str, str], expected: str) -> None:
    env = environment(parent)
    assert env.get("LC_CTYPE", "") == expected
    assert env.get("LC_ALL") in (None, "en_US.UTF-8")


@pytest.mark.parametrize("term", ["", "dumb"])
def test_missing_terminal_type_is_set(term: str) -> None:
    assert environment({"TERM": term} if term else {})["TERM"] == "xterm-256color"


def test_values_of_secret_looking_variables_are_found_and_no_others() -> None:
    env = {
        "OPENAI_API_KEY": "sk-0123456789",
        "GITHUB_TOKEN": "ghx-0123456789",
        "DB_PASSWORD": "correct-horse",
        "AWS_SECRET_ACCESS_KEY": "abcdefghij",
        "MY_AUTH": "short",
        "APP_PASSWORD": "changeme",
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "PWD": "/home/ann/project",
        "TOKEN_FILE": "/etc/some/token",
        "KEYBOARD": "de-latin1-nodeadkeys",
        "AUTHOR": "Ann Longer Name",
        "MONKEY": "not-a-secret-at-all",
        "DATABASE_URL": "postgres://app:zebra-crossing@db/app",
        "HTTP_PROXY": "http://u:short@proxy:8080",
    }
    assert secret_values(env) == ("abcdefghij", "correct-horse", "ghx-0123456789", "sk-0123456789", "zebra-crossing")
