"""task-resume: come back to a Task. Records what ended meanwhile, watches again what still runs, readies what failed.

No agent is started: a replacement takes a task-dispatch. A Session that a stop left at work is watched again.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from coordinate_agents.graph.acts.resume_task import resume_task
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations import recover
from coordinate_agents.graph.operations.asking import ask_or_do, do_alone
from coordinate_agents.graph.operations.loading import load_snapshot
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import pick_task, task_data
from coordinate_agents.graph.operations.task_watch import watch_apart
from coordinate_agents.graph.operations.words import given_words
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.worktrees.values import value_class

# Resolving an agent and looking at Sessions and worktrees comes before the record.
_RESUME_WAIT_S: Final = 15.0


@value_class
class Request:
    task: str | None = None
    say: str | None = None
    from_: Literal["branch", "base"] | None = None
    agent: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`resume`: `{recorded, watched, ready, adopted, notes}`.

    Raises: as graph-resume of the one subtask; LEASE_HELD.
    """
    row, name = pick_task(runtime.store, request.task, instead="graph-resume")
    subtask = SubtaskId(name)
    asked = {
        "subtask": name,
        "say": given_words(request.say) or "",
        "from": request.from_ or "branch",
        "agent": request.agent,
    }
    told: dict[str, Any] = {"recorded": False, "watched": False, "ready": False, "adopted": False, "notes": []}
    before = _run(runtime, row.id, subtask)
    if before.state != "running" or asked["say"] or request.agent or request.from_:

        async def alone(engine: Engine) -> Mapping[str, Any]:
            return await resume_task(engine, asked, who=runtime.who)

        resumed = ask_or_do(
            runtime,
            row.id,
            "task-resume",
            asked,
            lambda: do_alone(runtime, row.id, "task-resume", alone),
            timeout_s=_RESUME_WAIT_S,
        )
        told |= {"ready": bool(resumed["reset"]), "adopted": bool(resumed["adopted"]), "notes": resumed["notes"]}
    if _is_unwatched(runtime, row.id, subtask):
        if recover.look(runtime, row.id, subtask).outlook == "due":
            recover.carry_out(runtime, row.id, subtask)
        told["recorded"] = _run(runtime, row.id, subtask).state != "running"
    if _is_unwatched(runtime, row.id, subtask):
        watch_apart(runtime, row.id)
        told["watched"] = True
    data = task_data(runtime, row.id)
    return Result({**data, "resume": told, "advice": _words(data["task"], told)})


def _is_unwatched(runtime: Runtime, graph: str, subtask: SubtaskId) -> bool:
    """Whether it counts as running, and nobody awaits its end."""
    return _run(runtime, graph, subtask).state == "running" and holder(runtime.state_dir, graph) is None


def _run(runtime: Runtime, graph: str, subtask: SubtaskId) -> TaskRun:
    return load_snapshot(runtime.store, graph)[1].runs[subtask]


def _words(task: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    lines = [f"{note[0].upper()}{note[1:]}." for note in told["notes"]]
    if told["recorded"]:
        lines.append(f"It ended meanwhile: {task['state']}.")
    if told["adopted"]:
        lines.append(f"It goes on in its Session {task['sessionId']}.")
    if told["watched"]:
        lines.append("Its end is awaited and verified again.")
    if told["ready"]:
        lines.append("It is ready for another dispatch; nothing was started.")
    return [*lines, f"Next: {task['next']}"]
