"""Moves an owned worktree out of its place and back, within its own folder, and deletes it.

A worktree on its way out has one of two names beside its place, both made from its device and inode:

- aside: nobody who knows its path meets it any more, and it can be judged in peace; it may still go back.
- going: it was judged, and may be deleted. Rename is the record of that decision, so a kill in the middle of the
  deletion is no doubt about what was half deleted.

Everything is done through the open parent folder, and only with the very folder that was made.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from coordinate_agents.worktrees.deletion import delete_folder
from coordinate_agents.worktrees.files import identity, identity_at, removed_name
from coordinate_agents.worktrees.model import Worktree

Stand = Literal["in-place", "aside", "going", "gone"]


def find(worktree: Worktree) -> Stand:
    """Where the very folder of the worktree is now; "gone" also when something else stands in its place."""
    if not Path(worktree.path).is_absolute() or not Path(worktree.path).name:
        return "gone"  # no place that the Runtime ever gives
    places: dict[Stand, str] = {
        "in-place": worktree.path,
        "aside": aside_path(worktree),
        "going": going_path(worktree),
    }
    owned = (worktree.device, worktree.inode)
    return next((stand for stand, path in places.items() if identity(path) == owned), "gone")


def place_of(worktree: Worktree, stand: Stand) -> str:
    """The folder of a worktree that is aside; of any other the place that it was made at."""
    return aside_path(worktree) if stand == "aside" else worktree.path


def aside_path(worktree: Worktree) -> str:
    return str(Path(worktree.path).with_name(_aside(worktree)))


def going_path(worktree: Worktree) -> str:
    return str(Path(worktree.path).with_name(_going(worktree)))


def move_aside(worktree: Worktree) -> bool:
    """Move the worktree from its place aside. False: what stood there was not it, and still stands there."""
    return _rename(worktree, Path(worktree.path).name, _aside(worktree))


def put_back(worktree: Worktree) -> bool:
    """Move the worktree from aside to its place. False: something else stands there, and nothing was moved."""
    if os.path.lexists(worktree.path):
        return False
    return _rename(worktree, _aside(worktree), Path(worktree.path).name)


def mark_going(worktree: Worktree) -> bool:
    """Decide that the worktree, which is aside, is deleted."""
    return _rename(worktree, _aside(worktree), _going(worktree))


def delete(worktree: Worktree) -> None:
    """Delete the worktree, which is going. Raises: OSError; what is left of it is still going."""
    with _parent(worktree) as parent:
        delete_folder(_going(worktree), parent)


def _rename(worktree: Worktree, old: str, new: str) -> bool:
    with _parent(worktree) as parent:
        if identity_at(parent, old) != (worktree.device, worktree.inode):
            return False
        os.rename(old, new, src_dir_fd=parent, dst_dir_fd=parent)
        if identity_at(parent, new) == (worktree.device, worktree.inode):
            os.fsync(parent)
            return True
        # Somebody exchanged the folder between the look and the rename: what we moved is not ours.
        os.rename(new, old, src_dir_fd=parent, dst_dir_fd=parent)
        return False


@contextlib.contextmanager
def _parent(worktree: Worktree) -> Iterator[int]:
    path = Path(worktree.path).parent
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.path.realpath(path) != str(path):
            raise OSError(errno.ELOOP, "is reached through a link", str(path))
        yield fd
    finally:
        os.close(fd)


def _aside(worktree: Worktree) -> str:
    return f".aside-{worktree.device:x}-{worktree.inode:x}"


def _going(worktree: Worktree) -> str:
    """The name that `remove_tree` gives, so that either finishes what the other began."""
    return removed_name((worktree.device, worktree.inode))
