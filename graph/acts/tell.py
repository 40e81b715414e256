"""Give a person's words to a subtask's agent: typed where its program takes text, else kept for its next prompt."""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import TaskTold
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.turns import resolve_agent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId


async def tell(
    engine: Engine, asked: Mapping[str, Any], *, who: str, request: int = 0, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Type the words, or keep them for the next prompt. Returns `{told, delivered, reason}`.

    `request`: one that was begun before a crash types nothing again. Raises: TASK_STATE_CONFLICT.
    """
    context, subtask, words = engine.context, SubtaskId(str(asked["subtask"])), str(asked["text"])
    run = context.run(subtask)
    if request and request <= run.told_request:
        return {"told": "now", "delivered": "unknown", "reason": "the driver died while it was typed"}
    _require_listening(engine, run)
    reason = _why_later(engine, run)
    if reason is None:
        assert run.session is not None
        engine.apply(TaskTold(subtask, words, now=True, who=who, request=request))
        try:
            result = await context.turns.write_input(SessionId(run.session), words, submit=True)
        except SessionError as error:
            reason = error.message
        else:
            if result.delivered != "false":
                return {"told": "now", "delivered": result.delivered, "reason": result.reason or None}
            reason = result.reason
        _require_listening(engine, context.run(subtask))
    told = {"told": "queued", "delivered": "false", "reason": reason}
    engine.apply(TaskTold(subtask, words, who=who, request=request), results=answers(told))
    return told


def _why_later(engine: Engine, run: TaskRun) -> str | None:
    """Why the words wait for the next prompt; None when they can be typed."""
    if run.state != "running":
        return "it does not run; they are part of its next prompt"
    if not run.session_live or run.phase not in ("working", "held"):
        return "it takes no words just now; they are its next turn"
    try:
        mode = resolve_agent(engine.context, run).mode
    except SessionError:
        mode = "oneshot"
    if mode != "interactive":
        return "its program reads nothing while it works; they are its next turn"
    if run.delivered in ("", "false"):
        return "it has not got its prompt yet; they are its next turn"
    return None


def _require_listening(engine: Engine, run: TaskRun) -> None:
    graph = engine.context.graph_id
    if run.state == "succeeded":
        message = f"Subtask {run.id} succeeded: there is no next turn that could be told."
        following = f"coordinate-agents graph-resume {graph} {run.id} --redo --say TEXT"
    elif run.state == "running" and run.phase == "verifying":
        message = f"The work of subtask {run.id} is being verified; whether a turn follows is not known yet."
        following = f"coordinate-agents graph-wait {graph} --for {run.id}"
    else:
        return
    raise GraphError(
        "TASK_STATE_CONFLICT",
        message,
        kept="everything as it is; nothing was said",
        next=following,
        stage="tell",
        facts={"taskId": graph, "subtaskId": run.id},
    )
