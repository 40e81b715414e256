"""Waits until something may have changed in the state folder. Takes no lock and changes nothing there.

The database and its write-ahead log change with every event; their size and time of change are looked at a few times
a second. Nothing that drives a graph polls: this is for clients that only wait.
"""

import time
from pathlib import Path
from typing import Final

# Below what a person notices; five looks at two files cost nothing.
PAUSE_S: Final = 0.2
# The log is written and synced before what it says can be read, which changes no file: that is looked for once more.
AGAIN_S: Final = 1.0
_FILES: Final = ("state.db", "state.db-wal")

Stamp = tuple[tuple[int, int, int], ...]


class Watch:
    """Remembers how the database looked at the last call."""

    def __init__(self, state_dir: Path) -> None:
        self._paths = [state_dir / name for name in _FILES]
        self._stamp = self._look()
        self._again_at: float | None = None

    def wait(self, until: float) -> bool:
        """Block until something changed since the last call, or the monotonic time `until`; whether it changed.

        After a change the next one is told at the latest `AGAIN_S` later, though it may be none.
        A change that came between the caller's last read and this call is seen, when the Watch was made before it.
        """
        while True:
            stamp = self._look()
            now = time.monotonic()
            if stamp != self._stamp:
                self._stamp, self._again_at = stamp, now + AGAIN_S
                return True
            if self._again_at is not None and now >= self._again_at:
                self._again_at = None
                return True
            left = until - now
            if left <= 0:
                return False
            time.sleep(min(PAUSE_S, left))

    def _look(self) -> Stamp:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)
