"""Finds the repository that a command means: from a folder inside it, a Runtime worktree, its .git, or through a link.

Reads a few small files and runs nothing, so that a read verb costs no git process. What git itself thinks of the
repository (owner, format, bare or not) is asked by `worktrees` when a verb needs more than the state folder.
"""

import contextlib
import os
from typing import Final, NamedTuple

from coordinate_agents.graph.errors import GraphError

# os.path: links are joined and compared as the text that git wrote.
# ruff: noqa: PTH110, PTH112, PTH113, PTH118, PTH119, PTH120, PTH123

STATE_FOLDER: Final = "coordinate-agents"
# A path longer than this is no path; a `.git` file holds one line.
_MAX_LINK_BYTES: Final = 8192


class Place(NamedTuple):
    """Where a command works. All paths absolute, links resolved.

    `root` is the user's checkout (for a bare repository its git folder). `git_dir` is that checkout's own, `common_dir`
    the one that all its worktrees share. `runtime_worktree` is set when the command was started inside a worktree that
    the Runtime made; `root` is then the user's repository all the same.
    """

    root: str
    git_dir: str
    common_dir: str
    runtime_worktree: str | None = None

    @property
    def state_dir(self) -> str:
        return f"{self.common_dir}/{STATE_FOLDER}"

    def tip_of(self, ref: str) -> str | None:
        """The commit of a ref by its full name, from its file or the packed ones; None when git would have to say."""
        with contextlib.suppress(OSError):
            with open(f"{self.common_dir}/{ref}", encoding="ascii", errors="replace") as file:
                text = file.read(_MAX_LINK_BYTES).strip()
            return text if _is_hash(text) else None
        with contextlib.suppress(OSError), open(f"{self.common_dir}/packed-refs", "rb") as file:
            wanted = b" " + os.fsencode(ref)
            for line in file:
                if line.rstrip(b"\n").endswith(wanted) and _is_hash(found := line.partition(b" ")[0].decode("latin-1")):
                    return found
        return None


def _is_hash(text: str) -> bool:
    return len(text) in (40, 64) and all(letter in "0123456789abcdef" for letter in text)


def discover(start: str) -> Place:
    """The repository that holds `start`. Raises: NOT_A_REPOSITORY, in one line that names the folder."""
    given = os.path.realpath(start)
    if not os.path.isdir(given):
        what = "is not a folder" if os.path.exists(given) else "does not exist"
        raise GraphError("NOT_A_REPOSITORY", f"{start} {what}.", next="name a folder of a git repository with --root")
    folder = given
    while True:
        place = _place_at(folder)
        if place is not None:
            return place
        parent = os.path.dirname(folder)
        if parent == folder:
            raise GraphError(
                "NOT_A_REPOSITORY",
                f"{given} is not inside a git repository.",
                next="change into the repository, or name it with --root DIR",
            )
        folder = parent


def _place_at(folder: str) -> Place | None:
    """The repository whose checkout or git folder is exactly this folder; None when it is neither."""
    dot_git = f"{folder}/.git"
    if os.path.isdir(dot_git) and _is_git_dir(dot_git):
        return _place(folder, os.path.realpath(dot_git))
    if os.path.isfile(dot_git):
        git_dir = _linked(dot_git, folder)
        if git_dir is not None and _is_git_dir(git_dir):
            return _place(folder, git_dir)
        raise GraphError(
            "NOT_A_REPOSITORY",
            f"{dot_git} does not lead to a git folder.",
            next="repair the link (git worktree repair), or name the repository with --root DIR",
        )
    if _is_git_dir(folder):
        return _inside_git_dir(folder)
    return None


def _inside_git_dir(git_dir: str) -> Place:
    """A command started inside a git folder means the checkout that belongs to it."""
    checkout = _line(f"{git_dir}/gitdir")
    if checkout is not None:  # <common dir>/worktrees/<name>: names the checkout's .git file
        return _place(os.path.dirname(os.path.join(git_dir, checkout)), git_dir)
    return _place(_main_checkout(git_dir), git_dir)


def _place(root: str, git_dir: str) -> Place:
    common = _common_dir(git_dir)
    if common != git_dir and _is_runtime_made(git_dir):
        return Place(_main_checkout(common), common, common, runtime_worktree=os.path.realpath(root))
    return Place(os.path.realpath(root), git_dir, common)


def _main_checkout(common_dir: str) -> str:
    """The main checkout of a git folder; the folder itself when it has none (bare)."""
    if os.path.basename(common_dir) == ".git":
        return os.path.dirname(common_dir)
    configured = _configured_worktree(common_dir)  # submodules and --separate-git-dir
    return os.path.realpath(os.path.join(common_dir, configured)) if configured else common_dir


def _configured_worktree(git_dir: str) -> str | None:
    """`core.worktree` as git writes it; one key in the one file that git itself makes."""
    section = ""
    try:
        with open(f"{git_dir}/config", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return None
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section = line.lower()
        elif section == "[core]":
            key, _, value = line.partition("=")
            if key.strip().lower() == "worktree":
                return value.strip().strip('"')
    return None


def _is_runtime_made(git_dir: str) -> bool:
    """Whether the linked worktree carries the Runtime's lock, or its branch. Only says where a command was started;
    who owns a worktree stands in the database."""
    reason = _line(f"{git_dir}/locked") or ""
    head = _line(f"{git_dir}/HEAD") or ""
    return reason.startswith(STATE_FOLDER) or head.startswith(f"ref: refs/heads/{STATE_FOLDER}/")


def _common_dir(git_dir: str) -> str:
    common = _line(f"{git_dir}/commondir")
    return os.path.realpath(os.path.join(git_dir, common)) if common else git_dir


def _linked(dot_git: str, folder: str) -> str | None:
    line = _line(dot_git)
    if line is None or not line.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(folder, line[len("gitdir:") :].strip()))


def _is_git_dir(path: str) -> bool:
    """Git's own test (setup.c, is_git_directory): HEAD, and objects and refs here or in the common folder."""
    if not os.path.lexists(f"{path}/HEAD"):
        return False
    common = _common_dir(path)
    return os.path.isdir(f"{common}/objects") and os.path.isdir(f"{common}/refs")


def _line(path: str) -> str | None:
    """The file's text without its last newline; paths may hold newlines. None when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read(_MAX_LINK_BYTES)
    except OSError:
        return None
    return text.removesuffix("\n")
