"""task-stop: await and verify nothing more of a Task, by its driver if there is one. Its Session is never closed."""

from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph.acts.stop_task import STARTING_BOUND_S, stop_task
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.asking import ask_or_do, with_lease
from coordinate_agents.graph.operations.loading import load_snapshot
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import PROGRAM, pick_task, task_data
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

_STOP_WAIT_S: Final = STARTING_BOUND_S + 5.0


@value_class
class Request:
    task: str | None = None
    reason: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`stop`: `{stopped, session, left}`; nothing is recorded when it does not run. Raises: TASK_STATE_CONFLICT."""
    row, subtask = pick_task(runtime.store, request.task, instead="graph-stop")
    reason = f"stopped: {request.reason}" if request.reason else "stopped"
    asked = {"subtask": subtask, "reason": reason}

    def alone() -> Mapping[str, Any]:
        run = load_snapshot(runtime.store, row.id)[1].runs[SubtaskId(subtask)]
        if run.state != "running":
            return {"stopped": False, "session": run.session, "left": False}

        async def stop(engine: Engine) -> Mapping[str, Any]:
            return await stop_task(engine, asked, who=runtime.who)

        return with_lease(runtime, row.id, "task-stop", stop)

    told = ask_or_do(runtime, row.id, "task-stop", asked, alone, timeout_s=_STOP_WAIT_S)
    data = task_data(runtime, row.id)
    return Result({**data, "stop": dict(told), "advice": _words(data["task"], told)})


def _words(task: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    lines = [] if told["stopped"] else ["Nothing to do: it does not run."]
    session = task["session"] or {}
    if told["left"] or session.get("state") in ("idle", "running"):
        lines.append(
            f"Its Session {session['id']} was left as it is. Close it: {PROGRAM} session-close {session['id']}"
        )
    return [*lines, f"Next: {task['next']}"]
