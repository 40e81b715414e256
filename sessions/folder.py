"""The Session's folder on disk: names, modes, and whole-file writes that no reader ever sees half done.

Every file is opened relative to a descriptor of the folder and never through a symbolic link, so that whoever can write
elsewhere cannot make us read or write somewhere else. Runs in hosts too: stdlib only, nothing slow to load.
"""

import errno
import fcntl
import json
import os
import time

from coordinate_agents.sessions.crashpoints import crash_point

RECORD = "record.json"
ALIVE = "alive"
TOKEN = "token"
OUTPUT = "output.log"
HOST_ERRORS = "host.err"
PROMPT = "prompt.txt"

MAX_RECORD_BYTES = 1 << 20

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(path: str) -> int:
    """A descriptor of the folder. Raises: OSError, also when it is a link or belongs to another user."""
    descriptor = os.open(path, _DIRECTORY)
    if os.fstat(descriptor).st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "the folder belongs to another user", path)
    return descriptor


def write_whole(folder: int, name: str, data: bytes) -> None:
    """Replace the file by `data`; a reader sees the old or the new content, never a part."""
    temporary = f".{name}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    crash_point("folder.drafted")
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def read_whole(folder: int, name: str, max_bytes: int) -> bytes | None:
    """The content, or None when there is no such file. Raises: OSError; ValueError when it is larger."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        data: bytes = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{name} is larger than {max_bytes} bytes")
    return data


def write_json(folder: int, name: str, value: dict[str, object]) -> None:
    """Replace the file by the value as one line of ASCII JSON."""
    write_whole(folder, name, json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n")


def claim(folder: int) -> int | None:
    """Create `alive`, held from its first moment; None when this Session was started before.

    The file is locked under another name and then linked, so nobody can ever see it without its lock.
    """
    temporary = f".{ALIVE}.{os.getpid()}.{time.monotonic_ns()}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        os.link(temporary, ALIVE, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        os.close(descriptor)
        return None
    finally:
        os.unlink(temporary, dir_fd=folder)
    return descriptor


def lock(folder: int, *, shared: bool = False) -> int | None:
    """The descriptor that holds the kernel lock on `alive`, or None when another process holds it.

    The lock belongs to the open file, so it passes to a child that inherits the descriptor and ends with the last
    copy. Looking takes it shared, so that two who look never take each other for a living host. Raises:
    FileNotFoundError when nothing was ever started here.
    """
    descriptor = os.open(ALIVE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
