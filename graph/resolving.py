"""A conflict between prerequisites: open the merge for a person, take its end, or take it back. Facts come from git.

Every step is intent, act, result: the same call again finishes what a killed one began. A resolution counts from the
moment its event is stored; the commit is kept by a ref before that.
"""

from collections.abc import Mapping
from typing import Any, Literal

from coordinate_agents.graph.conflicts import PROGRAM, conflict_words
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import (
    BaseConflicted,
    ConflictClosed,
    ConflictOpened,
    ConflictOpening,
    ResolutionRecorded,
)
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.graph.snapshot import Resolution, TaskRun, heads_of
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import (
    RESOLVE_PREFIX,
    Base,
    FinishedMerge,
    MergeConflict,
    MergeEnding,
    Worktree,
)
from coordinate_agents.worktrees.values import value_class

MAX_PATHS = 50


@value_class
class Answered:
    """What came of one call. opened: a merge waits in the worktree; ready: the base can be made now.

    `finished` is the merge that was taken; `also` are the other subtasks that it freed; `kept` what a merge that was
    given up had in its worktree.
    """

    outcome: Literal["opened", "ready", "given-up"]
    finished: FinishedMerge | None = None
    also: tuple[SubtaskId, ...] = ()
    kept: CommitId | None = None


def resolutions_of(context: Context) -> tuple[CommitId, ...]:
    """The commits that persons recorded, oldest first."""
    return tuple(each.commit for each in context.snapshot.summary.resolutions)


def conflict_event(subtask: SubtaskId, conflict: MergeConflict) -> BaseConflicted:
    return BaseConflicted(
        subtask,
        conflict.pair,
        conflict.paths[:MAX_PATHS],
        conflict.key,
        conflict.applied,
        conflict.ours,
        conflict.theirs,
    )


async def resolve(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    """One call of graph-resolve, as it was asked for (`request`); its answer as JSON. Raises: as the three below."""
    subtask, who = SubtaskId(str(asked["subtask"])), str(asked["who"])
    match asked["action"]:
        case "open":
            done = await open_conflict(context, subtask, who=who)
        case "continue":
            ending = MergeEnding(str(asked["name"]), str(asked["email"]), bool(asked["keepMarkers"]))
            done = await finish_conflict(context, subtask, ending, who=who)
        case _:
            done = await give_up_conflict(context, subtask, who=who)
    return {
        "outcome": done.outcome,
        "resolution": merge_json(done.finished),
        "also": list(done.also),
        "kept": done.kept,
    }


def merge_json(finished: FinishedMerge | None) -> dict[str, Any] | None:
    """A merge that was taken, as answers show it."""
    if finished is None:
        return None
    return {
        "commit": finished.commit,
        "madeBy": finished.made_by,
        "otherPaths": list(finished.others),
        "untracked": list(finished.untracked),
    }


async def open_conflict(context: Context, subtask: SubtaskId, *, who: str) -> Answered:
    """Open the merge that the subtask's base needs now; one that is open already is left as it is.

    Raises: GraphError TASK_STATE_CONFLICT without a conflict; WorktreeError, also when another merge stands there.
    """
    if _was_resolved(context.run(subtask)):
        return Answered("ready")
    _require_conflict(context, subtask)
    made = await _base_now(context, subtask)
    if isinstance(made, Base):
        context.record(ConflictClosed(subtask, "gone", who=who))
        return Answered("ready")
    await _open(context, subtask, made, who=who)
    return Answered("opened")


async def finish_conflict(context: Context, subtask: SubtaskId, ending: MergeEnding, *, who: str) -> Answered:
    """Record the end of the open merge; then the subtask is ready, or its next conflict is opened.

    Raises: GraphError TASK_STATE_CONFLICT when no merge is open; WorktreeError saying what is missing.
    """
    if _was_resolved(context.run(subtask)):
        return Answered("ready")
    run = _require_conflict(context, subtask)
    worktree, conflict = _require_open(context, run), run.conflict
    assert conflict is not None
    if await context.call(context.worktrees.is_missing, worktree):
        raise _no_merge(context, run)
    done = await record_end(context, worktree, (conflict.ours, conflict.theirs), ending, who=who)
    made = await _base_now(context, subtask)
    also = [other for other in _same_conflict(context, conflict) if other != subtask]
    for other in also:
        context.record(ConflictClosed(other, "resolved", who=who))
    if isinstance(made, Base):
        context.record(ConflictClosed(subtask, "resolved", who=who))
        return Answered("ready", done, tuple(also))
    await _open(context, subtask, made, who=who)
    return Answered("opened", done, tuple(also))


async def give_up_conflict(context: Context, subtask: SubtaskId, *, who: str) -> Answered:
    """Take the merge back; everything in its worktree is kept by a pin. The conflict stays.

    Raises: as `finish_conflict`.
    """
    run = _require_conflict(context, subtask)
    if run.conflict_worktree is not None and not run.conflict_state:
        return Answered("given-up")
    worktree = _require_open(context, run)
    kept = await take_back(context, RESOLVE_PREFIX + slug(subtask), worktree, worktree.base)
    crash_point("conflict.kept")
    context.record(ConflictClosed(subtask, "given-up", kept=kept, who=who))
    return Answered("given-up", kept=kept)


async def take_back(context: Context, name: str, worktree: Worktree, target: CommitId) -> CommitId | None:
    """Leave the worktree clean at the target; the commit that keeps what stood there. One that is gone held nothing."""
    if await context.call(context.worktrees.is_missing, worktree):
        return None
    return await context.call(
        context.worktrees.give_up_merge, context.graph_id, name, worktree, target, frozen=context.frozen
    )


async def record_end(
    context: Context, worktree: Worktree, sides: tuple[CommitId, CommitId], ending: MergeEnding, *, who: str
) -> FinishedMerge:
    """Take the end of the merge of the two sides: kept by a ref, recorded, and the worktree left clean on it."""
    base = context.snapshot.summary.base
    assert base is not None
    done = await context.call(
        context.worktrees.finish_merge, context.graph_id, worktree, base, sides, ending, frozen=context.frozen
    )
    crash_point("resolution.kept")
    if Resolution(*sides, done.commit) not in context.snapshot.summary.resolutions:
        context.record(ResolutionRecorded(*sides, done.commit, done.made_by, done.others[:MAX_PATHS], who=who))
    crash_point("resolution.recorded")
    await context.call(context.worktrees.conclude_merge, worktree, sides[0], done.commit)
    crash_point("resolution.concluded")
    return done


async def _open(context: Context, subtask: SubtaskId, conflict: MergeConflict, *, who: str) -> None:
    run, event = context.run(subtask), conflict_event(subtask, conflict)
    if run.conflict_state != "open" or run.conflict != event:
        context.record(ConflictOpening(subtask, event, who=who))
    crash_point("conflict.intended")
    base = context.snapshot.summary.base
    assert base is not None
    try:
        worktree = await context.call(
            context.worktrees.open_merge,
            context.graph_id,
            RESOLVE_PREFIX + slug(subtask),
            base,
            conflict,
            root=context.worktree_root,
            frozen=context.frozen,
        )
    except WorktreeError as error:
        if error.code == "DIRTY_WORKTREE" and run.conflict_worktree is not None:
            error.next = f"{PROGRAM} graph-resolve {context.graph_id} {subtask} --abort"
        raise
    crash_point("conflict.opened")
    run = context.run(subtask)
    if run.conflict_state != "open" or run.conflict_worktree != worktree:
        context.record(ConflictOpened(subtask, worktree))


async def _base_now(context: Context, subtask: SubtaskId) -> Base | MergeConflict:
    """The base as it would be made for the subtask's next attempt. Raises: when a prerequisite is not verified now."""
    task, base = context.task(subtask), context.snapshot.summary.base
    assert base is not None
    open_ones = [each for each in task.depends_on if context.run(each).verified_commit is None]
    if open_ones:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Subtask {subtask} has no base to merge: {', '.join(open_ones[:5])} did not succeed yet.",
            kept="every verified commit",
            next=f"{PROGRAM} graph-status {context.graph_id}",
            facts={"taskId": context.graph_id, "subtaskId": subtask},
        )
    heads = heads_of(context.snapshot, task.depends_on)
    return await context.call(
        context.worktrees.make_base,
        context.graph_id,
        slug(subtask),
        base,
        heads,
        resolutions=resolutions_of(context),
    )


