"""Opens the database: made complete or not at all, checked before use, and read without changing one byte.

The three ways to read (docs/state.md says why): without a write-ahead log the file is immutable while we hold the
shared lock; with one, its index is opened read-only; a log without an index is copied and read elsewhere.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import failures, locks, place, schema
from coordinate_agents.graph.store.place import StatePlace

# A writer waits so long for other writers, each of which takes well under a millisecond.
BUSY_TIMEOUT_S: Final = 30.0
# Creating, migrating and checkpointing take milliseconds; a longer hold means a stopped process.
LOCK_TIMEOUT_S: Final = 10.0
READ_LOCK_TIMEOUT_S: Final = 2.0

Remains = Callable[[], tuple[str, ...]]


class Reading(NamedTuple):
    """A read-only connection and what must be given back after it."""

    connection: sqlite3.Connection
    lock: locks.KernelLock | None
    remove_copy: Callable[[], None] | None = None

    def close(self) -> None:
        self.connection.close()
        if self.lock is not None:
            self.lock.release()
        if self.remove_copy is not None:
            self.remove_copy()


def open_writable(where: StatePlace, remains: Remains) -> sqlite3.Connection:
    """Open for writing; make the database when there never was one. Raises: GraphError, see failures.py."""
    place.prepare(where)
    if not place.exists(where.database):
        _create(where, remains)
    place.check_files(where)
    with failures.explained(where.database, waited_s=BUSY_TIMEOUT_S):
        connection = _connect(where.database, "mode=rw")
        try:
            for setting in ("wal_autocheckpoint=0", "synchronous=NORMAL", "trusted_schema=OFF", "cell_size_check=ON"):
                connection.execute(f"PRAGMA {setting}")
            _check_version(where, connection)
            if schema.version_of(connection) < schema.VERSION:
                with repository_lock(where):
                    schema.migrate(connection)
            check_shape(where, connection)
            _check_marker(where, connection)
        except BaseException:
            connection.close()
            raise
    return connection


def close_writable(where: StatePlace, connection: sqlite3.Connection) -> None:
    """Close; the last writer's log goes into the main file when nobody reads, else it stays beside it."""
    held = None
    with contextlib.suppress(OSError):
        held = locks.try_lock(where.lock, mode="exclusive")
    if held is not None:
        connection.close()
        held.release()
        return
    # SQLite checkpoints when the last connection closes, and would do so without our lock. A read-only connection that
    # is open meanwhile keeps it from being the last, and makes no checkpoint itself.
    guard = None
    with contextlib.suppress(sqlite3.Error):
        guard = _connect(where.database, "mode=ro")
        guard.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    connection.close()
    if guard is not None:
        guard.close()


