"""The state folder: which files are in it, that they are ours, and that a missing database is not taken for a new one.

Opens nothing through a symbolic link. Never opens the database file itself: closing any descriptor of it would drop
the POSIX locks that SQLite holds for this process on it (fcntl(2)); size and kind come from lstat.
"""

import os
import stat
from pathlib import Path
from typing import Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import failures, filesystem

DATABASE: Final = "state.db"


class StatePlace:
    """The paths in one state folder (contract section 3). Only names; whether they exist is another question.

    `new_database`: the database while it is being made; renamed when complete, so `database` is never half made.
    `lock`: exclusive to create, migrate, checkpoint or close a writer; shared to read. `marker` says that a database
    was here; its text is the database's id.
    """

    __slots__ = ("database", "folder", "leases", "lock", "marker", "new_database", "shm", "wal")

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.database: Final = folder / DATABASE
        self.new_database: Final = folder / f"{DATABASE}.new"
        self.wal: Final = folder / f"{DATABASE}-wal"
        self.shm: Final = folder / f"{DATABASE}-shm"
        self.lock: Final = folder / "state.lock"
        self.marker: Final = folder / "state.id"
        self.leases: Final = folder / "leases"


def prepare(place: StatePlace) -> None:
    """Make the folders with 0700. Raises: REPOSITORY_UNSUPPORTED (network, not writable), STATE_TAMPERED (links)."""
    kind = filesystem.file_system_of(place.folder)
    if kind is not None and filesystem.is_network(kind):
        raise failures.unwritable(place.folder, f"it lies on a network file system ({kind})")
    try:
        place.folder.parent.mkdir(parents=True, exist_ok=True)
        for folder in (place.folder, place.leases):
            folder.mkdir(mode=0o700, exist_ok=True)
            _own_folder(folder)
        # SQLite opens what it may not write for reading only, and would say so as late as the first append.
        for path in (place.folder, place.database):
            if path.exists() and not os.access(path, os.W_OK):
                raise failures.unwritable(place.folder, "this user may not write there")
    except OSError as error:
        raise failures.explain_os(place.folder, error) from error


def check_files(place: StatePlace) -> None:
    """Raise STATE_TAMPERED when a file of the state is a link, no file, somebody else's, or the database is empty."""
    for path in (place.database, place.wal, place.shm, place.lock, place.marker):
        found = _look(path)
        if found is None:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise failures.tampered(path, "it is a symbolic link or no regular file")
        if found.st_uid != os.geteuid():
            raise failures.tampered(path, f"it belongs to user {found.st_uid}")
        if path == place.database and found.st_size == 0:
            raise failures.tampered(path, "it is empty")


def exists(path: Path) -> bool:
    """Whether anything has this name; a dangling link counts. Raises: STATE_TAMPERED, REPOSITORY_UNSUPPORTED."""
    return _look(path) is not None


def size_of(path: Path) -> int:
    """Bytes of the file; 0 when it is not there."""
    found = _look(path)
    return 0 if found is None else found.st_size


def check_missing(place: StatePlace, remains: tuple[str, ...] = ()) -> None:
    """Raise STATE_TAMPERED when the absent database was here before. `remains`: what the caller found elsewhere."""
    left = [path.name for path in (place.marker, place.wal) if exists(path)]
    if place.leases.is_dir():
        left += sorted(f"leases/{path.name}" for path in place.leases.iterdir())
    left += remains
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        raise failures.tampered(place.database, f"it is missing, but a run left {shown}")


def read_marker(place: StatePlace) -> str | None:
    try:
        fd = os.open(place.marker, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
        return file.read(256).strip()


def write_whole(path: Path, text: str) -> None:
    """Write the file (0600) so that a reader sees the old text or the new one, and a crash leaves one of both.

    Raises: OSError; nothing of the new text is left then.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in the folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _own_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            raise GraphError(
                "REPOSITORY_UNSUPPORTED",
                f"The state folder {folder} belongs to user {found.st_uid}.",
                kept="everything as it is",
                next="run as the owner of the repository",
                stage="store",
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)


def _look(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failures.explain_os(path, error) from error
