"""The driver's socket: where it lies, and the one byte that tells the driver to look at its requests.

A datagram carries no command and no data: whoever can send one can only make the driver look. A missing socket proves
nothing about the driver; the lease does.
"""

import contextlib
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import Final

# sun_path holds 108 bytes on Linux and 104 on macOS.
MAX_SOCKET_PATH_BYTES: Final = 100
_FOLDER: Final = "coordinate-agents"
_OWN_FOLDER_PREFIX: Final = "cag-"
_WAKE: Final = b"!"


class WakeSocket:
    """The driver's end. `fd` is readable when somebody wants to be heard; `drain` makes it quiet again."""

    def __init__(self, name: str) -> None:
        folder, self._own_folder = _folder(name)
        self.path = folder / name
        self._socket = _bind(self.path)

    @property
    def fd(self) -> int:
        return self._socket.fileno()

    def drain(self) -> bool:
        """Whether somebody wanted to be heard since the last call."""
        has_heard = False
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                has_heard = True
        return has_heard

    def is_reachable(self) -> bool:
        """Whether the path still names a socket; a cleaner may have removed it."""
        with contextlib.suppress(OSError):
            return stat.S_ISSOCK(self.path.lstat().st_mode)
        return False

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(OSError):
            self.path.unlink()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)


def wake(path: str) -> bool:
    """Send the byte; False when nobody is there. Never blocks: a full queue means that the driver is being woken."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(_WAKE, path)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True


def remove_dead(path: str) -> None:
    """Remove the socket of a driver that was killed; nothing unless it is a socket of this user that nobody reads."""
    place = Path(path)
    with contextlib.suppress(OSError):
        found = place.lstat()
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            try:
                sender.connect(path)
            except ConnectionRefusedError:
                place.unlink()
        if place.parent.name.startswith(_OWN_FOLDER_PREFIX):
            place.parent.rmdir()  # only when it is empty


def _folder(name: str) -> tuple[Path, Path | None]:
    """A private folder whose sockets have short paths, and the folder to remove afterwards (None: it is shared)."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base:
        folder = Path(base) / _FOLDER
        with contextlib.suppress(OSError):
            if _fits(folder / name):
                folder.mkdir(mode=0o700, exist_ok=True)
                found = folder.lstat()
                if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
                    return folder, None
    for parent in (tempfile.gettempdir(), "/tmp"):
        made = Path(tempfile.mkdtemp(prefix=_OWN_FOLDER_PREFIX, dir=parent))
        if _fits(made / name):
            return made, made
        made.rmdir()
    raise OSError(f"no folder for a socket with a path of at most {MAX_SOCKET_PATH_BYTES} bytes")


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES


def _bind(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bound.setblocking(False)
        bound.bind(os.fspath(path))
        path.chmod(0o600)
    except BaseException:
        bound.close()
        raise
    return bound
