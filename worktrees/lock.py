"""One kernel lock per repository, held around the registration of a worktree and around moves of Runtime refs.

Concurrent `git worktree add` calls fail now and then ("failed to read …/commondir: Success", 1 to 23 % seen). The lock
file is never unlinked, so all holders mean the same file; the kernel frees it when its holder dies. Threads exclude
each other too.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError

LOCK_FILE: Final = "git.lock"
# An add takes 5 ms; a queue of hundreds of starters on a loaded machine still ends well within this.
LOCK_TIMEOUT_S: Final = 120.0
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FIRST_PAUSE_S: Final = 0.0005
_LAST_PAUSE_S: Final = 0.008


@contextlib.contextmanager
def repository_lock(state_dir: str, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the repository's lock. Blocks, at most `timeout_s`. Raises: WORKTREE_CONFLICT past it."""
    with _locked(f"{state_dir}/{LOCK_FILE}", "the repository's worktrees", timeout_s):
        yield


@contextlib.contextmanager
def creation_lock(state_dir: str, graph: str, slug: str) -> Iterator[None]:
    """Hold the right to make one worktree. Raises: WORKTREE_CONFLICT at once when somebody else is making it."""
    with _locked(f"{state_dir}/worktrees/{graph}/{slug}.lock", f"worktree {graph}/{slug}", 0):
        yield


@contextlib.contextmanager
def _locked(path: str, what: str, timeout_s: float) -> Iterator[None]:
    try:
        fd = os.open(path, _LOCK, 0o600)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, _LOCK, 0o600)
    try:
        _acquire(fd, path, what, deadline=time.monotonic() + timeout_s)
        yield
    finally:
        os.close(fd)


def _acquire(fd: int, path: str, what: str, *, deadline: float) -> None:
    """Ask again with growing pauses: a blocking flock could not be bounded in a worker thread."""
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise WorktreeError(
                    "WORKTREE_CONFLICT",
                    f"Another process holds the lock on {what}.",
                    kept="nothing was changed",
                    next=f"fuser -v {path}",
                ) from None
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LAST_PAUSE_S)
