"""Hold a subtask while a person works in its worktree, and release it. The hold is recorded; it outlives drivers."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import anyio

from coordinate_agents.graph import machine
from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import Event, TaskHeld, TaskReleased
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.runs import TaskRun, still_asked
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId

# A host that is silent is stopped, or on a machine with much to do.
_ASK_EVERY_S: Final = 1.0


async def hold(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record the hold and let the Session's deadlines stand still. Returns `{subtask, held, note}`."""
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    while True:
        run = context.run(subtask)
        if run.state == "succeeded":
            raise _succeeded(engine, run)
        if run.is_held:
            told = {"subtask": subtask, "held": True, "note": f"nothing to do: subtask {subtask} is held already"}
            return await _told(engine, subtask, told)
        is_verifying = run.state == "running" and run.stage == "verify"
        if is_verifying:
            await engine.halt(subtask)
        # It may have come to its verdict just before.
        if context.run(subtask) == run:
            break
    told = {"subtask": subtask, "held": True, "note": None}
    engine.apply(TaskHeld(subtask, who), results=answers(told))
    if is_verifying:
        engine.start(machine.continue_run(context.run(subtask)))  # waits for the release, then begins anew
    crash_point("hold.recorded")
    return await _told(engine, subtask, told)


async def release(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record the release and let the Session's deadlines run again. Returns `{subtask, held, note}`."""
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    run = context.run(subtask)
    told = {"subtask": subtask, "held": False, "note": None}
    if not run.is_held:
        return await _told(engine, subtask, {**told, "note": f"nothing to do: subtask {subtask} is not held"})
    events: list[Event] = [TaskReleased(subtask, who)]
    if run.state == "running" and run.session_live and run.question:
        # It still asks what it asked before; whoever answers it meanwhile is seen by its watcher.
        events.append(still_asked(run))
    engine.apply_all(events, results=answers(told))
    crash_point("release.recorded")
    return await _told(engine, subtask, told)


async def _told(engine: Engine, subtask: SubtaskId, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    if await tell_session(engine, subtask):
        return answer
    return {
        **answer,
        "note": "its Session does not answer now; a driver, or the same command again, tells it",
    }


async def tell_session(engine: Engine, subtask: SubtaskId) -> bool:
    """Let the deadlines of its Session stand still, or run, as the record says. Repeated: no change.

    False: its host is silent, and is asked again as long as this drive lasts. A crash between record and host leaves
    the deadlines as they were; whoever asks again, or drives next, makes it good.
    """
    if await _has_heard(engine.context, subtask):
        return True
    engine.beside(partial(_tell_until_heard, engine.context, subtask))
    return False


async def _tell_until_heard(context: Context, subtask: SubtaskId) -> None:
    while True:
        await anyio.sleep(_ASK_EVERY_S)
        if await _has_heard(context, subtask):
            return


async def _has_heard(context: Context, subtask: SubtaskId) -> bool:
    """True, too, where nothing is to be told: no Session lives, or it ended meanwhile."""
    run = context.run(subtask)
    if run.session is None or run.state != "running":
        return True
    session = SessionId(run.session)
    try:
        await (context.sessions.hold(session) if run.is_held else context.sessions.release(session))
    except SessionError as error:
        return error.code != "SESSION_NOT_HEALTHY"
    return True


def _succeeded(engine: Engine, run: TaskRun) -> GraphError:
    graph = engine.context.graph_id
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Subtask {run.id} succeeded: nothing starts in its worktree, so there is nothing to hold.",
        kept="its verified commit and its worktree",
        next=f"coordinate-agents graph-path {graph} {run.id}",
        stage="hold",
        facts={"taskId": graph, "subtaskId": run.id},
    )
