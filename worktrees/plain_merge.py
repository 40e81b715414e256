"""Merges two commits that touch different files, on tree objects alone: what `git merge-tree` would write.

Exact or None, and then git merges. Done here only where git's answer needs no look into any file: one merge base; both
sides add files, or change files in place that the other side leaves alone; nothing is deleted (a rename begins with a
deletion), no kind of file changes, no submodule, no file where the other side has a folder.
"""

from collections.abc import Callable, Collection
from typing import Final

from coordinate_agents.worktrees.commit_objects import CommitReader
from coordinate_agents.worktrees.history import History
from coordinate_agents.worktrees.model import CommitId
from coordinate_agents.worktrees.tree_objects import (
    GITLINK_MODE,
    TREE_MODE,
    TooLargeError,
    Tree,
    TreeChange,
    TreeReader,
    tree_bytes,
)

_REGULAR: Final = ("100644", "100755")
_EMPTY: Final[Tree] = {}

# Writes a tree object with these bytes; its id.
Write = Callable[[bytes], str]


def merge_plainly(
    commits: CommitReader, trees: TreeReader, ours: CommitId, theirs: CommitId, *, above: CommitId, write: Write
) -> str | None:
    """The tree of the merge; None: git must say. Both commits contain `above`, or None is the answer.

    Raises: WorktreeError when a tree cannot be written.
    """
    base = merge_base(commits, ours, theirs, above=above)
    known = [commits.read(oid) for oid in (base, ours, theirs)] if base is not None else []
    start, left, right = (None if commit is None else commit.tree for commit in known) if known else (None,) * 3
    if start is None or left is None or right is None:
        return None
    ours_changed, theirs_changed = trees.changes(start, left), trees.changes(start, right)
    if ours_changed is None or theirs_changed is None or not _are_apart(ours_changed, theirs_changed):
        return None
    try:
        return _Merge(trees, write).of(start, left, right)
    except TooLargeError:
        return None


def merge_base(commits: CommitReader, ours: CommitId, theirs: CommitId, *, above: CommitId) -> CommitId | None:
    """The only best common ancestor of two commits that both contain `above`; None: there are several, or ask git."""
    between = commits.between(above, [ours, theirs])
    if between is None:
        return None
    history = History(above, {commit.id: commit for commit in between})
    common = history.ancestors([ours]) & history.ancestors([theirs])
    # Best are those that no other common one contains. What `above` contains is contained by all of them.
    below = {parent for oid in common if oid in history.commits for parent in history.commits[oid].parents}
    best = {oid for oid in common if oid not in below}
    return best.pop() if len(best) == 1 else None


def _are_apart(ours: Collection[TreeChange], theirs: Collection[TreeChange]) -> bool:
    """Whether git would take both sides as they are, without a look at any content."""
    if not all(_is_plain(change) for change in (*ours, *theirs)):
        return False
    left, right = {change.path for change in ours}, {change.path for change in theirs}
    # With nothing deleted, a file and a folder of one name can only be new on both sides.
    return not left & right and not left & _folders(right) and not right & _folders(left)


def _is_plain(change: TreeChange) -> bool:
    old, new = change.old, change.new
    if new is None or GITLINK_MODE in (new.mode, old.mode if old is not None else ""):
        return False
    return old is None or old.mode == new.mode or (old.mode in _REGULAR and new.mode in _REGULAR)


def _folders(paths: Collection[bytes]) -> set[bytes]:
    return {path[:at] for path in paths for at in range(len(path)) if path[at : at + 1] == b"/"}


class _Merge:
    """One three-way merge of trees whose differences are apart."""

    def __init__(self, trees: TreeReader, write: Write) -> None:
        self._trees = trees
        self._write = write

    def of(self, base: str | None, ours: str, theirs: str) -> str:
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        start = _EMPTY if base is None else self._trees.read(base)
        left, right = self._trees.read(ours), self._trees.read(theirs)
        merged = dict(left)
        for name, entry in right.items():
            mine, was = left.get(name), start.get(name)
            if entry in (mine, was):
                continue
            if mine == was:
                merged[name] = entry
            else:  # both differ: apart as they are, both are folders
                before = was[1] if was is not None and was[0] == TREE_MODE else None
                if mine is None or (mine[0], entry[0]) != (TREE_MODE, TREE_MODE):
                    raise TooLargeError
                merged[name] = (TREE_MODE, self.of(before, mine[1], entry[1]))
        return self._write(tree_bytes(merged))
