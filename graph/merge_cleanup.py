"""Removes the worktree in which a person merged what the base of a subtask could not be made of, once that is over.

As careful as with any other (`worktrees.remove`): what it alone holds keeps it. A call that died after the act finds
nothing there, and records the result.
"""

import shlex
from dataclasses import replace

from coordinate_agents.graph.conflicts import PROGRAM
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import ConflictWorktreeRemoved
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.removal import Item, Outcome
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import RESOLVE_PREFIX, Refused, RemovalRequest, Worktree, branch_name

REASON = "merge-by-hand"


async def remove_merge(
    context: Context, subtask: SubtaskId, *, is_dry: bool, with_branch: bool, who: str
) -> Item | None:
    """The line of the answer; None when the subtask has no such worktree, and no such branch that should go."""
    worktree = context.run(subtask).conflict_worktree
    if worktree is None:
        is_gone = with_branch and not is_dry and await _delete_branch(context, subtask, who)
        name = branch_name(context.graph_id, RESOLVE_PREFIX + slug(subtask))
        return Item(subtask, "absent", REASON, branch=name, branch_gone=True) if is_gone else None
    if context.run(subtask).conflict_state:
        following = f"{PROGRAM} graph-resolve {context.graph_id} {subtask} --abort"
        return _item(subtask, worktree, "kept", "a merge waits in it for a person", following)
    request = RemovalRequest(worktree, context.graph_id, RESOLVE_PREFIX + slug(subtask), context.frozen)
    try:
        contents = await context.call(context.worktrees.contents, request)
        if contents.refusal is not None:
            return _stays(subtask, worktree, contents.refusal)
        done = _item(subtask, worktree, "removed", "a person merged in it", bytes=contents.bytes)
        if is_dry:
            return replace(done, branch_gone=with_branch)
        gone = await context.call(context.worktrees.remove, request)
        if isinstance(gone, Refused):
            return _stays(subtask, worktree, gone)
        context.record(ConflictWorktreeRemoved(subtask, who=who))
        return replace(done, branch_gone=with_branch and await _delete_branch(context, subtask, who))
    except WorktreeError as error:
        return _item(subtask, worktree, "refused", error.message, error.next or "")


async def _delete_branch(context: Context, subtask: SubtaskId, who: str) -> bool:
    """Delete the branch of the merge, whose commits are pinned; whether it is gone now. One in use stays."""
    gone = await context.call(context.worktrees.delete_branch, context.graph_id, RESOLVE_PREFIX + slug(subtask))
    if gone is None or isinstance(gone, Refused):
        return False
    context.record(ConflictWorktreeRemoved(subtask, gone.tip, who=who))
    return True


def _stays(subtask: SubtaskId, worktree: Worktree, refused: Refused) -> Item:
    following = refused.next or f"git -C {shlex.quote(worktree.path)} status"
    return _item(subtask, worktree, "refused", refused.message, following)


def _item(
    subtask: SubtaskId, worktree: Worktree, outcome: Outcome, message: str, following: str = "", *, bytes: int = 0
) -> Item:
    return Item(subtask, outcome, REASON, message, following, worktree.path, worktree.branch, bytes)
