"""Remove worktrees that nobody needs any more, a few at a time, each by the same steps (contract section 9).

Look → teardown commands → close the idle Session → set aside, where that was asked for → intent recorded → `worktrees`
removes or refuses → result recorded → branch, where that was asked for. A worktree that stays is a line of the answer
with its reason; it never keeps the others. A kill at any point: the same verb again goes on.
"""

from dataclasses import replace
from typing import Final

import anyio

from coordinate_agents.graph.branches import lost_tip, restore_branch
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.events import (
    BranchDeleted,
    DiscardMade,
    RemovalRefused,
    RemovalStarted,
    WorktreeRemoved,
)
from coordinate_agents.graph.merge_cleanup import remove_merge
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.graph.quieting import make_quiet
from coordinate_agents.graph.removal import (
    PROGRAM,
    Item,
    discard_preview,
    kept_files,
    refused_item,
    unfinished,
)
from coordinate_agents.graph.runs import Integration, Removal, TaskRun
from coordinate_agents.graph.undoing import undo
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import (
    INTEGRATION_SLUG,
    Contents,
    Refused,
    RemovalRequest,
    Removed,
    Worktree,
    branch_name,
)
from coordinate_agents.worktrees.values import value_class

# Looking at a large worktree and deleting it waits for the disk and for git by turns.
_AT_A_TIME: Final = 4


@value_class
class Plan:
    """What was asked for. `subtasks` None: all. `confirm`: the token of what is discarded; None: only show it."""

    subtasks: tuple[SubtaskId, ...] | None = None
    is_dry: bool = False
    branches: bool = False
    everything: bool = False
    discard: SubtaskId | None = None
    confirm: str | None = None
    who: str = "user"


async def clean(context: Context, plan: Plan) -> tuple[Item, ...]:
    """One item for each worktree that the plan is about, in id order, the integration last."""
    if plan.discard is not None:
        return (await _clean_one(context, plan, plan.discard),)
    wanted = plan.subtasks if plan.subtasks is not None else tuple(sorted(context.snapshot.runs))
    found: dict[SubtaskId, list[Item]] = {}
    failed: list[Exception] = []
    few = anyio.CapacityLimiter(_AT_A_TIME)

    async def clean_next(subtask: SubtaskId) -> None:
        async with few:
            try:
                if not failed:
                    found[subtask] = await _clean_subtask(context, plan, subtask)
            except Exception as error:
                failed.append(error)

    async with anyio.create_task_group() as group:
        for subtask in wanted:
            group.start_soon(clean_next, subtask)
    if failed:
        raise failed[0]
    items = [item for subtask in wanted for item in found[subtask]]
    if plan.everything and plan.subtasks is None:
        items += [await _clean_one(context, plan, SubtaskId(INTEGRATION_SLUG))]
        items += await _remove_left_checks(context, plan)
    return tuple(items)


async def _clean_subtask(context: Context, plan: Plan, subtask: SubtaskId) -> list[Item]:
    """Its worktree's line, and that of one in which a person merged for it."""
    items = [await _clean_one(context, plan, subtask)]
    if subtask in context.snapshot.runs:
        merge = await remove_merge(context, subtask, is_dry=plan.is_dry, with_branch=plan.branches, who=plan.who)
        items += [merge] if merge is not None else []
    return items


async def clear_place(context: Context, subtask: SubtaskId) -> None:
    """Set aside all that the worktree of a subtask holds which begins anew, and remove it; nothing when it has none.

    Its branch stays where it is until the new worktree takes its name, and then by a pin.
    Raises: WorktreeError CLEANUP_REFUSED with the reason why it stays.
    """
    run = context.run(subtask)
    if run.worktree is None:
        return
    await restore_branch(context, subtask, run)
    plan = Plan(subtasks=(subtask,), discard=subtask)
    request = _request(context, subtask, run, run.worktree)
    contents = await context.call(context.worktrees.contents, request)
    item = await make_quiet(context, subtask, run, run.worktree, is_there=not contents.is_missing, goes_on=True)
    if item is None:
        contents = await context.call(context.worktrees.contents, request)
        request = replace(request, discarded=await _set_aside(context, plan, subtask, contents, request))
        item = await _act(context, plan, subtask, request, contents)
    if item.is_refused:
        raise WorktreeError(
            "CLEANUP_REFUSED",
            f"it cannot begin anew, since its worktree stays: {item.message}.",
            kept=f"worktree {run.worktree.path} and branch {run.worktree.branch}",
            next=item.next,
        )