def open_for_reading(where: StatePlace) -> Reading | None:
    """Open without changing a byte of the folder; None when there never was a database."""
    if not place.exists(where.database):
        place.check_missing(where)
        return None
    lock = _reader_lock(where)
    try:
        place.check_files(where)
        with failures.explained(where.database, waited_s=BUSY_TIMEOUT_S):
            reading = _connect_reading(where, lock)
            try:
                reading.connection.execute("PRAGMA query_only=ON")
                _check_version(where, reading.connection)
                _check_readable_version(where, reading.connection)
            except BaseException:
                reading.close()
                raise
            return reading
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def nothing_to_read() -> Reading:
    """An empty database that lies nowhere."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection)
    connection.execute("PRAGMA query_only=ON")
    return Reading(connection, None)


def check_shape(where: StatePlace, connection: sqlite3.Connection) -> None:
    """Raise STATE_TAMPERED unless tables, pages and size are as the Runtime makes them."""
    wrong = schema.difference(connection)
    if wrong is None and place.size_of(where.wal) == 0:
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        # A torn last page reads as zeroes; SQLite notices only whole pages that are missing.
        if place.size_of(where.database) % page_size:
            wrong = "its last page was cut short"
    if wrong is not None:
        raise failures.tampered(where.database, wrong)


@contextlib.contextmanager
def repository_lock(where: StatePlace) -> Iterator[None]:
    """Hold the per-repository lock exclusively. Raises: WAIT_TIMED_OUT."""
    held = locks.lock(where.lock, mode="exclusive", timeout_s=LOCK_TIMEOUT_S)
    if held is None:
        raise failures.busy(where.lock, LOCK_TIMEOUT_S)
    try:
        yield
    finally:
        held.release()


def _create(where: StatePlace, remains: Remains) -> None:
    """Build the database beside its place, then rename: a crash leaves it complete or absent."""
    with failures.explained(where.database, waited_s=LOCK_TIMEOUT_S), repository_lock(where):
        if place.exists(where.database):
            return
        place.check_missing(where, remains())
        for leftover in where.folder.glob(f"{where.new_database.name}*"):
            leftover.unlink()
        os.close(os.open(where.new_database, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = _connect(where.new_database, "mode=rw")
        try:
            connection.execute("PRAGMA synchronous=FULL")
            schema.migrate(connection)
            connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (os.urandom(16).hex(),))
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        crash_point("store.create.built")
        where.new_database.rename(where.database)
        place.sync_folder(where.folder)
        # A crash here leaves no marker; the next writer that opens makes it.
        crash_point("store.create.renamed")


def _check_version(where: StatePlace, connection: sqlite3.Connection) -> None:
    version = schema.version_of(connection)
    if version > schema.VERSION:
        raise failures.newer(where.database, version, schema.VERSION)
    if version == 0:
        raise failures.tampered(where.database, "it has no tables of ours")


def _check_readable_version(where: StatePlace, connection: sqlite3.Connection) -> None:
    version = schema.version_of(connection)
    if version < schema.VERSION:
        raise GraphError(
            "REPOSITORY_UNSUPPORTED",
            f"The state database {where.database} has the older format {version}; reading never changes it.",
            kept="every file as it is",
            next="run a verb that writes once, such as graph-run; it brings the database to this version",
            stage="store",
        )


def _check_marker(where: StatePlace, connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
    if row is None:
        raise failures.tampered(where.database, "it has no id")
    recorded = place.read_marker(where)
    if recorded is None:
        place.write_whole(where.marker, row[0] + "\n")
    elif recorded != row[0]:
        raise failures.tampered(where.database, f"it is not the database that {where.marker.name} names")


def _reader_lock(where: StatePlace) -> locks.KernelLock | None:
    """Shared, so that no checkpoint changes the main file under an immutable reader; None in a copied folder."""
    try:
        return locks.lock(where.lock, mode="shared", timeout_s=READ_LOCK_TIMEOUT_S)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failures.explain_os(where.lock, error) from error


def _connect_reading(where: StatePlace, lock: locks.KernelLock | None) -> Reading:
    if place.size_of(where.wal) == 0:
        if lock is None and place.exists(where.lock):
            # Somebody is stopped while creating or checkpointing; without a log an immutable read could be torn.
            raise failures.busy(where.lock, READ_LOCK_TIMEOUT_S)
        return Reading(_connect(where.database, "immutable=1"), lock)
    if not place.exists(where.shm):
        return _connect_copy(where, lock)
    connection = _connect(where.database, "mode=ro&readonly_shm=1")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
            raise
        # A live writer has not yet published a read mark that fits; marking one ourselves changes only its index.
        connection = _connect(where.database, "mode=ro")
    return Reading(connection, lock)


def _connect_copy(where: StatePlace, lock: locks.KernelLock | None) -> Reading:
    """A log without its index: nobody is connected, and SQLite would have to write the index to read it."""
    # Imported here: rarely needed, and what it imports costs every read verb 4 ms.
    import tempfile

    copy = tempfile.TemporaryDirectory(prefix="coordinate-agents-read-", ignore_cleanup_errors=True)
    for path in (where.database, where.wal):
        target = Path(copy.name) / path.name
        target.write_bytes(path.read_bytes())
    return Reading(_connect(Path(copy.name) / where.database.name, "mode=rw"), lock, copy.cleanup)


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{options}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        cached_statements=128,
    )
