"""A person's answer to a merge conflict: a commit with two parents, found again by these parents.

Recorded once, under a Runtime ref whose name is made of the parents, and used in every later base and integration that
meets the same two commits; the order of the two does not matter. A ref that does not hold a merge of exactly these
parents counts as none.
"""

import hashlib
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import PIN_PREFIX, CommitId
from coordinate_agents.worktrees.refs import RefChange, change_refs, read_ref

# No subtask has this name: a slug never begins with "+".
RESOLVED_SLUG: Final = "+resolved"


def find(judge: Judge, graph: str, ours: CommitId, theirs: CommitId) -> CommitId | None:
    """The recorded merge of these two commits; None when there is none. No git process."""
    commit = read_ref(judge.facts.common_dir, _ref(graph, ours, theirs))
    if commit is None or sorted(_parents(judge, commit)) != sorted((ours, theirs)):
        return None
    return commit


def record(judge: Judge, graph: str, commit: CommitId) -> str:
    """Record the merge commit as the answer for its parents, instead of an earlier one; the ref's name.

    Raises: WORKTREE_CONFLICT when it does not have two parents.
    """
    parents = _parents(judge, commit)
    if len(parents) != 2:
        raise WorktreeError(
            "WORKTREE_CONFLICT",
            f"{commit} is no merge of two commits, so it resolves no conflict.",
            kept="the conflict as it was",
            next="finish the merge with git commit, and give that commit",
        )
    name = _ref(graph, *parents)
    change_refs(judge, [RefChange(name, commit, None)])
    return name


def _ref(graph: str, ours: CommitId, theirs: CommitId) -> str:
    key = hashlib.sha256("\n".join(sorted((ours, theirs))).encode()).hexdigest()[:40]
    return f"{PIN_PREFIX}/{graph}/{RESOLVED_SLUG}/{key}"


def _parents(judge: Judge, commit: CommitId) -> list[CommitId]:
    """Up to three parents, which is enough to tell one or two from more."""
    found = (judge.look_up(f"{commit}^{number}") for number in (1, 2, 3))
    return [parent.oid for parent in found if parent is not None]
