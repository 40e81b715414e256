"""Proves that a worktree holds exactly the files of a commit, by what is remembered of how its files were written.

A file whose inode, size and times are as git wrote them is believed, as git does, unless it was written in the last
tick of the file system's clock before the layout was over; every other file is read and hashed. No conversion is done
here. What is not proved (other files, ignored ones too, repositories, line endings) is for git to look at.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.index_file import mode_and_id, parse_index, stat_data
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layouts import Layout
from coordinate_agents.worktrees.model import CommitId, Worktree
from coordinate_agents.worktrees.tree_objects import GITLINK_MODE, Entry

_MAX_READ_BYTES: Final = 8 << 20
_MAX_DEPTH: Final = 200


def is_surely(judge: Judge, worktree: Worktree, commit: CommitId, *, frozen: str) -> bool:
    """Whether the folder holds the files of the commit and nothing else. False: it is not known. No process."""
    layout = judge.layouts.get(worktree)
    if layout is None or not Frozen.parse(frozen).is_as_on_disk():
        return False
    expected = _expected(judge, layout, commit)
    return expected is not None and _Look(worktree.path, expected, layout.done_ns).holds_all()


def _expected(judge: Judge, layout: Layout, commit: CommitId) -> dict[bytes, bytes | Entry] | None:
    """Every file that the commit has, by path: what the index notes of it, or what is another one since."""
    noted = parse_index(layout.index, id_size=len(commit) // 2)
    changes = judge.trees.changes(judge.tree_of(layout.commit), judge.tree_of(commit))
    if noted is None or changes is None:
        return None
    expected: dict[bytes, bytes | Entry] = {**noted}
    for change in changes:
        if change.new is None:
            expected.pop(change.path, None)
        elif change.new.mode == GITLINK_MODE:
            return None
        else:
            expected[change.path] = change.new
    return expected


class _Look:
    """One walk over a folder, comparing every file with what is expected there."""

    def __init__(self, top: str, expected: Mapping[bytes, bytes | Entry], done_ns: int) -> None:
        self._top = os.fsencode(top)
        self._expected = expected
        self._done_ns = done_ns
        self._met = 0

    def holds_all(self) -> bool:
        try:
            return self._holds(b"", 0) and self._met == len(self._expected)
        except OSError:  # no permission, or gone meanwhile: git shall say
            return False

    def _holds(self, folder: bytes, depth: int) -> bool:
        """Whether everything below the folder is as expected. `.git` is no file of the worktree, below it is a sign."""
        if depth > _MAX_DEPTH:
            return False
        folders = []
        # By descriptor: a look at a file need not walk the whole way to it, which is half of its cost.
        fd = os.open(self._top + b"/" + folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    path = folder + os.fsencode(entry.name)
                    if entry.name == ".git":
                        if folder:
                            return False
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(path + b"/")
                    elif not self._is_expected(path, entry.stat(follow_symlinks=False)):
                        return False
        finally:
            os.close(fd)
        return all(self._holds(path, depth + 1) for path in folders)

    def _is_expected(self, path: bytes, found: os.stat_result) -> bool:
        wanted = self._expected.get(path)
        if wanted is None:
            return False
        self._met += 1
        mode = 0o100755 if found.st_mode & stat.S_IXUSR else 0o100644
        is_link = stat.S_ISLNK(found.st_mode)
        if not is_link and not stat.S_ISREG(found.st_mode):
            return False
        if isinstance(wanted, bytes):
            if not is_link and found.st_ctime_ns < self._done_ns and wanted.startswith(stat_data(mode, found)):
                return True
            wanted = Entry(*mode_and_id(wanted))
        place = os.fsdecode(self._top + b"/" + path)
        if is_link:
            return wanted.mode == "120000" and _hash(wanted.oid, os.fsencode(Path(place).readlink())) == wanted.oid
        if f"{mode:o}" != wanted.mode:
            return False
        data = read_regular(place, _MAX_READ_BYTES)
        return data is not None and _hash(wanted.oid, data) == wanted.oid


def _hash(like: str, data: bytes) -> str:
    algorithm = "sha1" if len(like) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
