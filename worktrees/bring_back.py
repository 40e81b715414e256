"""Brings a removed worktree back: on its branch, and with everything that a discard commit holds, byte for byte.

The worktree is made like any other, so a killed call is finished by the next one with the same nonce. Then the files
that differ from its branch are written as they were, without filters or line endings, and the staged versions go back
into its index. What a commit cannot hold is not back (`set_aside` says what); an operation half done is not resumed.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from coordinate_agents.worktrees import create, set_aside
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.diff import raw_changes
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layout import install_index
from coordinate_agents.worktrees.model import (
    BringBackRequest,
    BroughtBack,
    CommitId,
    Worktree,
    branch_name,
    branch_ref,
)
from coordinate_agents.worktrees.ownership import admin_dir
from coordinate_agents.worktrees.position import read_position
from coordinate_agents.worktrees.refs import read_ref
from coordinate_agents.worktrees.rules import read_blobs

# As much as can be set aside, with git's own lines; and so many files in memory at a time.
_MAX_BYTES: Final = set_aside.MAX_BYTES + (1 << 20)
_AT_ONCE: Final = 64
_TIMEOUT_S: Final = 600.0


def bring_back(judge: Judge, request: BringBackRequest, *, root: str, frozen: str) -> BroughtBack:
    """The worktree again. Raises: WORKTREE_CONFLICT when its branch moved meanwhile or its place is taken."""
    held = set_aside.read(judge, request.discarded) if request.discarded is not None else None
    wanted = (held.tip or held.head) if held is not None else request.tip
    tip = read_ref(judge.facts.common_dir, branch_ref(request.graph, request.slug))
    if held is not None and tip is not None and tip != wanted:
        branch = branch_name(request.graph, request.slug)
        raise WorktreeError(
            "WORKTREE_CONFLICT",
            f"Branch {branch} moved from {wanted} to {tip} since its worktree was set aside.",
            kept=f"everything that was set aside, as commit {held.commit}",
            next=f"git show --stat {held.commit}",
        )
    worktree = create.create(
        judge,
        request.graph,
        request.slug,
        request.base,
        root=root,
        frozen=frozen,
        nonce=request.nonce,
        resume_from=tip or wanted,
    )
    crash_point("undo.created")
    if held is None:
        return BroughtBack(worktree)
    return BroughtBack(worktree, _fill(judge, worktree, held, frozen=frozen))


def _fill(judge: Judge, worktree: Worktree, held: set_aside.SetAside, *, frozen: str) -> tuple[str, ...]:
    """Write everything that was set aside into the worktree; what is not as it was, in words."""
    stands_at = read_position(judge.facts, worktree).head
    assert stands_at is not None
    _write_files(judge, worktree, stands_at, held.commit)
    crash_point("undo.filled")
    if held.is_detached and stands_at != held.head:
        git_dir = admin_dir(judge.facts, worktree)
        judge.user_git("update-ref", "--no-deref", "HEAD", held.head, stands_at, git_dir=git_dir)
    _write_index(judge, worktree, held, frozen=frozen)
    lost = []
    if held.other_branch is not None:
        name = held.other_branch.removeprefix("refs/heads/")
        lost.append(f"its HEAD on {name}, which is detached at that commit now")
    if held.operation is not None:
        lost.append(f"the {held.operation} that was in progress; its commits are pinned")
    return tuple(lost)


def _write_files(judge: Judge, worktree: Worktree, now: CommitId, wanted: CommitId) -> None:
    changes = raw_changes(judge, now, wanted)
    for change in changes:  # a new file may stand where a folder of these was
        for path in (change.path.path, change.path.old):
            if path is not None:
                _delete(Path(worktree.path), path)
    there = [change for change in changes if change.path.kind != "deleted"]
    for start in range(0, len(there), _AT_ONCE):
        some = there[start : start + _AT_ONCE]
        blobs = read_blobs(judge, [change.oid for change in some], max_bytes=_MAX_BYTES)
        for change in some:
            # Nobody works here yet, and what stood in the way of these folders is gone.
            Path(worktree.path, change.path.path).parent.mkdir(parents=True, exist_ok=True)
            with _parent(worktree.path, change.path.path) as parent:
                _write(PurePosixPath(change.path.path).name, parent, change.mode, blobs[change.oid])


def _write_index(judge: Judge, worktree: Worktree, held: set_aside.SetAside, *, frozen: str) -> None:
    """The staged versions where they differed, else the head that it stood on."""
    with judge.temporary_index() as index:
        judge.git("read-tree", held.index_commit or held.head, index=index)
        judge.git(
            *("update-index", "-q", "--refresh"),
            index=index,
            work_tree=worktree.path,
            frozen=frozen,
            timeout_s=_TIMEOUT_S,
            ok=(0, 1),
        )
        install_index(admin_dir(judge.facts, worktree), Path(index).read_bytes(), worktree.path)


def _delete(top: Path, path: str) -> None:
    """Delete a file of the worktree, and the folders that are empty then."""
    with contextlib.suppress(OSError):  # not there, or a folder with more in it
        with _parent(str(top), path) as parent:
            os.unlink(PurePosixPath(path).name, dir_fd=parent)
        for folder in list(PurePosixPath(path).parents)[:-1]:
            (top / folder).rmdir()


@contextlib.contextmanager
def _parent(top: str, path: str) -> Iterator[int]:
    """The open folder of a path below the worktree; no link is followed. Raises: OSError when it is not there."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(top, flags)
    try:
        for part in PurePosixPath(path).parts[:-1]:
            deeper = os.open(part, flags, dir_fd=fd)
            os.close(fd)
            fd = deeper
        yield fd
    finally:
        os.close(fd)


def _write(name: str, parent: int, mode: str, data: bytes) -> None:
    if mode == "120000":
        os.symlink(data, os.fsencode(name), dir_fd=parent)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o777 if mode == "100755" else 0o666, dir_fd=parent)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
