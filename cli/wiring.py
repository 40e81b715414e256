"""Builds the Runtime: the one place that names the implementations behind the ports, and imports them late.

A part is made when an operation first asks for it, so that a read verb loads neither git nor the event loop.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinate_agents.cli.discover import Place, discover
from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.ports import Agents, Sessions, Worktrees
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.store import Store


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


def open_runtime(invocation: Invocation) -> Runtime | None:
    """The Runtime of the repository that the invocation means; None where a verb can do without and there is none.

    Raises: NOT_A_REPOSITORY; AGENT_MAY_NOT for a run started inside a Runtime worktree without `--nested`.
    """
    access = invocation.verb.access
    try:
        place = discover(invocation.root or _current_folder())
    except GraphError:
        if access == "optional" and invocation.root is None:
            return None
        raise
    if place.runtime_worktree and invocation.verb.name == "graph-run" and not invocation.values.get("nested"):
        raise _nested(place)
    runtime = Runtime(
        Path(place.root),
        open_worktrees=lambda: _worktrees(place),
        open_store=_store_opener(access),
        open_sessions=_sessions,
        open_agents=_agents,
        clock=SystemClock(),
        state_dir=lambda: Path(place.state_dir),
    )
    if invocation.verb.name == "graph-run" and not invocation.as_json:
        from coordinate_agents.cli.progress import progress_for_terminal

        runtime.progress = progress_for_terminal()
    return runtime


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise GraphError(
            "NOT_A_REPOSITORY",
            "The current folder does not exist any more.",
            next="change into the repository, or name it with --root DIR",
        ) from None


def _nested(place: Place) -> GraphError:
    return GraphError(
        "AGENT_MAY_NOT",
        f"{place.runtime_worktree} is a worktree that the Runtime made; a run started here would work on {place.root}.",
        kept="everything as it is",
        next=f"cd {place.root} first, or add --nested",
    )


def _store_opener(access: str) -> Callable[[Path], Store]:
    return Store.open if access == "write" else Store.open_readonly


def _worktrees(place: Place) -> Worktrees:
    from coordinate_agents.worktrees.worktrees import GitWorktrees

    opened: Any = GitWorktrees.open(place.root)
    worktrees: Worktrees = opened
    return worktrees


def _sessions(folder: Path) -> Sessions:
    from coordinate_agents.sessions.client import SessionHosts

    sessions: Sessions = SessionHosts(folder)
    return sessions


def _agents(folder: Path) -> Agents:
    from coordinate_agents.sessions.launch import Agents as LaunchAgents

    agents: Agents = LaunchAgents(folder)
    return agents
