"""Shows on a terminal which worktrees are being removed: one line that is gone at the end. On stderr."""

from typing import TextIO

from coordinate_agents.cli.layout import width
from coordinate_agents.cli.progress import quiet
from coordinate_agents.graph.events import Event, RemovalRefused, RemovalStarted, WorktreeRemoved
from coordinate_agents.graph.runtime import SilentProgress
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import counted, listed

_CLEARED = "\r\x1b[K"


class RemovalProgress(SilentProgress):
    """Written by this process's own removals; of those that a driver does nothing is seen before its answer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._going: list[str] = []
        self._gone = 0
        self.is_broken = False

    @quiet
    def event(self, snapshot: Snapshot, event: Event, time: float) -> None:
        match event:
            case RemovalStarted(subtask=subtask):
                self._going.append(subtask)
            case WorktreeRemoved(subtask=subtask) | RemovalRefused(subtask=subtask) if subtask in self._going:
                self._going.remove(subtask)
                self._gone += isinstance(event, WorktreeRemoved)
            case _:
                return
        line = f"{counted(self._gone, 'worktree')} removed; deleting the files of {listed(self._going, first=4)}"
        self._write(f"{_CLEARED}{line[: width() - 1]}" if self._going else _CLEARED)

    @quiet
    def notice(self, line: str) -> None:
        """What comes instead of the line; empty: nothing does."""
        self._write(f"{_CLEARED}{line}\n" if line else _CLEARED)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
