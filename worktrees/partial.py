"""Completes a commit of a partial clone by one explicit, bounded fetch, before anything needs its files.

The judge never fetches lazily: such a fetch runs whatever the shared configuration names. The remote and its transport
are those recorded at graph-create; helper transports (`ext::`) are refused.
"""

import os
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.frozen import Frozen, user_environment
from coordinate_agents.worktrees.git import config_environment
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId

FETCH_TIMEOUT_S: Final = 900.0
# A clone without trees needs a round per level of folders.
_MAX_ROUNDS: Final = 64
_PROTOCOLS: Final = "file:git:http:https:ssh"
_TRANSPORT_VARIABLES: Final = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
)
_PROXY_VARIABLES: Final = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


def complete(judge: Judge, commit: CommitId, settings: Frozen) -> None:
    """Fetch every object of the commit's tree that the clone lacks. Nothing to do in a complete clone.

    Raises: REPOSITORY_UNSUPPORTED when objects stay missing.
    """
    if not judge.facts.is_partial:
        return
    for _ in range(_MAX_ROUNDS):
        missing = _missing(judge, commit)
        if not missing:
            return
        _fetch(judge, missing, settings)
    raise _incomplete(commit, "objects stay missing after every fetch")


def _missing(judge: Judge, commit: CommitId) -> list[str]:
    result = judge.git("rev-list", "--objects", "--missing=print", "--no-walk", commit, timeout_s=120)
    return [line[1:] for line in result.lines() if line.startswith("?")]


def _fetch(judge: Judge, missing: list[str], settings: Frozen) -> None:
    remote = _promisor(settings)
    if remote is None:
        raise _incomplete(missing[0], "no promisor remote was recorded")
    env = config_environment(
        [
            *settings.transport,
            ("protocol.allow", "user"),
            ("fetch.negotiationAlgorithm", "noop"),
            ("extensions.partialClone", remote),
        ]
    )
    # The user's own configuration outside the repository may hold what reaches the remote: proxies, credentials.
    own = user_environment()
    env |= {"GIT_CONFIG_NOSYSTEM": own.get("GIT_CONFIG_NOSYSTEM", "0"), "GIT_ALLOW_PROTOCOL": _PROTOCOLS}
    env["GIT_CONFIG_GLOBAL"] = own.get("GIT_CONFIG_GLOBAL", os.path.expanduser("~/.gitconfig"))  # noqa: PTH111
    for name in (*_TRANSPORT_VARIABLES, *_PROXY_VARIABLES):
        if name in os.environ:
            env[name] = os.environ[name]
    args = ("fetch", remote, "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
    result = judge.git(
        *args,
        "--no-auto-maintenance",
        "--stdin",
        stdin="".join(f"{oid}\n" for oid in missing).encode(),
        env=env,
        write_objects=True,
        timeout_s=FETCH_TIMEOUT_S,
        ok=range(256),
    )
    if result.code != 0:
        raise _incomplete(missing[0], result.said)


def _promisor(settings: Frozen) -> str | None:
    """Name of the recorded remote that owes the missing objects."""
    for key, value in settings.transport:
        if key == "extensions.partialclone":
            return value
        if key.startswith("remote.") and key.endswith(".promisor") and value.lower() in ("true", "yes", "on", "1"):
            return key.removeprefix("remote.").removesuffix(".promisor")
    return None


def _incomplete(what: str, why: str) -> WorktreeError:
    return WorktreeError(
        "REPOSITORY_UNSUPPORTED",
        f"This partial clone lacks objects of {what}: {why}",
        kept="every branch and worktree",
        next="git fetch --refetch --no-filter, in your checkout",
    )
