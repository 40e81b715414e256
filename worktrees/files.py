"""Writes and removes files that the Runtime owns, never through a link that somebody planted.

A file is replaced by rename; a tree is removed through directory descriptors, and only when it still is the very folder
that was made. It decides nothing about what is owned.
"""

import contextlib
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import Final

MAX_READ_BYTES: Final = 16 << 20


def ensure_text(path: Path, text: bytes) -> None:
    """Make the file hold exactly this text. Readers see the old or the new file, never half of one."""
    if read_regular(path) == text:
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def read_regular(path: Path, max_bytes: int = MAX_READ_BYTES) -> bytes | None:
    """Content of a regular file; None when there is none: absent, a link, a device, a pipe, too large, unreadable."""
    try:
        # O_NONBLOCK: opening a pipe that somebody put there must not wait for its writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > max_bytes:
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(max_bytes)
    except OSError:
        return None
    finally:
        os.close(fd)


def identity(path: str) -> tuple[int, int] | None:
    """(device, inode) of a real folder; None when there is none, or a link in its place."""
    try:
        found = Path(path).lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def remove_tree(path: str, owned: tuple[int, int]) -> bool:
    """Remove the folder if it is `owned` (device, inode). Returns whether nothing is left at the path.

    It is renamed aside first, so that nobody who still knows the path writes into a half-removed tree. Links inside are
    removed, never followed.
    """
    if identity(path) is None:
        return not os.path.lexists(path)
    parent = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name, aside = Path(path).name, f".removed-{secrets.token_hex(8)}"
        if _identity_at(parent, name) != owned:
            return False
        os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
        if _identity_at(parent, aside) != owned:
            # Somebody exchanged the folder between the look and the rename: what we moved is not ours, so it goes back.
            os.rename(aside, name, src_dir_fd=parent, dst_dir_fd=parent)
            return False
        _make_removable(aside, parent)
        shutil.rmtree(aside, dir_fd=parent)
        return True
    finally:
        os.close(parent)


def _identity_at(parent: int, name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _make_removable(name: str, parent: int) -> None:
    """Give the owner back the right to empty folders that a check or an agent made read-only."""
    for _, _, _, fd in os.fwalk(name, dir_fd=parent, follow_symlinks=False):
        mode = os.fstat(fd).st_mode
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, stat.S_IMODE(mode) | stat.S_IRWXU)
