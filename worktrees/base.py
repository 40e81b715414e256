"""The base of an attempt: the commit that contains every verified commit of every prerequisite.

Contract section 5. Decides nothing about subtasks: it gets named commits and returns one commit, pinned if it was made
here, or the conflict that prevents it.
"""

from collections.abc import Sequence

from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.history import BASE_NAME, missing_ancestors, needed, read_complete_history
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import fold
from coordinate_agents.worktrees.model import Base, CommitId, Head, MergeConflict
from coordinate_agents.worktrees.pins import pin


def make_base(
    judge: Judge,
    graph: str,
    slug: str,
    base: CommitId,
    heads: Sequence[Head],
    *,
    resolutions: Sequence[CommitId] = (),
) -> Base | MergeConflict:
    """The commit to start from. It contains `base` (the graph's) and every head.

    Without heads: `base`. One needed head: that very commit, nothing is written. Several: merged in the order of head
    names (`base`, if no head contains it, first) and pinned as `base-<n>`. The same inputs and git give the same hash.
    `resolutions`: merges that a person made, used where their parents meet.
    Raises: WorktreeError when a commit cannot be read.
    """
    if not heads:
        return Base(base)
    ordered = sorted(heads, key=lambda head: head.name)
    history = read_complete_history(judge, base, [head.commit for head in ordered])
    reduced = needed(judge, history, ordered)
    if len(reduced) == 1:
        only = reduced[0]
        return Base(only.commit, () if only.name == BASE_NAME and only.commit == base else reduced)
    made = fold(judge, reduced, base=base, known=history.commits, resolutions=resolutions)
    if isinstance(made, MergeConflict):
        return made
    crash_point("fold.made")
    pin(judge, graph, slug, kind="base", commit=made.commit)
    return Base(made.commit, reduced)


def contains(judge: Judge, commit: CommitId, ancestors: Sequence[CommitId]) -> tuple[CommitId, ...]:
    """The given commits that are NOT contained in `commit`, missing ones included; empty when all are.

    Raises: WorktreeError when `commit` itself does not exist.
    """
    if judge.commit(commit) != commit:
        raise WorktreeError("INTERNAL_ERROR", f"Commit {commit} does not exist in this repository.")
    return missing_ancestors(judge, commit, ancestors)
