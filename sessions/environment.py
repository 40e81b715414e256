"""The environment of an agent: the parent's without what would mislead it, plus what it must know.

Removed are git's repository-local variables (they would point the agent's git at another repository), git's tracing,
the Runtime's own variables, the identity of other Sessions, and the marks by which agents notice that they run inside
another agent. Identity is added last and nothing else can set it. Names of variables that look secret are decided here
too. Pure: no process is started, no file read.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

# Source: `git rev-parse --local-env-vars`; a test compares.
GIT_LOCAL: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_OBJECT_DIRECTORY",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_PREFIX",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_COMMON_DIR",
    }
)
# The numbered halves of GIT_CONFIG_COUNT mean nothing without it.
_GIT_PATTERN = re.compile(r"GIT_TRACE.*|GIT_TR2.*|GIT_CONFIG_(?:KEY|VALUE)_\d+")

# Marks of "you run inside another agent". They change behaviour (no colours, no sandbox, refusal to start).
_NESTING = re.compile(
    r"CLAUDECODE|CLAUDE_CODE_(?:ENTRYPOINT|SSE_PORT|SESSION_ID|CHILD_SESSION|REMOTE.*|EXECPATH)|CLAUDE_PID"
    r"|CODEX_SANDBOX.*|CODEX_THREAD_ID|CODEX_CI|CODEX_INTERNAL_.*"
    r"|OPENCODE|OPENCODE_(?:PID|SESSION.*|SERVER.*|CLIENT)|GEMINI_CLI|AIDER_SESSION.*|CURSOR_AGENT|AGENT_SESSION_ID"
)
# Everything of ours: identity of other Sessions, and variables that serve the Runtime alone.
_OWN_PREFIX: Final = "COORDINATE_AGENTS_"
_OWN_TEST_PREFIX: Final = "COORDINATE_AGENTS_TEST_"
# Variables of the process that started us and of our interpreter, which are not the agent's.
_SERVICE = frozenset(
    {
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "LISTEN_PID",
        "LISTEN_FDNAMES",
        "MAINPID",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        "LINES",
        "COLUMNS",
        "OLDPWD",
        "_",
        "__PYVENV_LAUNCHER__",
    }
)

IDENTITY: Final = frozenset(
    f"COORDINATE_AGENTS_{name}"
    for name in (
        "GRAPH",
        "SUBTASK",
        "ATTEMPT",
        "AGENT",
        "ROOT",
        "WORKTREE",
        "BRANCH",
        "BASE",
        "SCOPE",
        "SLOT",
        "PORT_BASE",
        "SESSION",
        "SESSION_MARK",
        "PROMPT_FILE",
        "SUBMIT_FILE",
        "SOCKET",
        "TOKEN",
    )
)

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIAL|CREDENTIALS|COOKIE|AUTH)(?:_|$)"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|AUTH|SERVICE|ACCOUNT|MASTER|DEPLOY|SSH)_?KEY"
    r"|TOKEN$|SECRET$|PASSWORD$|APIKEY$"
)
_URL_PASSWORD = re.compile(r"://[^\s/:@]{0,256}:([^\s/@]{1,512})@")
_SECRET_MIN = 8
_NOT_SECRET_NAMES = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "GIT_ASKPASS", "SSH_ASKPASS"})
_COMMON_WORDS = frozenset(
    {
        "password",
        "passw0rd",
        "changeme",
        "disabled",
        "required",
        "optional",
        "default",
        "example",
        "undefined",
        "localhost",
        "username",
        "anonymous",
        "keychain",
        "keyring",
        "production",
        "development",
        "testtest",
        "12345678",
        "123456789",
        "1234567890",
    }
)


def agent_environment(
    parent: Mapping[str, str], *, extra: Mapping[str, str], identity: Mapping[str, str], remove: Collection[str] = ()
) -> dict[str, str]:
    """The complete environment of a child.

    `extra` comes from configuration: it adds and replaces, but names of IDENTITY and others of ours are ignored in it.
    `remove` names further inherited variables to leave out. `identity` is set last. `gc.auto=0` is appended to the git
    settings that `extra` carries; those that the parent carried are repository-local by git's own list and are removed.
    """
    env = {name: value for name, value in parent.items() if not is_blocked(name) and name not in remove}
    env.update({name: value for name, value in extra.items() if not name.startswith(_OWN_PREFIX)})
    env.update(identity)
    if not env.get("TERM") or env["TERM"] == "dumb":
        env["TERM"] = "xterm-256color"
    if not any("UTF-8" in locale.upper() or "UTF8" in locale.upper() for locale in [_locale(env)]):
        env.pop("LC_ALL", None)
        env["LC_CTYPE"] = "C.UTF-8"
        env.setdefault("LANG", "C.UTF-8")
    return _with_git_setting(env, "gc.auto", "0")


def is_blocked(name: str) -> bool:
    """Whether a variable of the parent is never passed on."""
    if name in GIT_LOCAL or name in _SERVICE or _GIT_PATTERN.fullmatch(name) or _NESTING.fullmatch(name):
        return True
    return name.startswith(_OWN_PREFIX) and not name.startswith(_OWN_TEST_PREFIX)


def secret_values(env: Mapping[str, str]) -> tuple[str, ...]:
    """Values to mask: of variables whose names look secret, and passwords in URLs of any variable.

    8 characters or more, not a common word, not a path.
    """
    passwords = {match[1] for value in env.values() for match in _URL_PASSWORD.finditer(value)}
    found = {password for password in passwords if len(password) >= _SECRET_MIN} | {
        value.strip()
        for name, value in env.items()
        if name not in _NOT_SECRET_NAMES
        and _SECRET_NAME.search(name.upper())
        and len(value.strip()) >= _SECRET_MIN
        and value.strip().lower() not in _COMMON_WORDS
        and not value.startswith(("/", "~/", "./"))
    }
    return tuple(sorted(found))


def _locale(env: Mapping[str, str]) -> str:
    """The value that decides about characters. Source: setlocale(3)."""
    return env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""


def _with_git_setting(env: dict[str, str], key: str, value: str) -> dict[str, str]:
    count = env.get("GIT_CONFIG_COUNT", "0")
    number = int(count) if count.isdecimal() else 0
    return {
        **env,
        f"GIT_CONFIG_KEY_{number}": key,
        f"GIT_CONFIG_VALUE_{number}": value,
        "GIT_CONFIG_COUNT": str(number + 1),
    }
