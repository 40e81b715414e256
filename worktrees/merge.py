"""Merges commits in the judge repository: a left fold of two-parent merges, the same hash for the same inputs.

Nothing of the user's configuration, branch, hooks, identity or signing takes part; of attributes only the harmless ones
of the graph's base. The commits are written into the user's object store, without a ref: the caller pins the result.
A conflict is a value; an object that cannot be read is an error (git exits 1 for both).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from coordinate_agents.worktrees.commit_objects import Commit
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.judge_settings import RUNTIME_EMAIL, RUNTIME_NAME
from coordinate_agents.worktrees.model import CommitId, Head, MergeConflict
from coordinate_agents.worktrees.plain_merge import merge_plainly
from coordinate_agents.worktrees.resolutions import by_parents
from coordinate_agents.worktrees.rules import lines_file, rules_of
from coordinate_agents.worktrees.values import value_class

# When a conflict is with a combination, heads past this number are not tried alone.
MAX_PAIRS_TRIED: Final = 64
MAX_CONFLICT_PATHS: Final = 1000
_MERGE_TIMEOUT_S: Final = 300.0
# git writes loose objects without fsync otherwise; a base that an agent builds on must survive a power cut.
_DURABLE: Final = ("-c", "core.fsync=loose-object")
# Git refuses a commit with a later date.
_LATEST: Final = 2**53
_OID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@value_class
class TreeMerge:
    """What git made of two commits: `paths` are those in conflict, empty when it merged cleanly.

    Then the tree has the files with their conflict markers, and `stages` are the index entries of these paths as
    `update-index --index-info` takes them: "mode id stage<TAB>path".
    """

    tree: str
    paths: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()


@value_class
class Fold:
    """The end of a clean fold."""

    commit: CommitId
    tree: str


def fold(
    judge: Judge,
    heads: Sequence[Head],
    *,
    base: CommitId,
    known: Mapping[CommitId, Commit],
    resolutions: Sequence[CommitId] = (),
) -> Fold | MergeConflict:
    """Merge the heads from left to right; one head is itself, without a merge.

    `resolutions` are merges that a person made: where their two parents meet, they are the result. `known` gives date
    and tree of the heads that it holds; the others are read. No head may contain another.
    """
    first = _read(judge, known, heads[0].commit)
    result, date = Fold(first.id, first.tree), first.committed_at
    resolved = by_parents(judge, resolutions)
    with lines_file(judge, rules_of(judge, base).attributes if len(heads) > 1 else ()) as attributes:
        for number, theirs in enumerate(heads[1:], start=1):
            answer = resolved.get(frozenset((result.commit, theirs.commit)))
            if answer is not None:
                given = _read(judge, known, answer)
                result, date = Fold(given.id, given.tree), max(date, given.committed_at)
                continue
            merged = merge_trees(judge, result.commit, theirs.commit, attributes=attributes, above=base)
            date = max(date, _read(judge, known, theirs.commit).committed_at)
            if merged.paths:
                scene = _Scene(base, attributes, result.commit, merged.paths)
                return _conflict(judge, scene, heads[:number], theirs)
            message = f"Merge subtask {theirs.name}\n\nAfter: {_names(heads[:number])}\n"
            parents = (result.commit, theirs.commit)
            result = Fold(write_commit(judge, merged.tree, parents, date=date, message=message), merged.tree)
    return result


def merge_trees(
    judge: Judge, ours: CommitId, theirs: CommitId, *, attributes: str, above: CommitId | None = None
) -> TreeMerge:
    """Merge two commits without a worktree; without git too, where both contain `above` and no file needs a look.

    Raises: WorktreeError when git could not do it.
    """
    if above is not None and not judge.is_shallow:
        plain = merge_plainly(judge.commits, judge.trees, ours, theirs, above=above, write=judge.write_tree)
        if plain is not None:
            return TreeMerge(plain)
    result = judge.git(
        *_DURABLE, "-c", f"core.attributesFile={attributes}",
        "merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs,
        ok=(0, 1), write_objects=True, timeout_s=_MERGE_TIMEOUT_S,
    )  # fmt: skip
    tree, *entries = result.fields() or [""]
    stages = tuple(entry for entry in entries if "\t" in entry)
    if not _OID.fullmatch(tree) or (result.code == 1 and not stages):
        raise WorktreeError(
            "INTERNAL_ERROR",
            f"git could not merge {ours} and {theirs}: {result.said or 'no message'}",
            kept="nothing was changed",
            next=f"git fsck {ours} {theirs}",
        )
    if result.code == 0:
        return TreeMerge(tree)
    return TreeMerge(tree, tuple(sorted({entry.split("\t", 1)[1] for entry in stages})), stages)


def write_commit(
    judge: Judge,
    tree: str,
    parents: Sequence[CommitId],
    *,
    date: int,
    message: str,
    author: tuple[str, str] = (RUNTIME_NAME, RUNTIME_EMAIL),
) -> CommitId:
    """Write a commit object into the user's object store and return its id. The caller pins it at once.

    Every byte is given here: no identity, clock, encoding, hook or signature of the user's gets in.
    """
    who = f"{author[0]} <{author[1]}> {min(date, _LATEST)} +0000"
    lines = [f"tree {tree}", *(f"parent {oid}" for oid in parents), f"author {who}", f"committer {who}", "", message]
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return judge.write_commit(text)


def _read(judge: Judge, known: Mapping[CommitId, Commit], oid: CommitId) -> Commit:
    commit = known.get(oid)
    if commit is not None:
        return commit
    tree, date = judge.git("show", "-s", "--no-patch", "--format=%T%x00%ct", oid).text.split("\0")
    return Commit(oid, tree, int(date) if date.isdigit() else 0, (), "")


@value_class
class _Scene:
    """Where a merge failed: `ours` is what the applied heads gave."""

    base: CommitId
    attributes: str
    ours: CommitId
    paths: tuple[str, ...]


def _conflict(judge: Judge, scene: _Scene, applied: Sequence[Head], theirs: Head) -> MergeConflict:
    """The conflict as a value: with which of the applied heads, if one alone conflicts, else with the last."""
    partner = applied[-1]
    if len(applied) > 1:
        for head in applied[:MAX_PAIRS_TRIED]:
            if merge_trees(judge, head.commit, theirs.commit, attributes=scene.attributes).paths:
                partner = head
                break
    return MergeConflict(
        pair=(partner.name, theirs.name),
        paths=scene.paths[:MAX_CONFLICT_PATHS],
        applied=tuple(applied),
        key=inputs_key(judge, scene.base, [*applied, theirs]),
        ours=scene.ours,
        theirs=theirs.commit,
    )


def inputs_key(judge: Judge, base: CommitId, heads: Sequence[Head]) -> str:
    """A hash of everything that a merge depends on: the git version, the base whose attributes count, the commits."""
    words = [judge.facts.git_version, base, *(f"{head.name}={head.commit}" for head in heads)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _names(heads: Sequence[Head]) -> str:
    shown = ", ".join(head.name for head in heads[:20])
    return shown if len(heads) <= 20 else f"{shown} and {len(heads) - 20} more"
