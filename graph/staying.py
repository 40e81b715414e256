"""Sessions that stay open between turns: who may take another turn, and when they are closed.

The process of an interactive agent lives on when its turn is over. Its next turn (a fix, or what a review asks for) is
typed into it. It takes no slot. It is closed when its attempt failed, before a new attempt of its subtask, when the
graph is stopped, approved or cleaned up, and by its own host after `IDLE_LIFE_S` without a turn. Closing is
recorded after it happened and can be repeated: a crash between the two leaves a record that the next close corrects.
"""

from collections.abc import Mapping
from typing import Final

import anyio

from coordinate_agents.graph import machine
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.events import AttemptFailed, Event, Failure, SessionClosed, TaskJudged, TaskStopped
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionFacts, SessionId

# Idle agents keep their memory. Of more in one graph the one that has been idle for longest is closed.
MAX_IDLE: Final = 32


def can_take_turn(facts: SessionFacts) -> bool:
    """Whether the look found a healthy Session that is not on its way out."""
    return facts.liveness == "live" and facts.record is not None and facts.record.state != "closing"


async def close_open(context: Context, subtask: SubtaskId, reason: str) -> tuple[str, ...]:
    """Close the subtask's Session that stayed open; returns survivors. Nothing when there is none.

    Raises: SessionError SESSION_CLOSE_FAILED when its host is silent.
    """
    session = context.run(subtask).open_session
    if session is None:
        return ()
    survivors = await context.turns.dispose_session(SessionId(session))
    crash_point("stay.closed")
    if context.run(subtask).open_session == session:
        context.record(SessionClosed(subtask, session, reason, survivors[:20]))
    return survivors


async def require_closed(context: Context, subtask: SubtaskId, reason: str) -> None:
    """Close it, before somebody else works in its worktree. Raises: SessionError SESSION_CLOSE_FAILED."""
    survivors = await close_open(context, subtask, reason)
    if survivors:
        raise SessionError(
            "SESSION_CLOSE_FAILED",
            f"the Session of {subtask}'s turn before could not be ended: {', '.join(survivors[:3])}.",
            kept="its worktree and branch",
            next=f"coordinate-agents session-status {context.graph_id}/{subtask}",
        )


async def close_idle(
    context: Context, reason: str, *, only: SubtaskId | None = None
) -> Mapping[SubtaskId, SessionError]:
    """Close every Session of the graph that is idle after its turn, all at once, each within its bound.

    Returns those that could not be closed, with the reason. They stay recorded as open: no other agent may start in
    their worktrees.
    """
    refused: dict[SubtaskId, SessionError] = {}

    async def close(subtask: SubtaskId) -> None:
        try:
            await close_open(context, subtask, reason)
        except SessionError as error:
            refused[subtask] = error

    idle = [run.id for run in context.snapshot.runs.values() if run.open_session and run.state != "running"]
    async with anyio.create_task_group() as group:
        for subtask in idle:
            if only in (None, subtask):
                group.start_soon(close, subtask)
    return refused


async def let_go(context: Context, outcome: Event) -> Event:
    """Close what the outcome leaves without use: the Session of an attempt that failed, one idle Session too many."""
    if isinstance(outcome, AttemptFailed | TaskStopped):
        return await _end_attempt(context, outcome.subtask, outcome)
    if isinstance(outcome, TaskJudged) and not outcome.accepted:
        decided = machine.decide(context.snapshot, outcome)
        if isinstance(decided, TaskJudged) and decided.then != "fix-turn":
            return await _end_attempt(context, outcome.subtask, outcome)
    if isinstance(outcome, TaskJudged) and outcome.accepted and context.run(outcome.subtask).open_session:
        await _make_room(context)
    return outcome


async def _end_attempt(context: Context, subtask: SubtaskId, outcome: Event) -> Event:
    try:
        await require_closed(context, subtask, "its attempt failed")
    except SessionError as error:
        failure = Failure(error.code, error.message, stage="turn", kept=error.kept, next=error.next)
        return AttemptFailed(subtask, failure, is_final=True)
    return outcome


async def _make_room(context: Context) -> None:
    idle = [run for run in context.snapshot.runs.values() if run.open_session and run.state == "succeeded"]
    for run in sorted(idle, key=_idle_since)[: max(0, len(idle) + 1 - MAX_IDLE)]:
        await close_idle(context, f"more than {MAX_IDLE} Sessions were idle", only=run.id)


def _idle_since(run: TaskRun) -> float:
    return run.ended_at or 0.0
