"""One coroutine per effect: act on the world, return the event that says how it went.

Rule: every expected failure becomes an event, never an exception, so that one bad subtask cannot end the drive. The
problem this causes: a bug would look like a failed subtask. Next rule: only WorktreeError, SessionError and GraphError
are turned into events; anything else ends the drive with a traceback, and so does what the store itself refuses.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from coordinate_agents.graph import preparing, turn_failures, turns, verifying
from coordinate_agents.graph.branches import gone_commit
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.effects import (
    AwaitRetry,
    AwaitTurn,
    CheckIntegration,
    CreateWorktree,
    Effect,
    ExplainExit,
    MakeBase,
    MergeHeads,
    OpenSession,
    RunSetup,
    TaskEffect,
    Verify,
)
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseFixed,
    Event,
    Failure,
    IntegrationFailed,
    SharedRecorded,
    TaskStopped,
)
from coordinate_agents.graph.exhaustion import failure_of_machine
from coordinate_agents.graph.frontier import BASE_STAGE
from coordinate_agents.graph.integrating import check_integration, integration_failed, merge_heads
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.opened import require_vacant
from coordinate_agents.graph.ref_snapshots import put_refs
from coordinate_agents.graph.resolving import conflict_event, resolutions_of
from coordinate_agents.graph.shared import record_shared
from coordinate_agents.graph.snapshot import INTERRUPTED, TaskRun, heads_of
from coordinate_agents.graph.staying import let_go, require_closed
from coordinate_agents.sessions.errors import HostDiedError, SessionError
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import Base, Head, MergeConflict, SharedState
from coordinate_agents.worktrees.values import value_class

# What says that this driver may write no more, or that the disk does not take it.
ENDS_THE_DRIVE = frozenset({"STALE_CLAIM", "STATE_TAMPERED", "DISK_FULL", "WAIT_TIMED_OUT"})
# Trying again without a change of the world meets the same.
_FINAL_CODES = frozenset(
    {
        "EXECUTABLE_NOT_FOUND",
        "EXECUTABLE_NOT_RUNNABLE",
        "INVALID_AGENT_CONFIG",
        "INVALID_ADAPTER_CONFIG",
        "WORKTREE_CONFLICT",
        "CLEANUP_REFUSED",
        "REPOSITORY_UNSUPPORTED",
        "DISK_FULL",
        "SESSION_CLOSE_FAILED",
        "SESSION_STATE_CONFLICT",
    }
)


async def perform(context: Context, effect: Effect) -> tuple[Event, ...]:
    """The outcome of the effect: events that are recorded together.

    Raises: Leaving, and GraphError from recording (a lost lease).
    """
    match effect:
        case MergeHeads() | CheckIntegration():
            return (await _perform_integration(context, effect),)
        case _:
            outcome = await _outcome(context, effect)
            *before, last = outcome if isinstance(outcome, tuple) else (outcome,)
            return (*before, await let_go(context, last))


async def _perform_integration(context: Context, effect: MergeHeads | CheckIntegration) -> Event:
    try:
        return await (merge_heads(context) if isinstance(effect, MergeHeads) else check_integration(context))
    except (WorktreeError, SessionError) as error:
        return integration_failed(context, error)
    except OSError as error:
        if (failure := failure_of_machine(error, context.graph_id)) is None:
            raise
        return IntegrationFailed(failure)


async def _outcome(context: Context, effect: TaskEffect) -> Event | tuple[Event, ...]:
    try:
        return await _perform_task(context, effect)
    except HostDiedError as error:
        return await _interrupted(context, effect.subtask, error)
    except (WorktreeError, SessionError, GraphError) as error:
        if isinstance(error, GraphError) and error.code in ENDS_THE_DRIVE:
            raise
        return AttemptFailed(effect.subtask, failure_of(error), is_final=error.code in _FINAL_CODES)
    except OSError as error:
        if (failure := failure_of_machine(error, context.graph_id)) is None:
            raise
        return AttemptFailed(effect.subtask, failure, is_final=True)


async def _interrupted(context: Context, subtask: SubtaskId, error: HostDiedError) -> Event:
    """Somebody killed a host of ours: no attempt failed, and the next drive takes the subtask up again."""
    run = context.run(subtask)
    if run.worktree is not None:
        # Its next attempt may amend or reset what this one made.
        await context.call(context.worktrees.keep, context.graph_id, slug(subtask), run.worktree)
    return TaskStopped(subtask, f"{INTERRUPTED}: {error.message}", failure_of(error))


async def _perform_task(context: Context, effect: TaskEffect) -> Event | tuple[Event, ...]:
    # A person who holds the subtask may ask for a verification; nothing else starts meanwhile.
    is_asked = isinstance(effect, AwaitTurn) or (isinstance(effect, Verify) and effect.by == "check")
    if not is_asked:
        await context.until_released(effect.subtask)
    match effect:
        case MakeBase(subtask=subtask):
            return await _make_base(context, subtask)
        case CreateWorktree(subtask=subtask):
            return await preparing.create_worktree(context, subtask)
        case RunSetup(subtask=subtask):
            return await preparing.run_setup(context, subtask)
        case OpenSession(turn=0) | OpenSession(has_tokens=True):
            return await turns.open_session(context, effect)
        case OpenSession(subtask=subtask):
            # Its tokens were given back for the verification that found something to fix.
            async with context.tokens(f"{subtask}:turn", context.task(subtask).needs, subtask):
                return await turns.open_session(context, effect)
        case AwaitTurn(subtask=subtask):
            return await turns.await_turn(context, subtask)
        case AwaitRetry(subtask=subtask):
            return await turns.await_retry(context, subtask)
        case ExplainExit(subtask=subtask):
            return await turn_failures.explain_exit(context, subtask)
        case Verify():
            return await verifying.verify(context, effect)
        case _:
            assert_never(effect)


async def _make_base(context: Context, subtask: SubtaskId) -> Event:
    """Snapshot the user's refs, keep their tips, fix the base. A later attempt in a kept worktree keeps its base."""
    if not context.run(subtask).is_rework:
        await require_closed(context, subtask, "another attempt starts")
    await require_vacant(context, context.run(subtask))
    run, task = context.run(subtask), context.task(subtask)
    heads = heads_of(context.snapshot, task.depends_on)
    looked = await context.call(_look_and_make, context, run, heads)
    if context.snapshot.summary.shared_blob is None:
        context.record(SharedRecorded(context.blobs.put(json.dumps(dict(looked.shared), sort_keys=True).encode())))
    else:
        record_shared(context, looked.shared)
    match looked.made:
        case Base(commit=commit, reduced=reduced):
            return BaseFixed(subtask, commit, looked.refs_blob, reduced)
        case MergeConflict() as conflict:
            return conflict_event(subtask, conflict)
        case Failure() as failure:
            return AttemptFailed(subtask, failure, is_final=True)


