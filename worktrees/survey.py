"""One walk over a worktree's folders: where repositories and links to folders lie. Files only; follows no link."""

import os
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.reffiles import read_small
from coordinate_agents.worktrees.values import value_class

MAX_FOLDERS: Final = 1_000_000


@value_class
class Found:
    """A folder below the worktree with a `.git` entry; `git_dir` is None when that leads nowhere."""

    path: str
    git_dir: Path | None


@value_class
class Survey:
    """What the walk met, sorted. `folder_links` are symbolic links that lead to folders: git may look through them.

    `unreadable` are folders that could not be looked into; git leaves them out without a word.
    """

    repositories: tuple[Found, ...]
    folder_links: tuple[str, ...]
    unreadable: tuple[str, ...]


def survey(top: str) -> Survey:
    """Walk every folder below `top`, ignored ones too. Cost: one look per folder.

    Raises: WorktreeError when there are too many folders to be sure.
    """
    repositories: list[str] = []
    links: list[str] = []
    unreadable: list[str] = []
    todo = [""]
    count = 0
    while todo:
        folder = todo.pop()
        count += 1
        if count > MAX_FOLDERS:
            raise WorktreeError("DIRTY_WORKTREE", f"More than {MAX_FOLDERS} folders in {top}: it was not judged.")
        entries = _entries(top, folder)
        if entries is None:
            unreadable.append(folder)
        for entry in entries or ():
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name == ".git":
                if folder:
                    repositories.append(folder)
            elif entry.is_symlink():
                if _is_folder(entry):
                    links.append(path)
            elif entry.is_dir(follow_symlinks=False):
                todo.append(path)
    found = (Found(path, _git_dir(Path(top, path))) for path in sorted(repositories))
    return Survey(tuple(found), tuple(sorted(links)), tuple(sorted(unreadable)))


def _entries(top: str, folder: str) -> list["os.DirEntry[str]"] | None:
    try:
        with os.scandir(Path(top, folder)) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:  # no permission, or a path that is too long
        return None


def _is_folder(link: "os.DirEntry[str]") -> bool:
    try:
        return link.is_dir()
    except OSError:  # a loop, or a target below a file
        return False


def _git_dir(folder: Path) -> Path | None:
    entry = folder / ".git"
    if entry.is_dir() and not entry.is_symlink():
        return entry
    text = read_small(entry)
    if text is None or not text.startswith("gitdir: "):
        return None
    target = Path(folder, text[len("gitdir: ") :].rstrip("\n"))
    return target if target.is_dir() else None
