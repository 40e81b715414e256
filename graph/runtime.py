"""Store, ports and clock: the one argument that every operation receives.

Parts are made when first asked for, so that a read verb pays only for what it uses. Only `cli/wiring.py` knows the
factories behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a read verb loads no port
    from coordinate_agents.graph.config import Config
    from coordinate_agents.graph.events import Event
    from coordinate_agents.graph.model import SubtaskId
    from coordinate_agents.graph.ports import Agents, Clock, LiveView, Progress, Screen, Sessions, Terminal, Worktrees
    from coordinate_agents.graph.snapshot import Snapshot
    from coordinate_agents.graph.store.store import Store


class SilentProgress:
    """Nobody watches."""

    wants_output = False

    def begin(self, snapshot: Snapshot) -> None: ...

    def event(self, snapshot: Snapshot, event: Event, time: float) -> None: ...

    def output(self, subtask: SubtaskId, last_line: str) -> None: ...

    def notice(self, line: str) -> None: ...

    def end(self, snapshot: Snapshot) -> None: ...


class Runtime:
    """One repository's runtime. `close` closes what was opened."""

    def __init__(
        self,
        root: Path,
        *,
        open_worktrees: Callable[[], Worktrees],
        open_store: Callable[[Path], Store],
        open_sessions: Callable[[Path], Sessions],
        open_agents: Callable[[Path], Agents],
        clock: Clock,
        state_dir: Callable[[], Path],
        open_config: Callable[[], Config] | None = None,
    ) -> None:
        self.root = root
        self.clock = clock
        self.progress: Progress = SilentProgress()
        self.terminal: Terminal | None = None
        self.live_view: LiveView | None = None
        # Who asks, for the records of decisions and requests: the user at a command line, or an MCP client by name.
        self.who = "user"
        # The commit of a branch by its full name; None when it is not known without git.
        self.tip_of: Callable[[str], str | None] = lambda name: None
        self.render_screen: Callable[[bytes, int, int], Screen] | None = None
        self._open_worktrees = open_worktrees
        self._open_store = open_store
        self._open_sessions = open_sessions
        self._open_agents = open_agents
        self._state_dir = state_dir
        self._open_config = open_config

    @cached_property
    def state_dir(self) -> Path:
        """``<common git dir>/coordinate-agents`` or the configured state root. May not exist yet."""
        return self._state_dir()

    @cached_property
    def config(self) -> Config:
        """The user's and the project's configuration now, trusted. Raises: INVALID_AGENT_CONFIG, CONFIG_UNTRUSTED."""
        assert self._open_config is not None, "this verb was opened without configuration"
        return self._open_config()

    def config_now(self) -> Config:
        """As `config`, read again: a process that lives long is told that it changed."""
        assert self._open_config is not None, "this verb was opened without configuration"
        return self._open_config()

    @cached_property
    def worktrees(self) -> Worktrees:
        return self._open_worktrees()

    @cached_property
    def store(self) -> Store:
        return self._open_store(self.state_dir)

    @cached_property
    def sessions(self) -> Sessions:
        return self._open_sessions(self.state_dir / "sessions")

    @cached_property
    def agents(self) -> Agents:
        return self._open_agents(self.state_dir / "sessions")

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
        close_worktrees = getattr(self.__dict__.get("worktrees"), "close", None)
        if close_worktrees is not None:  # a kept git process
            close_worktrees()
