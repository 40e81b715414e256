"""graph-stop: close the Sessions that the Runtime owns, by the driver if there is one, else under the lease."""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.asking import ask_or_do, with_lease
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.stopping import stop_all
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.values import value_class

# Closing takes up to the bound of one Session; a driver that needs longer has recorded the request.
_STOP_WAIT_S = 15.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    drain: bool = False
    reason: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`stop`: accepted, or nothing, when nothing of the graph lives: then nothing is recorded.

    Raises: SESSION_CLOSE_FAILED naming what could not be stopped; WAIT_TIMED_OUT.
    """
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    reason = f"stopped: {request.reason}" if request.reason else "stopped"
    asked = {"subtask": subtask, "drain": request.drain, "reason": reason}
    told: list[str] = []

    def alone() -> Mapping[str, Any]:
        # Nothing new starts without a driver, and what nobody runs need not be stopped.
        if request.drain or not _is_anything_open(runtime, row.id, subtask):
            told.append("nothing")
            return {}

        async def stop(engine: Engine) -> Mapping[SubtaskId, SessionError]:
            return await stop_all(engine.context, reason=reason, only=SubtaskId(subtask) if subtask else None)

        refused = with_lease(runtime, row.id, "graph-stop", stop)
        if refused:
            raise _not_stopped(row.id, refused)
        return {}

    ask_or_do(runtime, row.id, "stop", asked, alone, timeout_s=_STOP_WAIT_S)
    data = status_of(runtime, row.id)
    data["stop"] = {"outcome": told[0] if told else "accepted"}
    if told:
        words = "no driver starts anything" if request.drain else "nothing of it runs"
        data["advice"] = [f"Nothing to do: {words}."]
    return Result(data)


def _is_anything_open(runtime: Runtime, graph: str, subtask: str | None) -> bool:
    """Whether a subtask counts as running, or has a Session that stayed open."""
    runs = [run for run in load_snapshot(runtime.store, graph)[1].runs.values() if subtask in (None, run.id)]
    return any(run.state == "running" or run.open_session is not None for run in runs)


def _not_stopped(graph: str, refused: Mapping[SubtaskId, SessionError]) -> GraphError:
    first = next(iter(refused.values()))
    return GraphError(
        first.code,
        f"{', '.join(sorted(refused))} of graph {graph} not stopped: {first.message}",
        kept="what else ran was stopped; these count as running",
        next=first.next or f"coordinate-agents graph-status {graph}",
        stage="stop",
        facts={"taskId": graph},
    )
