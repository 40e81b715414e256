"""Hold a subtask while a person works in its worktree, and release it. The hold is recorded; it outlives drivers."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

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
            await tell_session(engine.context, run)
            return {"subtask": subtask, "held": True, "note": f"nothing to do: subtask {subtask} is held already"}
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
    await tell_session(context, context.run(subtask))
    return told


async def release(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record the release and let the Session's deadlines run again. Returns `{subtask, held, note}`."""
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    run = context.run(subtask)
    told = {"subtask": subtask, "held": False, "note": None}
    if not run.is_held:
        await tell_session(context, run)
        return {**told, "note": f"nothing to do: subtask {subtask} is not held"}
    events: list[Event] = [TaskReleased(subtask, who)]
    if run.state == "running" and run.session_live and run.question:
        # It still asks what it asked before; whoever answers it meanwhile is seen by its watcher.
        events.append(still_asked(run))
    engine.apply_all(events, results=answers(told))
    crash_point("release.recorded")
    await tell_session(context, context.run(subtask))
    return told


async def tell_session(context: Context, run: TaskRun) -> None:
    """Let the deadlines of its Session stand still, or run, as the record says. Repeated: no change.

    A crash between record and host leaves them as they were; whoever asks again, or drives next, makes it good.
    """
    if not run.session_live or run.session is None:
        return
    with suppress(SessionError):  # it ended meanwhile, or does not answer: nothing runs against it then
        session = SessionId(run.session)
        await (context.sessions.hold(session) if run.is_held else context.sessions.release(session))


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
