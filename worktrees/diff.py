"""What differs between two commits, and setting single paths of a pristine worktree back to a commit."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import ChangedPath, CommitId, Worktree
from coordinate_agents.worktrees.tree_objects import TreeChange
from coordinate_agents.worktrees.values import value_class

_Kind = Literal["added", "modified", "deleted", "renamed", "copied", "type"]
_KINDS: Final[Mapping[str, _Kind]] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "type",
}
_DIFF_TIMEOUT_S: Final = 120.0


@value_class
class RawChange:
    """One line of a raw diff: `mode` and `oid` are the new side's (zeros when the path is gone)."""

    path: ChangedPath
    mode: str
    oid: str


def changed(judge: Judge, base: CommitId, head: CommitId) -> tuple[str, ...]:
    """Paths that differ, both sides of renames, sorted."""
    differing = judge.trees.changes(judge.tree_of(base), judge.tree_of(head))
    if differing is not None:
        return tuple(sorted(os.fsdecode(change.path) for change in differing))
    result = judge.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head)
    return tuple(sorted(set(result.fields())))


def raw_changes(judge: Judge, base: CommitId, head: CommitId) -> tuple[RawChange, ...]:
    """Every path that differs, renames found, in git's order. A process when there can be renames, or much differs."""
    differing = judge.trees.changes(judge.tree_of(base), judge.tree_of(head))
    if differing is not None and not _may_have_renames(differing):
        return tuple(_raw(change) for change in differing)
    fields = iter(judge.git("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "-M", base, head).fields())
    found = []
    for meta in fields:
        _, mode, _, oid, letter = meta.split(" ")
        first = next(fields)
        old, path = (first, next(fields)) if letter[0] in "RC" else (None, first)
        found.append(RawChange(ChangedPath(path, _KINDS.get(letter[0], "modified"), old), mode, oid))
    return tuple(found)


def _may_have_renames(changes: Sequence[TreeChange]) -> bool:
    """Git makes a rename of something that is gone and something that is new, and of nothing else."""
    return any(change.old is None for change in changes) and any(change.new is None for change in changes)


def _raw(change: TreeChange) -> RawChange:
    old, new = change.old, change.new
    path = os.fsdecode(change.path)
    if new is None:
        zeros = "0" * len(old.oid if old is not None else "")
        return RawChange(ChangedPath(path, "deleted"), "000000", zeros)
    if old is None:
        return RawChange(ChangedPath(path, "added"), new.mode, new.oid)
    # The first three digits are what kind of thing it is, the others its permissions.
    kind: _Kind = "type" if old.mode[:3] != new.mode[:3] else "modified"
    return RawChange(ChangedPath(path, kind), new.mode, new.oid)


def diff(judge: Judge, base: CommitId, head: CommitId, *, stat: bool, max_bytes: int) -> str:
    """A unified diff, or its summary, for people; cut at a line end before `max_bytes`, with a last line that says so.

    No external diff, text conversion or attribute of anybody takes part. Not UTF-8 is carried by surrogateescape.
    """
    form = "--stat=120" if stat else "--patch"
    with judge.temporary_index() as beside:
        # Written to a file: git has no option to stop, and a diff may be far larger than what is shown.
        target = Path(beside).with_name("diff")
        judge.git(
            "diff-tree", "-r", form, "--no-ext-diff", "--no-textconv", "--no-color", "-M", f"--output={target}",
            base, head, timeout_s=_DIFF_TIMEOUT_S,
        )  # fmt: skip
        with target.open("rb") as file:
            data = file.read(max_bytes + 1)
        size = target.stat().st_size
    if len(data) <= max_bytes:
        return os.fsdecode(data)
    kept = data[:max_bytes].rpartition(b"\n")[0]
    return f"{os.fsdecode(kept)}\n[cut: {size - len(kept)} of {size} bytes not shown]\n"


def restore_paths(
    judge: Judge, worktree: Worktree, source: CommitId, paths: Sequence[str], *, frozen: str | None = None
) -> tuple[str, ...]:
    """Set these paths of a pristine worktree to what they are in `source` (absent there: removed); returns them sorted.

    Nothing is written or removed through a symbolic link: a linked folder on the way is replaced by a real one.
    """
    wanted = sorted(set(paths))
    if not wanted:
        return ()
    with judge.temporary_index() as index:
        judge.git("read-tree", source, index=index)
        there = set(judge.git("ls-files", "-z", index=index).fields())
        for path in wanted:
            if path not in there:
                _remove(worktree.path, path)
        names = "".join(f"{path}\0" for path in wanted if path in there).encode("utf-8", "surrogateescape")
        if names:
            judge.git(
                "checkout-index",
                "-f",
                "-z",
                "--stdin",
                stdin=names,
                index=index,
                work_tree=worktree.path,
                frozen=frozen,
            )
    return tuple(wanted)


def _remove(top: str, path: str) -> None:
    """Remove one file below `top`, through real folders only; nothing when it is not there."""
    *folders, name = path.split("/")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), contextlib.ExitStack() as opened:
        fd = _open_folder(opened, top, None)
        for folder in folders:
            try:
                fd = _open_folder(opened, folder, fd)
            except OSError:
                return
        with contextlib.suppress(IsADirectoryError, PermissionError):
            os.unlink(name, dir_fd=fd)


def _open_folder(opened: contextlib.ExitStack, name: str, parent: int | None) -> int:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    opened.callback(os.close, fd)
    return fd