async def _clean_one(context: Context, plan: Plan, subtask: SubtaskId) -> Item:
    owner = _owner(context, subtask)
    try:
        item = await _remove(context, plan, subtask, owner)
        return await _delete_branch(context, plan, subtask, item) if plan.branches else item
    except (WorktreeError, SessionError) as error:
        return Item(
            subtask,
            "refused",
            "error",
            error.message,
            error.next or f"coordinate-agents graph-inspect {context.graph_id}",
            owner.worktree.path if owner.worktree else None,
            owner.worktree.branch if owner.worktree else None,
        )


async def _remove(context: Context, plan: Plan, subtask: SubtaskId, owner: TaskRun | Integration) -> Item:
    if owner.worktree is None and owner.removal is not None and owner.removal.nonce is not None:
        cut_short = await _finish_undo(context, plan, subtask, owner.removal)
        if cut_short is not None:
            return cut_short
        owner = _owner(context, subtask)
    worktree = owner.worktree
    if worktree is None:
        was = owner.removal.worktree.branch if owner.removal is not None else None
        return Item(subtask, "absent", "absent", "it has no worktree", branch=was)
    waits = unfinished(context.graph_id, subtask, owner.state)
    is_discarded = plan.discard == subtask
    if waits is not None and not (is_discarded and owner.state == "idle"):
        return Item(subtask, "kept", "unfinished", *waits, worktree.path, worktree.branch)
    request = _request(context, subtask, owner, worktree)
    if plan.is_dry:
        request = replace(request, lost_tip=await lost_tip(context, subtask, owner))
    else:
        await restore_branch(context, subtask, owner)
    contents = await context.call(context.worktrees.contents, request)
    is_confirmed = is_discarded and (contents.is_missing or plan.confirm == contents.fingerprint)
    if is_discarded and not is_confirmed:
        return _unconfirmed(context, plan, subtask, worktree, contents)
    refusal = _refusal(context, contents)
    if plan.is_dry or (refusal is not None and not is_discarded and owner.removing is None):
        return _would_go(context, subtask, owner, worktree, contents, refusal)
    stays = await make_quiet(context, subtask, owner, worktree, is_there=not contents.is_missing, goes_on=is_discarded)
    if stays is not None:
        return stays
    if context.config.teardown and not contents.is_missing:
        contents = await context.call(context.worktrees.contents, request)
        refusal = _refusal(context, contents)
        if refusal is not None and not is_discarded and owner.removing is None:
            return refused_item(context.graph_id, subtask, worktree, refusal.refused, reason=refusal.reason)
    if is_discarded:
        request = replace(request, discarded=await _set_aside(context, plan, subtask, contents, request))
    else:
        request = replace(request, ignored=tuple(file.path for file in contents.extra))
    return await _act(context, plan, subtask, request, contents)


async def _finish_undo(context: Context, plan: Plan, subtask: SubtaskId, removal: Removal) -> Item | None:
    """A graph-undo died on its way: what it made is on the disk and in no record. None: now it is a worktree again."""
    was, following = removal.worktree, f"{PROGRAM} graph-undo {context.graph_id} {subtask}"
    if plan.is_dry:
        return Item(subtask, "kept", "unfinished", "a graph-undo was cut short", following, was.path, was.branch)
    (back,) = await undo(context, (subtask,), who=plan.who)
    if back.outcome == "restored":
        return None
    return Item(subtask, "refused", "error", back.message, back.next or following, was.path, was.branch)


async def _act(context: Context, plan: Plan, subtask: SubtaskId, request: RemovalRequest, contents: Contents) -> Item:
    worktree = request.worktree
    context.record(RemovalStarted(subtask, request.discarded, plan.who))
    crash_point("removal.intended")
    result = await context.call(context.worktrees.remove, request)
    # A crash here leaves a worktree that is gone and a record that knows it is on the way out.
    crash_point("removal.removed")
    match result:
        case Refused() as refused:
            if refused.stands_at is None:
                context.record(RemovalRefused(subtask, refused.reason, refused.message))
            return refused_item(context.graph_id, subtask, worktree, refused)
        case Removed() as gone:
            context.record(WorktreeRemoved(subtask, gone.tip, gone.kept, gone.bytes, gone.was_missing))
            return Item(
                subtask,
                "absent" if gone.was_missing and not contents.extra else "removed",
                "missing" if gone.was_missing else "",
                "its folder was gone already; its registration was dropped" if gone.was_missing else "",
                worktree=worktree.path,
                branch=worktree.branch,
                bytes=gone.bytes,
                files=contents.extra,
                count=len(contents.extra),
                pinned=gone.kept,
                discard=request.discarded,
            )


