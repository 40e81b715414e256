"""Deletes a folder with everything in it through directory descriptors: no link is followed, no mount entered.

Rule: every folder is opened below an open one, without following links, and must be on the same file system. The
problem this causes: a tree deeper than the limit of open descriptors could not be deleted. Next rule: a folder that is
not empty is first moved up to the top, so two descriptors are enough for any depth. There several are emptied side by
side: 60,000 files that took two minutes one by one, on a disk that discards what is freed, took seven seconds.

What cannot be deleted stays, and everything else goes; the next call meets only the rest.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

_AT_A_TIME: Final = 8
_RIGHTS: Final = stat.S_IRWXU
# `O_PATH` opens a folder that its owner may not read; other systems have to change its mode by name.
_O_PATH: Final = getattr(os, "O_PATH", None)


def delete_folder(name: str, parent: int) -> None:
    """Delete the folder `name` below the open folder; no error when it is gone, or goes meanwhile.

    Raises: OSError, the first one that was met, when something could not be deleted; then the folder is still there.
    """
    try:
        top = _open_folder(name, parent, None)
    except FileNotFoundError:
        return
    try:
        failed = _empty(top)
    finally:
        os.close(top)
    if failed is not None:
        raise failed
    _ignore_gone(os.rmdir, name, parent)


def _empty(top: int) -> OSError | None:
    """Delete what is in the open folder; the first error, or None."""
    device = os.fstat(top).st_dev
    failed, todo = _empty_level(top, top)
    pool = ThreadPoolExecutor(_AT_A_TIME)
    try:
        while todo:
            # Folders that stand side by side: a disk that is slow at one name is not slower at several.
            found = list(pool.map(partial(_remove_level, top=top, device=device), todo))
            failed = failed or next((wrong for wrong, _ in found if wrong is not None), None)
            todo = [name for _, lifted in found for name in lifted]
    finally:
        pool.shutdown(cancel_futures=True)
    return failed


def _remove_level(name: str, *, top: int, device: int) -> tuple[OSError | None, list[str]]:
    """Delete the files of the folder `name` in `top`, and it; what stood in it may stand in `top` now, under these."""
    try:
        folder = _open_folder(name, top, device)
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return error, []
    try:
        wrong, lifted = _empty_level(folder, top)
    finally:
        os.close(folder)
    if wrong is None:
        try:
            _ignore_gone(os.rmdir, name, top)
        except OSError as error:
            wrong = error
    return wrong, lifted


def _empty_level(folder: int, top: int) -> tuple[OSError | None, list[str]]:
    """Delete the files of a folder; its folders are deleted when empty, else they stand in `top` under these names."""
    failed: OSError | None = None
    folders: list[str] = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        try:
            if not is_folder:
                _ignore_gone(os.unlink, name, folder)
            elif folder == top:
                folders.append(name)
            elif not _is_removed_empty(name, folder):
                folders.append(_lift(name, folder, top))
        except OSError as error:
            failed = failed or error
    return failed, folders


def _is_removed_empty(name: str, folder: int) -> bool:
    try:
        _ignore_gone(os.rmdir, name, folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _lift(name: str, folder: int, top: int) -> str:
    """Move a folder into the top, under a name that nothing there has."""
    _give_rights(name, folder)  # the move writes its `..`
    lifted = f".lifted-{secrets.token_hex(12)}"
    os.rename(name, lifted, src_dir_fd=folder, dst_dir_fd=top)
    return lifted


def _open_folder(name: str, parent: int, device: int | None) -> int:
    """Open a folder for listing and deleting. Raises: OSError EXDEV when it is on another file system."""
    if device is not None and os.stat(name, dir_fd=parent, follow_symlinks=False).st_dev != device:
        raise OSError(errno.EXDEV, "another file system is mounted there", name)
    _give_rights(name, parent)
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    if device is not None and os.fstat(fd).st_dev != device:
        os.close(fd)
        raise OSError(errno.EXDEV, "another file system is mounted there", name)
    return fd


def _give_rights(name: str, parent: int) -> None:
    """Give the owner back the rights on a folder that a check or an agent took away."""
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & _RIGHTS == _RIGHTS:
        return
    mode = stat.S_IMODE(found.st_mode) | _RIGHTS
    if _O_PATH is None:
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    fd = os.open(name, _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        # fchmod does not take such a descriptor; the name of the descriptor is no link that an agent could plant.
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101
    except PermissionError:
        pass  # another user's folder: opening or deleting it says what is wrong
    finally:
        os.close(fd)


def _ignore_gone(function: Callable[..., None], name: str, folder: int) -> None:
    """Another process may delete what we delete: the user's own prune, a program that still cleans up."""
    try:
        function(name, dir_fd=folder)
    except FileNotFoundError:
        return
