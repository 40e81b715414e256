"""Builds the Runtime: the one place that names the implementations behind the ports, and imports them late.

A part is made when an operation first asks for it, so that a read verb loads neither git nor the event loop.
"""

import os
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from coordinate_agents.cli.discover import Place, discover
from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.runtime import Runtime

if TYPE_CHECKING:
    from coordinate_agents.cli.config import LoadedConfig
    from coordinate_agents.graph.config import Config
    from coordinate_agents.graph.ports import Agents, Screen, Sessions, Worktrees
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
    runtime = _runtime(place, _Parts(place, is_writing=access == "write"))
    if invocation.verb.name == "graph-run" and not invocation.as_json:
        from coordinate_agents.cli.progress import progress_for_terminal

        runtime.progress = progress_for_terminal()
    if invocation.verb.name == "graph-cleanup" and not invocation.as_json:
        from coordinate_agents.cli.progress import removal_on_terminal

        runtime.progress = removal_on_terminal()
    if invocation.verb.name == "session-attach" and not invocation.as_json:
        from coordinate_agents.cli.attach import terminal_here

        runtime.terminal = terminal_here()
    if invocation.verb.name == "graph-watch" and not invocation.as_json:
        from coordinate_agents.cli.watch.here import view_here

        runtime.live_view = view_here(lambda: _looking(place))
    runtime.render_screen = _render_screen
    runtime.who = invocation.who
    runtime.tip_of = place.tip_of
    return runtime


def _runtime(place: Place, parts: "_Parts") -> Runtime:
    return Runtime(
        Path(place.root),
        open_worktrees=parts.worktrees,
        open_store=parts.store,
        open_sessions=parts.sessions,
        open_agents=parts.agents,
        clock=SystemClock(),
        state_dir=parts.state_dir,
        open_config=parts.config,
    )


def _looking(place: Place) -> Runtime:
    """A second Runtime of the place, to read with in another thread: a connection belongs to the thread it is of."""
    runtime = _runtime(place, _Parts(place, is_writing=False))
    runtime.render_screen = _render_screen
    return runtime


def scratch_runtime(root: Path, config: "Config") -> Runtime:
    """The Runtime of a repository of our own, with this configuration instead of what its files say."""
    parts = _Parts(discover(str(root)), is_writing=True)
    return Runtime(
        root,
        open_worktrees=parts.worktrees,
        open_store=parts.store,
        open_sessions=parts.sessions,
        open_agents=parts.agents,
        clock=SystemClock(),
        state_dir=parts.state_dir,
        open_config=lambda: config,
    )


class _Parts:
    """The factories of one place. Each is called once, by the Runtime, but `config`."""

    def __init__(self, place: Place, *, is_writing: bool) -> None:
        self._place = place
        self._is_writing = is_writing

    def state_dir(self) -> Path:
        root = self._state_root
        if root is None:
            return Path(self._place.state_dir)
        from coordinate_agents.worktrees.repository import repository_key

        return Path(os.path.realpath(root), repository_key(self._place.common_dir))

    def store(self, state_dir: Path) -> "Store":
        from coordinate_agents.graph.store.store import Store

        return Store.open(state_dir) if self._is_writing else Store.open_readonly(state_dir)

    def worktrees(self) -> "Worktrees":
        from coordinate_agents.worktrees.worktrees import GitWorktrees

        return GitWorktrees.open(self._place.root, state_root=self._state_root)

    def sessions(self, folder: Path) -> "Sessions":
        from coordinate_agents.sessions.client import SessionHosts

        return SessionHosts(folder)

    def agents(self, folder: Path) -> "Agents":
        from coordinate_agents.sessions.launch import Agents

        return Agents(folder, root=self._place.root)

    def config(self) -> "Config":
        """What the files say now; only what was read to find the state is not read a second time."""
        from coordinate_agents.cli.config import require_trust

        loaded = self._loaded
        self.__dict__.pop("_loaded", None)
        require_trust(loaded)
        config = loaded.config
        if config.agents or config.default_agent is not None:
            return config
        from coordinate_agents.cli.setup.agents import with_found

        return with_found(config, Path(self._place.root))

    @cached_property
    def _state_root(self) -> str | None:
        """The configured folder for the state; None for the one in the git dir, which stays in use once it is there."""
        if Path(self._place.state_dir).is_dir() or not any(_names_state_root(path) for path in self._config_files()):
            return None
        return self._loaded.config.state_root

    def _config_files(self) -> Iterator[Path]:
        """The files that could set it, found without loading what reads them: most repositories set nothing."""
        yield Path(self._place.root, ".coordinate-agents.yaml")
        base = os.environ.get("XDG_CONFIG_HOME", "")
        home = Path(base) if base.startswith("/") else Path("~/.config").expanduser()
        yield home / "coordinate-agents" / "config.yaml"

    @cached_property
    def _loaded(self) -> "LoadedConfig":
        from coordinate_agents.cli.config import load

        return load(Path(self._place.root))


def _render_screen(data: bytes, columns: int, rows: int) -> "Screen":
    from coordinate_agents.sessions.screen import render

    return render(data, columns, rows)


def _names_state_root(path: Path) -> bool:
    """Whether the file holds the key, or cannot be read: then reading it in earnest says why."""
    try:
        return b"stateRoot" in path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _current_folder() -> str:
    try:
        return str(Path.cwd())
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
        next=f"cd {_quoted(place.root)} first, or add --nested",
    )


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)