async def _set_aside(
    context: Context, plan: Plan, subtask: SubtaskId, contents: Contents, request: RemovalRequest
) -> CommitId | None:
    """The commit that holds everything, recorded; None when there is nothing beside its head."""
    if contents.is_missing:
        return _owner(context, subtask).discard
    commit = await context.call(context.worktrees.set_aside, request)
    if commit is not None:
        context.record(DiscardMade(subtask, commit, plan.who))
        crash_point("removal.set-aside")
    return commit


@value_class
class _Reason:
    refused: Refused
    reason: str = ""


def _refusal(context: Context, contents: Contents) -> _Reason | None:
    if contents.refusal is not None:
        return _Reason(contents.refusal)
    kept = kept_files(contents, context.config.keep)
    return _Reason(kept, "kept") if kept is not None else None


def _unconfirmed(context: Context, plan: Plan, subtask: SubtaskId, worktree: Worktree, contents: Contents) -> Item:
    """The first step of a discard, or a second one whose token does not name what is there now."""
    if contents.refusal is not None and not contents.fingerprint:
        return refused_item(context.graph_id, subtask, worktree, contents.refusal)
    preview = discard_preview(context.graph_id, subtask, worktree, contents)
    if plan.confirm is None:
        return preview
    said = f"it changed since {plan.confirm} was shown: {preview.message}"
    return replace(preview, outcome="refused", reason="changed", message=said)


def _would_go(
    context: Context,
    subtask: SubtaskId,
    owner: TaskRun | Integration,
    worktree: Worktree,
    contents: Contents,
    refusal: _Reason | None,
) -> Item:
    """What a look alone says: the dry run, or a refusal before anything was done."""
    if refusal is not None:
        return refused_item(context.graph_id, subtask, worktree, refusal.refused, reason=refusal.reason)
    item = Item(
        subtask,
        "absent" if contents.is_missing else "removed",
        worktree=worktree.path,
        branch=worktree.branch,
        bytes=contents.bytes,
        files=contents.extra,
        count=len(contents.extra),
    )
    if not contents.users:
        return item
    used = "; ".join(contents.users[:3])
    if isinstance(owner, TaskRun) and owner.session is not None:
        return replace(item, message=f"in use now ({used}); its Session is closed first, anything else keeps it")
    return replace(item, outcome="refused", reason="in-use", message=used, next=f"kill {contents.users[0].split()[1]}")


async def _delete_branch(context: Context, plan: Plan, subtask: SubtaskId, item: Item) -> Item:
    """The item after its branch; nothing while the worktree is there."""
    if item.outcome not in ("removed", "absent"):
        return item
    if plan.is_dry:
        return replace(item, branch_gone=item.branch is not None)
    name = slug(subtask)
    gone = await context.call(
        context.worktrees.delete_branch, context.graph_id, name, is_result=subtask == INTEGRATION_SLUG
    )
    crash_point("branch.deleted")
    if gone is None:
        return item
    if isinstance(gone, Refused):
        following = gone.next
        if gone.reason == "only-here" and context.snapshot.summary.integration.state == "integrated":
            following = f"{PROGRAM} graph-deliver {context.graph_id} --branch NAME"
        return replace(item, outcome="refused", reason=gone.reason, message=gone.message, next=following)
    context.record(BranchDeleted(subtask, branch_name(context.graph_id, name), gone.tip, plan.who))
    return replace(item, branch_gone=True)


async def _remove_left_checks(context: Context, plan: Plan) -> list[Item]:
    """Worktrees of checks whose process died: nobody works there, and a check is simply run again."""
    items = []
    for worktree in await context.call(context.worktrees.left_pristine, context.graph_id):
        name = worktree.path.rpartition("/")[2]
        item = Item(name, "removed", "check", "left by a check that was killed", worktree=worktree.path)
        if not plan.is_dry:
            try:
                await context.call(context.worktrees.remove_pristine, worktree)
            except WorktreeError as error:
                item = replace(item, outcome="refused", message=error.message, next=error.next or "")
        items.append(item)
    return items


def _owner(context: Context, subtask: SubtaskId) -> TaskRun | Integration:
    return context.snapshot.summary.integration if subtask == INTEGRATION_SLUG else context.run(subtask)


def _request(context: Context, subtask: SubtaskId, owner: TaskRun | Integration, worktree: Worktree) -> RemovalRequest:
    return RemovalRequest(
        worktree,
        context.graph_id,
        slug(subtask),
        context.frozen,
        baseline=owner.baseline,
        copies=context.config.copy,
    )
