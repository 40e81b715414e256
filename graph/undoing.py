"""Bring removed worktrees back, with everything that was set aside of them (contract section 9).

Intent with the nonce → `worktrees` makes the worktree and fills it → result. The same verb again goes on after a kill.
"""

from collections.abc import Sequence
from typing import Any

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.events import Undone, UndoStarted
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.graph.removal import PROGRAM
from coordinate_agents.graph.runs import Integration, Removal, TaskRun
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, BringBackRequest
from coordinate_agents.worktrees.values import value_class


@value_class
class Restored:
    """One line of the answer. `outcome`: "restored", "kept" (there is nothing to undo) or "refused"."""

    subtask: str
    outcome: str
    message: str = ""
    next: str = ""
    worktree: str | None = None
    branch: str | None = None
    discard: CommitId | None = None
    lost: tuple[str, ...] = ()


def restored_json(item: Restored) -> dict[str, Any]:
    return {
        "subtask": item.subtask,
        "outcome": item.outcome,
        "message": item.message or None,
        "next": item.next or None,
        "worktree": item.worktree,
        "branch": item.branch,
        "discard": item.discard,
        "lost": list(item.lost),
    }


async def undo(context: Context, subtasks: Sequence[SubtaskId], *, who: str = "user") -> tuple[Restored, ...]:
    """One item for each of these subtasks (the integration has its reserved name), in order."""
    return tuple([await _undo_one(context, subtask, who) for subtask in subtasks])


def removed_ones(context: Context) -> tuple[SubtaskId, ...]:
    """Everything whose worktree was removed, in id order, the integration last."""
    found = sorted(run.id for run in context.snapshot.runs.values() if run.removal is not None)
    if context.snapshot.summary.integration.removal is not None:
        found.append(SubtaskId(INTEGRATION_SLUG))
    return tuple(found)


async def _undo_one(context: Context, subtask: SubtaskId, who: str) -> Restored:
    owner: TaskRun | Integration = (
        context.snapshot.summary.integration if subtask == INTEGRATION_SLUG else context.run(subtask)
    )
    if owner.worktree is not None:
        return Restored(subtask, "kept", "its worktree is there", "", owner.worktree.path, owner.worktree.branch)
    if owner.removal is None:
        return Restored(subtask, "kept", "no worktree of it was removed")
    try:
        return await _bring_back(context, subtask, owner.removal, who)
    except WorktreeError as error:
        following = error.next or f"{PROGRAM} graph-inspect {context.graph_id}"
        was = owner.removal
        return Restored(subtask, "refused", error.message, following, None, was.worktree.branch, was.discard)


async def _bring_back(context: Context, subtask: SubtaskId, removal: Removal, who: str) -> Restored:
    nonce = removal.nonce or context.new_nonce()
    if removal.nonce is None:
        context.record(UndoStarted(subtask, nonce, who))
    crash_point("undo.intended")
    was = removal.worktree
    request = BringBackRequest(
        context.graph_id, slug(subtask), was.base, removal.tip or was.base, nonce, removal.discard
    )
    back = await context.call(context.worktrees.bring_back, request, root=context.worktree_root, frozen=context.frozen)
    crash_point("undo.made")
    context.record(Undone(subtask, back.worktree, removal.discard, back.lost))
    said = "" if removal.discard is not None else "on its branch; ignored files went with the worktree"
    return Restored(subtask, "restored", said, "", back.worktree.path, back.worktree.branch, removal.discard, back.lost)