def _same_conflict(context: Context, conflict: BaseConflicted) -> tuple[SubtaskId, ...]:
    """The subtasks that wait for a merge of the same two commits, in id order."""
    sides = {conflict.ours, conflict.theirs}
    return tuple(
        sorted(
            run.id
            for run in context.snapshot.runs.values()
            if run.state == "idle" and run.conflict is not None and {run.conflict.ours, run.conflict.theirs} == sides
        )
    )


def _was_resolved(run: TaskRun) -> bool:
    """Whether a merge by hand made the subtask ready: asked again, there is nothing left to do."""
    return run.state == "idle" and run.conflict is None and run.conflict_worktree is not None


def _require_conflict(context: Context, subtask: SubtaskId) -> TaskRun:
    run = context.run(subtask)
    if run.state == "idle" and run.conflict is not None:
        return run
    place = "RUNNING" if run.state == "running" else context.snapshot.frontier.place(subtask).upper()
    raise GraphError(
        "TASK_STATE_CONFLICT",
        f"Subtask {subtask} has no conflict to resolve: it is {place}.",
        kept="everything as it is",
        next=f"{PROGRAM} graph-status {context.graph_id}",
        facts={"taskId": context.graph_id, "subtaskId": subtask},
    )


def _require_open(context: Context, run: TaskRun) -> Worktree:
    if run.conflict_worktree is not None and run.conflict_state:
        return run.conflict_worktree
    raise _no_merge(context, run)


def _no_merge(context: Context, run: TaskRun) -> GraphError:
    words = conflict_words({"pair": run.conflict.pair, "paths": run.conflict.paths}) if run.conflict else ""
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"No merge is open for subtask {run.id}: its prerequisites {words}.",
        kept="every verified commit",
        next=f"{PROGRAM} graph-resolve {context.graph_id} {run.id}",
        facts={"taskId": context.graph_id, "subtaskId": run.id},
    )
