"""Writes and removes files that the Runtime owns, never through a link that somebody planted.

A file is replaced by rename; a tree is removed through directory descriptors, and only when it still is the very folder
that was made. It decides nothing about what is owned.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.deletion import delete_folder

MAX_READ_BYTES: Final = 16 << 20


def ensure_text(path: Path | str, text: bytes) -> None:
    """Make the file hold exactly this text. Readers see the old or the new file, never half of one."""
    if read_regular(path) == text:
        return
    draft = f"{path}.{secrets.token_hex(8)}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text)
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)  # noqa: PTH108
        raise


def read_regular(path: Path | str, max_bytes: int = MAX_READ_BYTES) -> bytes | None:
    """Content of a regular file; None when there is none: absent, a link, a device, a pipe, too large, unreadable."""
    opened = open_regular(path)
    if opened is None:
        return None
    fd, size = opened
    try:
        if size > max_bytes:
            return None
        # As large as it was, and what came meanwhile; most files are read by one call and known to end by a second.
        chunks, left = [], max_bytes
        while left and (chunk := os.read(fd, min(left, max(size, 4095) + 1))):
            chunks.append(chunk)
            left -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    except OSError:
        return None
    finally:
        os.close(fd)


def open_regular(path: Path | str) -> tuple[int, int] | None:
    """A descriptor of a regular file, and its size; None when there is none, or something else in its place."""
    try:
        # O_NONBLOCK: opening a pipe that somebody put there must not wait for its writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
    except OSError:
        os.close(fd)
        return None
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        return None
    return fd, found.st_size


def identity(path: str) -> tuple[int, int] | None:
    """(device, inode) of a real folder; None when there is none, or a link in its place."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def remove_tree(path: str, owned: tuple[int, int], *, aside: str | None = None) -> bool:
    """Remove the folder if it is `owned` (device, inode). Returns whether nothing is left at the path.

    It is renamed first, so that nobody who still knows the path meets a half-removed tree: into the folder `aside` on
    the same file system, else beside itself. Its name there follows from `owned`, so the next call finishes a removal
    that was cut short. Links inside are removed, never followed.
    """
    if identity(str(Path(path).parent)) is None:
        return not os.path.lexists(path)
    name, hidden = Path(path).name, removed_name(owned)
    with _open_folder(Path(path).parent) as parent, _open_folder(Path(aside or Path(path).parent)) as target:
        place = next((fd for fd in (target, parent) if identity_at(fd, hidden) == owned), None)
        if place is None and identity_at(parent, name) == owned:
            place = _move_aside(name, hidden, parent=parent, target=target)
            if identity_at(place, hidden) != owned:
                # Somebody exchanged the folder between the look and the rename: what we moved is not ours.
                os.rename(hidden, name, src_dir_fd=place, dst_dir_fd=parent)
                return False
        if place is not None:
            delete_folder(hidden, place)
    return not os.path.lexists(path)


def removed_name(owned: tuple[int, int]) -> str:
    """What the folder is called while it is deleted: whoever finds it there by its device and inode goes on."""
    return f".removed-{owned[0]:x}-{owned[1]:x}"


def _move_aside(name: str, hidden: str, *, parent: int, target: int) -> int:
    """Rename into the target folder, or beside itself where that is another file system; the folder it is in now."""
    try:
        os.rename(name, hidden, src_dir_fd=parent, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        os.rename(name, hidden, src_dir_fd=parent, dst_dir_fd=parent)
        return parent
    return target


@contextlib.contextmanager
def _open_folder(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def identity_at(parent: int, name: str) -> tuple[int, int] | None:
    """As `identity`, of a name below an open folder."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
