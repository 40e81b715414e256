"""graph-stop: close the Sessions that the Runtime owns, by the driver if there is one, else under the lease."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import DriveEnded, DriveStarted
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.loading import pick_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.stopping import stop_all
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.requests import submit
from coordinate_agents.sessions.errors import SessionError

# Closing takes up to the bound of one Session; a driver that needs longer has recorded the request.
_STOP_WAIT_S = 15.0


@dataclass(frozen=True, slots=True)
class Request:
    graph: str | None = None
    subtask: str | None = None
    drain: bool = False
    reason: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    reason = f"stopped: {request.reason}" if request.reason else "stopped"
    asked = {"subtask": subtask, "drain": request.drain, "reason": reason}
    answer = submit(runtime.store, row.id, "stop", asked, who=runtime.who, timeout_s=_STOP_WAIT_S)
    if answer is not None and answer.outcome == "refused":
        raise GraphError("TASK_STATE_CONFLICT", answer.message, facts={"taskId": row.id})
    if answer is not None and answer.outcome == "pending":
        raise _unanswered(runtime, row.id)
    if answer is None and not request.drain:
        lease = Lease.acquire(runtime.store, row.id, purpose="graph-stop")
        try:
            refused = anyio.run(_stop, runtime, row.id, lease.generation, subtask, reason)
        finally:
            lease.release()
        if refused:
            raise _not_stopped(row.id, refused)
    data = status_of(runtime, row.id)
    data["stop"] = {"outcome": answer.outcome if answer is not None else "accepted"}
    return Result(data)


def _unanswered(runtime: Runtime, graph: str) -> GraphError:
    by = holder(runtime.store.place.folder, graph)
    who = f"process {by.pid}" if by is not None else "the driver"
    is_stopped = by is not None and by.life == "stopped"
    return GraphError(
        "WAIT_TIMED_OUT",
        f"Graph {graph} is not stopped yet: {who}, which drives it,"
        f" {'is stopped itself' if is_stopped else f'did not carry it out within {_STOP_WAIT_S:g} s'}.",
        kept="the request, which the driver carries out when it goes on",
        next=f"kill -CONT {by.pid}" if by is not None and is_stopped else f"coordinate-agents graph-status {graph}",
        stage="request",
        facts={"taskId": graph},
    )


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


async def _stop(
    runtime: Runtime, graph: str, generation: int, subtask: str | None, reason: str
) -> Mapping[SubtaskId, SessionError]:
    context = open_context(runtime, graph, generation)
    engine = Engine(context, DriveOptions())
    engine.apply(DriveStarted(os.getpid()))
    refused = await stop_all(context, reason=reason, only=SubtaskId(subtask) if subtask is not None else None)
    engine.apply(DriveEnded("stopped"))
    return refused
