"""Brings a Runtime branch back that somebody deleted below its worktree, before anything is done there."""

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.snapshot import Integration, TaskRun


async def restore_branch(context: Context, subtask: SubtaskId, owner: TaskRun | Integration) -> None:
    """Without its branch HEAD of the worktree names no commit: nothing can be compared with it, set aside or removed,
    and the next commit would begin a history without the base. Nothing is done when the branch is there.
    """
    if owner.worktree is None:
        return
    if isinstance(owner, Integration):
        known = owner.commit
    else:
        known = owner.verified_commit or owner.reviewed_commit or owner.head
    await context.call(context.worktrees.restore_branch, context.graph_id, slug(subtask), owner.worktree, known=known)
