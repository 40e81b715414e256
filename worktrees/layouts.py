"""Remembers how the files of fresh worktrees were written: the index of each layout, and when it was over.

The memory belongs to this process. What is in it was taken from the judge's private folder before anybody could work
in the worktree, so nobody's later index or settings are in it. It decides nothing.
"""

import stat
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.model import CommitId, Worktree
from coordinate_agents.worktrees.values import value_class

MAX_REMEMBERED_BYTES: Final = 64 << 20


@value_class
class Layout:
    """The index that wrote the files of a commit, and the time when all were written."""

    commit: CommitId
    index: bytes
    done_ns: int


class Layouts:
    """What is remembered of fresh worktrees of this process, the oldest forgotten first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Layout] = OrderedDict()
        self._bytes = 0

    def remember(self, worktree: Worktree, commit: CommitId, index: bytes) -> None:
        """Call when a new folder's files are written and before anybody works there."""
        # The file system's own clock: what is changed from now on has this time or a later one.
        top = Path(worktree.path)
        top.chmod(stat.S_IMODE(top.lstat().st_mode))
        done = top.lstat().st_ctime_ns
        with self._lock:
            self._forget(_key(worktree))
            self._known[_key(worktree)] = Layout(commit, index, done)
            self._bytes += len(index)
            while self._bytes > MAX_REMEMBERED_BYTES:
                self._forget(next(iter(self._known)))

    def forget(self, worktree: Worktree) -> None:
        with self._lock:
            self._forget(_key(worktree))

    def get(self, worktree: Worktree) -> Layout | None:
        with self._lock:
            return self._known.get(_key(worktree))

    def _forget(self, key: tuple[str, str]) -> None:
        """Call under the lock."""
        known = self._known.pop(key, None)
        self._bytes -= len(known.index) if known is not None else 0


def _key(worktree: Worktree) -> tuple[str, str]:
    return worktree.path, worktree.nonce
