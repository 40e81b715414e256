"""task-dispatch: give a Task to its agent, catch an end that comes at once, and leave the rest to a driver of its own.

Each call is one explicit step: the first assignment, the changes that a review asked for (typed into the same Session
where that is healthy), or, after an error or a stop, a new attempt. Nothing here begins a second attempt by itself. The
driver that is left behind sees the Session's end or submission and verifies it; it starts nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import anyio

from coordinate_agents.graph.acts.dispatch import is_starting, require_startable, started
from coordinate_agents.graph.acts.resume_task import resume_task
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_NEEDS_PERSON, EXIT_NOT_SUCCEEDED, GraphError
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.opened import require_unopened
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph
from coordinate_agents.graph.operations.loading import load_snapshot
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import PROGRAM, pick_task, task_data
from coordinate_agents.graph.operations.task_watch import watch_apart
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.worktrees.values import value_class

GRACE_S: Final = 10.0
MAX_GRACE_S: Final = 60.0


@value_class
class Request:
    """`grace`: seconds for which an end of the turn is waited for, once its Session started; None: `GRACE_S`."""

    task: str | None = None
    grace: float | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`dispatch`: `{sent, sessionId, attempt, turn, reused, adopted, delivered}`.

    Exit code 4 when it ended without a verified commit, 5 when its agent asks something. Raises: TASK_ALREADY_RUNNING,
    TASK_STATE_CONFLICT, EXECUTABLE_*, DISK_LOW, RATE_LIMITED, LEASE_HELD, and what kept it from starting.
    """
    row, name = pick_task(runtime.store, request.task, instead="graph-run")
    subtask = SubtaskId(name)
    grace_s = GRACE_S if request.grace is None else request.grace
    if grace_s > MAX_GRACE_S:
        raise GraphError("INVALID_USAGE", f"--grace takes at most {MAX_GRACE_S:g}s.", kept="everything as it is")
    _require_dispatchable(row.id, load_snapshot(runtime.store, row.id)[1].runs[subtask])
    refused: list[GraphError] = []
    adopted: list[bool] = []

    async def begin(engine: Engine) -> None:
        try:
            adopted.append(await _begin(engine, subtask, runtime.who))
        except GraphError as error:
            refused.append(error)
            return
        await _grace(engine, subtask, grace_s)

    drive = DriveRequest(DriveOptions(max_starts=0), begin=begin, purpose="task-dispatch")
    snapshot, _ = drive_graph(runtime, row.id, drive)
    if refused:
        raise refused[0]
    run = snapshot.runs[subtask]
    started(row.id, run)
    told = _told(run, is_adopted=adopted[0])
    if run.state == "running":
        watch_apart(runtime, row.id)
    data = task_data(runtime, row.id)
    return Result({**data, "dispatch": told, "advice": _words(data["task"])}, _exit_code(data["task"]))


async def _begin(engine: Engine, subtask: SubtaskId, who: str) -> bool:
    """Claim it, or let it go on in its Session that lives (True). Raises: what keeps it from starting."""
    context = engine.context
    run = context.run(subtask)
    _require_dispatchable(context.graph_id, run)
    # Before anything is changed: the very program that would be started.
    name = context.agent_of(context.task(subtask))
    await context.call(context.agents.resolve, context.config.settings_of(name))
    await require_unopened(context, run)
    if run.state in ("failed", "stopped"):
        told = await resume_task(engine, {"subtask": subtask, "living": True}, who=who)
        if told["adopted"]:
            return True
    require_startable(engine, subtask)
    engine.claim(subtask)
    return False


async def _grace(engine: Engine, subtask: SubtaskId, grace_s: float) -> None:
    """Wait until its Session started, then so long for the end; leave what still runs to the next driver."""
    context = engine.context
    while is_starting(context.run(subtask)) and engine.starts_agents:
        await engine.next_event()
    with anyio.move_on_after(grace_s):
        while context.run(subtask).state == "running" and engine.starts_agents:
            await engine.next_event()
    if context.run(subtask).state == "running":
        engine.leave()


def _require_dispatchable(graph: str, run: TaskRun) -> None:
    """Raises: TASK_ALREADY_RUNNING; TASK_STATE_CONFLICT for one whose work waits for a review, or has one."""
    if run.state not in ("running", "succeeded"):
        return
    is_running = run.state == "running"
    following = f"task-status {graph}" if is_running else f"task-review {graph}"
    raise GraphError(
        "TASK_ALREADY_RUNNING" if is_running else "TASK_STATE_CONFLICT",
        f"Task {graph} {'was dispatched' if is_running else 'has verified work, and no changes are requested'}.",
        kept="everything as it is; nothing was sent",
        next=f"{PROGRAM} {following}",
        stage="dispatch",
        facts={"taskId": graph, "subtaskId": run.id, **({"sessionId": run.session} if run.session else {})},
    )


def _told(run: TaskRun, *, is_adopted: bool) -> Mapping[str, Any]:
    sent = "CHANGES_REQUESTED" if run.turn and run.is_told else "IMPLEMENT"
    return {
        "sent": None if is_adopted else sent,
        "sessionId": run.session,
        "attempt": run.attempt,
        "turn": run.turn,
        "reused": run.is_reused or is_adopted,
        "adopted": is_adopted,
        "delivered": run.delivered or "as its prompt",
    }


def _exit_code(task: Mapping[str, Any]) -> int:
    if task["state"] in ("REVIEWING", "APPROVED"):
        return EXIT_DONE
    if task["state"] in ("IMPLEMENTING", "WAITING_IMPLEMENTER"):
        return EXIT_NEEDS_PERSON if task["phase"] == "awaiting-input" else EXIT_DONE
    return EXIT_NOT_SUCCEEDED


def _words(task: Mapping[str, Any]) -> list[str]:
    lines = []
    if task["state"] in ("IMPLEMENTING", "WAITING_IMPLEMENTER"):
        lines.append(f"Its end is awaited and verified. Wait for it: {PROGRAM} graph-wait {task['id']}")
    return [*lines, f"Next: {task['next']}"]
