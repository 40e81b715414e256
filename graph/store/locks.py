"""Kernel locks on files that are never unlinked: freed by the kernel when the holder dies, kept while it is stopped.

Linux open-file-description locks, because one can ask for their state without taking them; flock elsewhere.
Never removes a lock file: a second process could lock the new file while the first still holds the old one.
"""

import fcntl
import os
import struct
import time
import weakref
from pathlib import Path
from typing import Final, Literal

LockMode = Literal["exclusive", "shared"]

_HAS_OFD: Final = hasattr(fcntl, "F_OFD_SETLK") and struct.calcsize("P") == 8
# struct flock on 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid (0 for OFD locks). Source: fcntl(2).
_FLOCK: Final = "hhqqi4x"
# Below notice; the lock is tried again after so long, doubling up to the second value.
_FIRST_PAUSE_S: Final = 0.001
_LAST_PAUSE_S: Final = 0.02

_held: weakref.WeakSet["KernelLock | RangeLocks"] = weakref.WeakSet()


class KernelLock:
    """A lock that this process holds until `release` or death. Not inherited: exec and fork children lose it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        _held.add(self)

    def release(self) -> None:
        """Free the lock. Twice is no error."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class RangeLocks:
    """Locks on ranges of a file's bytes, each held by this process until `let_go`, `release` or death.

    Nothing is written: a byte only stands for something that is numbered. Not inherited, as `KernelLock`.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, made with 0600. Raises: OSError."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        _held.add(self)

    def take(self, first: int, count: int, *, mode: LockMode) -> bool:
        """Lock the range, or go over to this mode where it is held already. False when another holds some of it."""
        return self._set(fcntl.F_WRLCK if mode == "exclusive" else fcntl.F_RDLCK, first, count)

    def let_go(self, first: int, count: int) -> None:
        self._set(fcntl.F_UNLCK, first, count)

    def is_free(self, first: int, count: int) -> bool:
        """Whether nobody else holds any of it. Where that cannot be asked: true."""
        if not _HAS_OFD:
            return True
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
        kind: int = struct.unpack(_FLOCK, fcntl.fcntl(self.fd, fcntl.F_OFD_GETLK, asked))[0]
        return kind == fcntl.F_UNLCK

    def release(self) -> None:
        """Free everything. Twice is no error."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.release()

    def _set(self, kind: int, first: int, count: int) -> bool:
        try:
            if _HAS_OFD:
                fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, first, count, 0))
            else:
                how = {fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_UNLCK: fcntl.LOCK_UN}[kind]
                fcntl.lockf(self.fd, how | fcntl.LOCK_NB, count, first)
        except (BlockingIOError, PermissionError):
            return False
        return True


def try_lock(path: Path, *, mode: LockMode) -> KernelLock | None:
    """Lock the file (made with 0600 for an exclusive lock) and return the lock; None when another holds it.

    Raises: OSError; FileNotFoundError for a shared lock on a file that is not there.
    """
    while True:
        flags = os.O_RDWR | os.O_CREAT if mode == "exclusive" else os.O_RDONLY
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if not _take(fd, mode):
                os.close(fd)
                return None
            if _is_same_file(fd, path):
                return KernelLock(fd)
        except BaseException:
            os.close(fd)
            raise
        # Somebody replaced the file between open and lock: this lock would exclude nobody.
        os.close(fd)


def lock(path: Path, *, mode: LockMode, timeout_s: float) -> KernelLock | None:
    """As `try_lock`, but try again until `timeout_s` has passed. Blocks."""
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_PAUSE_S
    while True:
        taken = try_lock(path, mode=mode)
        if taken is not None or time.monotonic() >= deadline:
            return taken
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def is_locked(path: Path) -> bool:
    """Whether some process holds the exclusive lock, asked without taking it (on Linux). False without the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return _is_taken(fd)
    finally:
        os.close(fd)


def _take(fd: int, mode: LockMode) -> bool:
    try:
        if _HAS_OFD:
            kind = fcntl.F_WRLCK if mode == "exclusive" else fcntl.F_RDLCK
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0))
        else:
            fcntl.flock(fd, (fcntl.LOCK_EX if mode == "exclusive" else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        # fcntl(2): EAGAIN or EACCES, depending on the system.
        return False
    return True


def _is_taken(fd: int) -> bool:
    if _HAS_OFD:
        asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind: int = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0]
        return kind != fcntl.F_UNLCK
    # Taken for a moment; an acquirer that meets this moment tries again (lease.py).
    return not _take(fd, "shared")


def _is_same_file(fd: int, path: Path) -> bool:
    mine = os.fstat(fd)
    try:
        now = path.lstat()
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (now.st_dev, now.st_ino)


def _close_in_child() -> None:
    """In a forked child: its copy of the descriptor would keep the lock after the holder's death."""
    for held in list(_held):
        held.release()


os.register_at_fork(after_in_child=_close_in_child)
