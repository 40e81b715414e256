"""Stop a single Task: nothing of it is awaited or verified any more. Its Session is left to itself, never closed.

What the Runtime itself runs for it (setup, a check) is ended. A Session that is just being started is waited for first:
cut short, nobody would know whether it lives.
"""

from collections.abc import Mapping
from typing import Any, Final

import anyio

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import TaskStopped
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.observe import close_command
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import SessionId

PROGRAM: Final = "coordinate-agents"
# A start has a bound of its own; a driver that needs longer has recorded the request.
STARTING_BOUND_S: Final = 20.0


async def stop_task(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Returns `{stopped, session, left}`; `left`: its Session is at work and nobody watches it. Raises: as below."""
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    await _until_started(engine, subtask)
    if context.run(subtask).state == "running":
        await engine.halt(subtask)
    run = context.run(subtask)
    if run.state != "running":
        return {"stopped": False, "session": run.session, "left": False}
    await close_command(context, run.command_session, run.command_marker)
    if run.worktree is not None:
        await context.call(context.worktrees.keep, context.graph_id, slug(subtask), run.worktree)
    stays = await _is_at_work(engine, run)
    told = {"stopped": True, "session": run.session, "left": stays}
    engine.apply(TaskStopped(subtask, str(asked["reason"]), stays=stays), results=answers(told))
    return told


async def _until_started(engine: Engine, subtask: SubtaskId) -> None:
    """Raises: TASK_STATE_CONFLICT when its Session does not come up within the bound."""
    context = engine.context
    with anyio.move_on_after(STARTING_BOUND_S):
        while context.run(subtask).stage == "session" and engine.is_at_work(subtask) and engine.starts_agents:
            await engine.next_event()
        return
    raise GraphError(
        "TASK_STATE_CONFLICT",
        f"The Session of Task {context.graph_id} is just being started.",
        kept="everything as it is; nothing was stopped",
        next=f"{PROGRAM} task-stop {context.graph_id}",
        stage="stop",
        facts={"taskId": context.graph_id, "subtaskId": subtask},
    )


async def _is_at_work(engine: Engine, run: TaskRun) -> bool:
    """Whether the Session that has the turn may go on with it."""
    if run.session is None or run.turn_end is not None:
        return False
    return (await engine.context.sessions.look(SessionId(run.session))).liveness in ("live", "unreachable")
