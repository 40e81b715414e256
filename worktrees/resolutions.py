"""A person's answer to a merge conflict: a commit with two parents, found again by these parents.

Which answers were given is the caller's record: a ref alone proves nothing, since every agent can make one. The ref
that `record` sets only keeps the commit. The order of the two parents does not matter.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import PIN_PREFIX, CommitId
from coordinate_agents.worktrees.refs import RefChange, change_refs

# No subtask has this name: a slug never begins with "+".
RESOLVED_SLUG: Final = "+resolved"


def by_parents(judge: Judge, commits: Sequence[CommitId]) -> Mapping[frozenset[CommitId], CommitId]:
    """The recorded merges by their two parents; of several for the same two the last. A missing one counts as none."""
    found: dict[frozenset[CommitId], CommitId] = {}
    for commit in commits:
        parents = parents_of(judge, commit)
        if len(parents) == 2:
            found[frozenset(parents)] = commit
    return found


def record(judge: Judge, graph: str, commit: CommitId) -> str:
    """Keep the merge commit as the answer for its parents, instead of an earlier one; the ref's name.

    Raises: WORKTREE_CONFLICT when it does not have two parents.
    """
    parents = parents_of(judge, commit)
    if len(parents) != 2:
        raise WorktreeError(
            "WORKTREE_CONFLICT",
            f"{commit} is no merge of two commits, so it resolves no conflict.",
            kept="the conflict as it was",
            next="git commit",
        )
    name = _ref(graph, *parents)
    change_refs(judge, [RefChange(name, commit, None)])
    return name


def parents_of(judge: Judge, commit: CommitId) -> list[CommitId]:
    """Up to three parents, which is enough to tell one or two from more. Empty for a commit that does not exist."""
    found = (judge.look_up(f"{commit}^{number}") for number in (1, 2, 3))
    return [parent.oid for parent in found if parent is not None]


def is_merge_of(judge: Judge, commit: CommitId, ours: CommitId, theirs: CommitId) -> bool:
    """Whether exactly these two are its parents, in either order."""
    return sorted(parents_of(judge, commit)) == sorted((ours, theirs))


def _ref(graph: str, ours: CommitId, theirs: CommitId) -> str:
    key = hashlib.sha256("\n".join(sorted((ours, theirs))).encode()).hexdigest()[:40]
    return f"{PIN_PREFIX}/{graph}/{RESOLVED_SLUG}/{key}"
