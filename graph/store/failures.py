"""What SQLite and the operating system say, as a `GraphError` that says what was kept and what to do next.

Decides only the code and the words. Never retries and never repairs.
"""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from coordinate_agents.graph.errors import GraphError

_KEPT_LOG: Final = "everything recorded before; this step was not recorded, not even in part"
_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA})
_CLOSED: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_WRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def tampered(place: Path, what: str) -> GraphError:
    """The state is not as the Runtime left it. Nothing is repaired or overwritten; read verbs may still work."""
    return GraphError(
        "STATE_TAMPERED",
        f"The state database {place} is not as the Runtime left it: {what}.",
        kept="every file as it is; nothing is written to it",
        next=f"move {place.parent} aside (worktrees and branches stay), or put a good copy of {place.name} back",
        stage="store",
        recoverable=False,
    )


def newer(place: Path, version: int, known: int) -> GraphError:
    return GraphError(
        "REPOSITORY_UNSUPPORTED",
        f"The state database {place} has format {version}; this version of coordinate-agents knows {known}.",
        kept="every file as it is",
        next="use the version of coordinate-agents that wrote it, or a newer one",
        stage="store",
        recoverable=False,
    )


def unwritable(place: Path, reason: str) -> GraphError:
    return GraphError(
        "REPOSITORY_UNSUPPORTED",
        f"The state folder {place} cannot be written: {reason}.",
        kept="everything as it is; verbs that only read still work",
        next="make the folder writable for this user, or set stateRoot to a local folder",
        stage="store",
    )


def disk_full(place: Path, reason: str) -> GraphError:
    return GraphError(
        "DISK_FULL",
        f"The disk took no more while {place} was written: {reason}.",
        kept=_KEPT_LOG,
        next="free space on that disk, then run the same verb again",
        stage="store",
    )


def busy(place: Path, waited_s: float) -> GraphError:
    return GraphError(
        "WAIT_TIMED_OUT",
        f"Another process kept {place} locked for {waited_s:.0f} s; a stopped one may be in the middle of a write.",
        kept=_KEPT_LOG,
        next="continue or end stopped coordinate-agents processes (ps ax -o pid,stat,args), then run the verb again",
        stage="store",
    )


@contextmanager
def explained(place: Path, *, waited_s: float) -> Iterator[None]:
    """Turn what the database layer raises inside the block into a GraphError. Other exceptions pass."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(place, error, waited_s) from error
    except OSError as error:
        raise explain_os(place, error) from error


def explain_os(place: Path, error: OSError) -> GraphError:
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        return disk_full(place, reason)
    if error.errno in _NOT_WRITABLE:
        return unwritable(place.parent if place.suffix else place, reason)
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return tampered(place, f"a part of its path is a symbolic link or no folder ({reason})")
    return GraphError("INTERNAL_ERROR", f"{place} could not be used: {reason}.", kept=_KEPT_LOG, stage="store")


def _explain(place: Path, error: sqlite3.Error, waited_s: float) -> GraphError:
    extended: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    primary = extended & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return busy(place, waited_s)
    if primary in _FULL or extended in _FULL:
        return disk_full(place, str(error))
    if primary in _DAMAGED:
        return tampered(place, f"SQLite says {error}")
    if primary in _CLOSED:
        return unwritable(place.parent, str(error))
    if primary == sqlite3.SQLITE_IOERR:
        # EDQUOT and a failing disk arrive here; only ENOSPC becomes SQLITE_FULL (SQLite os_unix.c, unixWrite).
        return disk_full(place, f"{error} (quota, or a failing disk)")
    if primary == sqlite3.SQLITE_ERROR and "no such" in str(error):
        return tampered(place, f"SQLite says {error}")
    return GraphError("INTERNAL_ERROR", f"The state database {place} answered: {error}.", kept=_KEPT_LOG, stage="store")
