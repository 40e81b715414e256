"""Bring configured files of the user's checkout into a fresh worktree: copies, and links for large shared folders.

Only paths that the base ignores may be brought: a copy of a tracked file would show up as the agent's change. Symbolic
links are never followed on either side; nothing that exists in the worktree is replaced.
"""

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from coordinate_agents.worktrees.errors import WorktreeError


def bring(root: Path, worktree: Path, *, copy: Sequence[str], link: Sequence[str]) -> tuple[str, ...]:
    """Copy and link the relative paths; return those brought, in order. A path absent in the root is skipped.

    Raises: WorktreeError SETUP_FAILED when a path leaves the checkout, passes a symbolic link, or exists already.
    """
    brought = []
    for name in (*copy, *link):
        if (source := _source(root, name)) is None:
            continue
        target = _target(worktree, name)
        try:
            if name in link:
                target.symlink_to(source)
            else:
                _copy(source, target)
        except (OSError, shutil.Error) as error:
            raise WorktreeError("SETUP_FAILED", f"cannot bring {name}: {error}.", kept=str(worktree)) from error
        brought.append(name)
    return tuple(brought)


def _source(root: Path, name: str) -> Path | None:
    _require_inside(root, name)
    path = root / name
    return path if os.path.lexists(path) else None


def _target(worktree: Path, name: str) -> Path:
    _require_inside(worktree, name)
    path = worktree / name
    if os.path.lexists(path):
        raise WorktreeError("SETUP_FAILED", f"cannot bring {name}: it is in the worktree already.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _require_inside(folder: Path, name: str) -> None:
    parts = Path(name).parts
    if Path(name).is_absolute() or ".." in parts or not parts or parts[0] == ".git":
        raise WorktreeError("SETUP_FAILED", f"cannot bring {name}: the path leaves the checkout.")
    parent = folder
    for part in parts[:-1]:
        parent = parent / part
        if parent.is_symlink():
            raise WorktreeError("SETUP_FAILED", f"cannot bring {name}: {parent.name} is a symbolic link.")


def _copy(source: Path, target: Path) -> None:
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISDIR(mode):
        shutil.copytree(source, target, symlinks=True)
    elif stat.S_ISREG(mode):
        shutil.copy2(source, target, follow_symlinks=False)
    else:
        raise WorktreeError("SETUP_FAILED", f"cannot bring {source.name}: it is neither a file, a folder nor a link.")
