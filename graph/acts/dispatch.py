"""Start one ready subtask now, whatever else would come first; or say why it cannot start."""

from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph.conflicts import conflict_words
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import Failure
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.opened import require_unopened
from coordinate_agents.graph.schedule import Deferred
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.text import listed

PROGRAM: Final = "coordinate-agents"


async def dispatch(engine: Engine, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """By a driver: start it beside what runs, and wait until its Session started. Raises: as `execute`."""
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    if not engine.starts_agents:
        raise _error(context.graph_id, subtask, "TASK_STATE_CONFLICT", "What drives the graph now starts nothing.")
    await begin(engine, subtask)
    while is_starting(context.run(subtask)) and engine.starts_agents:
        await engine.next_event()
    return started(context.graph_id, context.run(subtask))


async def begin(engine: Engine, subtask: SubtaskId) -> None:
    """Claim the subtask. Raises: as `execute`; nothing was recorded then, and no attempt counted."""
    require_startable(engine, subtask)
    await require_unopened(engine.context, engine.context.run(subtask))
    engine.claim(subtask)


def is_starting(run: TaskRun) -> bool:
    return run.state == "running" and run.stage in ("", "base", "worktree", "setup", "session")


def require_startable(engine: Engine, subtask: SubtaskId) -> None:
    """Raises: as `execute`, unless the subtask could start this very moment."""
    context = engine.context
    run, graph = context.run(subtask), context.graph_id
    place = context.snapshot.frontier.place(subtask)
    if run.state == "running":
        raise _error(graph, subtask, "TASK_ALREADY_RUNNING", f"Subtask {subtask} runs already.")
    if place != "ready":
        raise _not_ready(engine, subtask, place)
    if run.is_held:
        message = f"Subtask {subtask} is held: a person works in its worktree."
        raise _error(graph, subtask, "TASK_STATE_CONFLICT", message, f"{PROGRAM} graph-release {graph} {subtask}")
    deferred = engine.why_not(subtask)
    if deferred is not None:
        raise _deferred(graph, deferred)


def started(graph: str, run: TaskRun) -> Mapping[str, Any]:
    """The Session that started. Raises: what kept it from starting."""
    if run.session is not None and (run.state == "running" or run.turn_end is not None):
        return {"subtask": run.id, "session": run.session, "attempt": run.attempt}
    if run.conflict is not None:
        words = conflict_words({"pair": run.conflict.pair, "paths": run.conflict.paths})
        message = f"Subtask {run.id} did not start: its prerequisites {words}."
        raise _error(graph, run.id, "BASE_CONFLICT", message, f"{PROGRAM} graph-resolve {graph} {run.id}")
    said = f"Subtask {run.id} did not start: "
    failure = run.failure or Failure("TASK_STATE_CONFLICT", run.reason or "its start was not seen.")
    raise GraphError(
        failure.code,
        f"{said}{failure.message.removeprefix(said)}",
        kept=failure.kept,
        next=failure.next or f"{PROGRAM} graph-inspect {graph} {run.id}",
        stage="dispatch",
        facts={"taskId": graph, "subtaskId": run.id},
    )


def _not_ready(engine: Engine, subtask: SubtaskId, place: str) -> GraphError:
    context = engine.context
    graph, frontier = context.graph_id, context.snapshot.frontier
    following = f"{PROGRAM} graph-status {graph}"
    match place:
        case "waiting":
            missing = [each for each in context.task(subtask).depends_on if context.run(each).state != "succeeded"]
            why = f"waits for {listed(missing)}"
        case "blocked" if context.run(subtask).conflict is not None:
            why, following = "is blocked: its prerequisites do not merge", f"{PROGRAM} graph-resolve {graph} {subtask}"
        case "blocked" if (failure := context.run(subtask).failure) is not None and context.run(
            subtask
        ).state == "failed":
            why, following = f"is blocked: {failure.message.rstrip('.')}", failure.next or following
        case "blocked":
            why = f"is blocked by {listed(frontier.blockers(subtask))}"
        case "succeeded":
            why, following = "succeeded", f"{PROGRAM} graph-resume {graph} {subtask} --redo"
        case _:
            why, following = place, f"{PROGRAM} graph-resume {graph} {subtask}"
    return _error(graph, subtask, "TASK_STATE_CONFLICT", f"Subtask {subtask} is not ready: it {why}.", following)


def _deferred(graph: str, deferred: Deferred) -> GraphError:
    """Why the scheduler keeps it back, with the scheduler's own word for it."""
    code = "TASK_STATE_CONFLICT"
    if deferred.detail.startswith("DISK_LOW"):
        code = "DISK_LOW"
    elif deferred.reason == "AGENT_PAUSED":
        code = "RATE_LIMITED"
    message = f"Subtask {deferred.subtask} cannot start now: {deferred.reason}: {deferred.detail}."
    error = _error(graph, deferred.subtask, code, message)
    more = {"reason": deferred.reason, "other": deferred.other, "patterns": list(deferred.patterns or ())}
    return GraphError(error.code, message, error.kept, error.next, "dispatch", facts={**error.facts, **more})


def _error(graph: str, subtask: str, code: str, message: str, following: str | None = None) -> GraphError:
    return GraphError(
        code,
        message,
        kept="everything as it is; nothing was started",
        next=following or f"{PROGRAM} graph-status {graph}",
        stage="dispatch",
        facts={"taskId": graph, "subtaskId": subtask},
    )
