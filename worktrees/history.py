"""Commits between a base and heads, read at once: who contains whom, and which heads are needed.

Answers come from parents alone, in the judge repository (no grafts, replace refs, commit-graph) and never from dates:
every commit that base does not contain is listed, a few by reading their objects, more by `rev-list`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from coordinate_agents.worktrees.commit_objects import Commit
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, Head
from coordinate_agents.worktrees.tree_objects import loose_paths
from coordinate_agents.worktrees.values import value_class

# More commits than any attempt makes; past it the walk is left to git.
MAX_COMMITS: Final = 50_000
_MAX_BYTES: Final = 256 << 20
_TIMEOUT_S: Final = 120.0
BASE_NAME: Final = "base"
_FORMAT: Final = "--format=%H%x00%T%x00%ct%x00%P%x00%s"


@value_class
class History:
    """Every commit that the heads contain and base does not, newest first. `is_cut`: there were more."""

    base: CommitId
    commits: Mapping[CommitId, Commit]
    is_cut: bool = False

    def ancestors(self, starts: Iterable[CommitId]) -> set[CommitId]:
        """The given commits and all their ancestors as far as they are listed, with the unlisted parents met there."""
        seen: set[CommitId] = set()
        todo = list(starts)
        while todo:
            oid = todo.pop()
            if oid not in seen:
                seen.add(oid)
                commit = self.commits.get(oid)
                if commit is not None:
                    todo.extend(commit.parents)
        return seen


def read_history(judge: Judge, base: CommitId, heads: Sequence[CommitId]) -> History:
    """The history from base to the heads. A process when it is long. Raises: WorktreeError when one cannot be read."""
    if not judge.is_shallow:  # a boundary cuts history, which the objects do not show
        short = judge.commits.between(base, heads)
        if short is not None:
            return History(base, {commit.id: commit for commit in short})
    return _read(judge, base, heads, ())


def read_complete_history(judge: Judge, base: CommitId, heads: Sequence[CommitId]) -> History:
    """The same, after every object of base..heads was found. Raises: WorktreeError when one is missing.

    `merge-tree` takes a missing tree for an empty one and exits 0 (git 2.39, seen), so it is asked only after this.
    """
    short = None if judge.is_shallow else judge.commits.between(base, heads)
    added = None if short is None else judge.trees.added(base, short)
    if short is not None and added is not None and loose_paths(judge.user_objects, added) is not None:
        return History(base, {commit.id: commit for commit in short})
    return _read(judge, base, heads, ("--objects", "--no-object-names"))


def needed(judge: Judge, history: History, heads: Sequence[Head]) -> tuple[Head, ...]:
    """The heads that no other head and not base contains, in the given order; base first when no head contains it.

    Of two names for one commit the first is kept. Exact: when dates or the bound make the list doubtful git is asked.
    """
    unique = tuple(
        {head.commit: head for head in reversed(heads)}[oid] for oid in dict.fromkeys(h.commit for h in heads)
    )
    proper = history.ancestors(parent for head in unique for parent in _parents(history, head.commit))
    is_base_inside = history.base in proper or any(head.commit == history.base for head in unique)
    listed = tuple(head for head in unique if head.commit in history.commits)
    if history.is_cut or (listed and not is_base_inside):
        # Base is no ancestor of any head: with odd dates rev-list may list what base contains after all.
        return _independent(judge, history.base, unique)
    kept = tuple(head for head in listed if head.commit not in proper)
    return kept or (Head(BASE_NAME, history.base),)


def missing_ancestors(judge: Judge, commit: CommitId, ancestors: Sequence[CommitId]) -> tuple[CommitId, ...]:
    """The given commits that `commit` does not contain, missing and damaged ones included, in the given order."""
    wanted = tuple(dict.fromkeys(ancestors))
    present = [oid for oid in wanted if judge.commit(oid) == oid]
    outside: set[CommitId] = set()
    if present:
        # --no-walk would ignore the exclusion; every commit that is listed is not contained in `commit`.
        asked = "".join(f"{oid}\n" for oid in present) + f"^{commit}\n"
        outside = set(judge.git("rev-list", "--stdin", stdin=asked.encode()).lines())
    doubtful = [oid for oid in present if oid in outside]
    confirmed = {oid for oid in doubtful if not judge.is_ancestor(oid, commit)}
    return tuple(oid for oid in wanted if oid not in present or oid in confirmed)


def _read(judge: Judge, base: CommitId, heads: Sequence[CommitId], options: Sequence[str]) -> History:
    asked = "".join(f"{oid}\n" for oid in heads) + f"^{base}\n"
    limit = f"--max-count={MAX_COMMITS + 1}"
    args = ["rev-list", "--no-commit-header", limit, *options, _FORMAT, "--stdin"]
    listed = judge.git(*args, stdin=asked.encode(), max_bytes=_MAX_BYTES, timeout_s=_TIMEOUT_S).lines()
    # Objects that are no commits are bare ids.
    commits = [_parse(line) for line in listed if "\0" in line]
    return History(base, {commit.id: commit for commit in commits[:MAX_COMMITS]}, len(commits) > MAX_COMMITS)


def _parse(line: str) -> Commit:
    oid, tree, date, parents, subject = line.split("\0", 4)
    return Commit(oid, tree, int(date) if date.isdigit() else 0, tuple(parents.split()), subject)


def _parents(history: History, oid: CommitId) -> tuple[CommitId, ...]:
    commit = history.commits.get(oid)
    return () if commit is None else commit.parents


def _independent(judge: Judge, base: CommitId, heads: Sequence[Head]) -> tuple[Head, ...]:
    ids = list(dict.fromkeys([base, *(head.commit for head in heads)]))
    kept = set(judge.git("merge-base", "--independent", *ids).lines())
    if not kept:
        raise WorktreeError("INTERNAL_ERROR", f"git named no independent commit of {len(ids)}.")
    first = (Head(BASE_NAME, base),) if base in kept and all(head.commit != base for head in heads) else ()
    return first + tuple(head for head in heads if head.commit in kept)
