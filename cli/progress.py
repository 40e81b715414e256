"""Shows a drive as it goes: live on a terminal, plain lines elsewhere. On stderr; stdout is for the final state.

Called from the event loop, so every method is quick, and whatever goes wrong here (a closed terminal, a bug) ends the
showing and never the drive.
"""

import functools
import os
import sys
import time as clock
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

from coordinate_agents.cli.progress_words import describe
from coordinate_agents.graph.events import Event
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.ports import Progress
from coordinate_agents.graph.runtime import SilentProgress
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import counted

F = TypeVar("F", bound=Callable[..., None])


def progress_for_terminal() -> Progress:
    """Live on a terminal that can move its cursor; plain lines on anything else that is written; else silent."""
    stream = sys.stderr
    if stream is None:
        return SilentProgress()
    if stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", ""):
        from coordinate_agents.cli.progress_live import LiveProgress

        return LiveProgress(stream)
    return PlainProgress(stream)


def removal_on_terminal() -> Progress:
    """One line on a terminal that can move its cursor, else silent."""
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return SilentProgress()
    from coordinate_agents.cli.progress_removal import RemovalProgress

    return RemovalProgress(stream)


def quiet(method: F) -> F:
    """The method, which never raises: after a first failure the object stays silent."""

    @functools.wraps(method)
    def call(self: Any, *args: Any) -> None:
        if self.is_broken:
            return
        try:
            method(self, *args)
        except Exception:
            self.is_broken = True

    return call  # type: ignore[return-value]


class PlainProgress:
    """One line per event worth telling, with the time of day."""

    wants_output = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_broken = False

    @quiet
    def begin(self, snapshot: Snapshot) -> None:
        graph = snapshot.graph
        self._say(
            clock.time(),
            f"{graph.id}: {counted(len(graph.tasks), 'subtask')}, at most {graph.max_concurrency} at a time",
        )

    @quiet
    def event(self, snapshot: Snapshot, event: Event, time: float) -> None:
        line = describe(snapshot, event)
        if line is not None:
            self._say(time, line)

    def output(self, subtask: SubtaskId, last_line: str) -> None: ...

    @quiet
    def notice(self, line: str) -> None:
        self._say(clock.time(), line)

    def end(self, snapshot: Snapshot) -> None: ...

    def _say(self, time: float, line: str) -> None:
        self._stream.write(f"{clock.strftime('%H:%M:%S', clock.localtime(time))} {line}\n")
        self._stream.flush()