@value_class
class _Looked:
    shared: SharedState
    refs_blob: str
    made: Base | MergeConflict | Failure


def _look_and_make(context: Context, run: TaskRun, heads: Sequence[Head]) -> _Looked:
    """Everything that git and the disk are asked before an attempt, in one worker thread."""
    worktrees, graph = context.worktrees, context.graph_id
    shared = worktrees.shared_state()
    refs = worktrees.refs()
    refs_blob = put_refs(context.blobs, refs)
    if context.kept_tips_blob != refs_blob:
        worktrees.keep_tips(graph, refs)
        context.kept_tips_blob = refs_blob
    crash_point("base.snapshot")
    if run.base is not None and (run.worktree or run.removal) is not None and not run.is_fresh:
        return _Looked(shared, refs_blob, Base(run.base, run.reduced))
    base = context.snapshot.summary.base
    if base is None:
        raise GraphError("STATE_TAMPERED", "the log does not say what this graph's base is.")
    try:
        made = worktrees.make_base(graph, slug(run.id), base, heads, resolutions=resolutions_of(context))
    except WorktreeError:
        if (gone := gone_commit(context, heads)) is not None:
            return _Looked(shared, refs_blob, replace(failure_of(gone), stage=BASE_STAGE))
        raise
    crash_point("base.made")
    return _Looked(shared, refs_blob, made)


def failure_of(error: WorktreeError | SessionError | GraphError) -> Failure:
    return Failure(error.code, error.message, kept=error.kept, next=error.next)
