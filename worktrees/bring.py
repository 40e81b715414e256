"""Bring configured files of the user's checkout into a worktree: copies, and links for large shared folders.

Only paths that the base lacks may be brought: a copy of a tracked file would show up as the agent's change. Symbolic
links are never followed on either side; nothing that exists in the worktree is replaced.

What is there already was brought by an earlier attempt, or by a setup that was killed half way: it stays as it is. So
nothing may ever be there in part: a copy gets its name only when it is whole.
"""

import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError

# A copy that is not whole yet has this before its name; one that a killed process left is made anew.
UNFINISHED: Final = ".coordinate-agents-bringing-"


def bring(
    root: Path, worktree: Path, *, copy: Sequence[str], link: Sequence[str], is_tracked: Callable[[str], bool]
) -> tuple[str, ...]:
    """Copy and link the relative paths; return those brought now, in order. A path absent in the root is skipped.

    `is_tracked` is asked about paths that exist in the worktree: whether the base has the file, or files below it.
    Raises: WorktreeError SETUP_FAILED when a path leaves the checkout, passes a symbolic link, or is tracked.
    """
    brought = []
    for name in (*copy, *link):
        if (source := _source(root, name)) is None:
            continue
        _require_inside(worktree, name)
        target = worktree / name
        if os.path.lexists(target):
            if is_tracked(name):
                raise WorktreeError("SETUP_FAILED", f"cannot bring {name}: the base has it.")
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
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
    unfinished = target.with_name(f"{UNFINISHED}{target.name}")
    if unfinished.is_dir() and not unfinished.is_symlink():
        shutil.rmtree(unfinished)
    else:
        unfinished.unlink(missing_ok=True)
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        unfinished.symlink_to(source.readlink())
    elif stat.S_ISDIR(mode):
        shutil.copytree(source, unfinished, symlinks=True)
    elif stat.S_ISREG(mode):
        shutil.copy2(source, unfinished, follow_symlinks=False)
    else:
        raise WorktreeError("SETUP_FAILED", f"cannot bring {source.name}: it is neither a file, a folder nor a link.")
    unfinished.rename(target)
