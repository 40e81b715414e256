"""Brings a Runtime branch back that somebody deleted below its worktree, and names a commit that is gone for good."""

from collections.abc import Sequence

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.graph.snapshot import Integration, TaskRun
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import Head


async def restore_branch(context: Context, subtask: SubtaskId, owner: TaskRun | Integration) -> None:
    """Without its branch HEAD of the worktree names no commit: nothing can be compared with it, set aside or removed,
    and the next commit would begin a history without the base. Nothing is done when the branch is there.
    """
    if owner.worktree is not None:
        restore, name = context.worktrees.restore_branch, slug(subtask)
        await context.call(restore, context.graph_id, name, owner.worktree, known=_known(owner))


async def lost_tip(context: Context, subtask: SubtaskId, owner: TaskRun | Integration) -> CommitId | None:
    """The commit at which `restore_branch` would make the branch again; None when it would do nothing."""
    if owner.worktree is None:
        return None
    look, name = context.worktrees.lost_tip, slug(subtask)
    return await context.call(look, context.graph_id, name, owner.worktree, known=_known(owner))


def _known(owner: TaskRun | Integration) -> CommitId | None:
    if isinstance(owner, Integration):
        return owner.commit
    return owner.verified_commit or owner.reviewed_commit or owner.head


def gone_commit(context: Context, heads: Sequence[Head]) -> WorktreeError | None:
    """What to tell of a merge that failed because a verified commit is gone: whose, and the way out. None: none is."""
    gone = next((head for head in heads if context.worktrees.is_gone(head.commit)), None)
    if gone is None:
        return None
    return WorktreeError(
        "WORKTREE_CONFLICT",
        f"{gone.name}'s verified commit {gone.commit} is missing from this repository.",
        kept=f"the record of {gone.name}; nothing was built without it",
        next=f"coordinate-agents graph-resume {context.graph_id} {gone.name} --redo",
    )
