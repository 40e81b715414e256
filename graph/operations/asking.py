"""Carry out what changes a graph but does not drive it: the driver is asked, or the lease taken for that long."""

from collections.abc import Mapping
from typing import Any

import anyio

from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import CODES, GraphError
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.serving import Serve
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.requests import ANSWER_TIMEOUT_S, RequestAnswer, submit


def by_driver_or_lease(
    runtime: Runtime, graph: str, kind: str, asked: Mapping[str, Any], serve: Serve, *, wait_s: float = ANSWER_TIMEOUT_S
) -> dict[str, Any]:
    """What `serve` answers, run by the driver that lives or by this process under the lease.

    Raises: what `serve` raises, also in the driver; WAIT_TIMED_OUT when the driver does not answer within `wait_s`.
    """
    answer = submit(runtime.store, graph, kind, asked, who="user", timeout_s=wait_s)
    if answer is None:
        return under_lease(runtime, graph, kind, asked, serve)
    if answer.outcome == "refused":
        raise _refused(graph, answer)
    if answer.outcome == "pending":
        raise _unanswered(runtime, graph, kind, wait_s)
    return dict(answer.data)


def under_lease(runtime: Runtime, graph: str, kind: str, asked: Mapping[str, Any], serve: Serve) -> dict[str, Any]:
    """What `serve` answers, run by this process. Raises: LEASE_HELD, and what it raises."""
    lease = Lease.acquire(runtime.store, graph, purpose=f"graph-{kind}")
    try:
        return anyio.run(_alone, runtime, graph, lease.generation, asked, serve)
    finally:
        lease.release()


async def _alone(
    runtime: Runtime, graph: str, generation: int, asked: Mapping[str, Any], serve: Serve
) -> dict[str, Any]:
    context = open_context(runtime, graph, generation)
    Engine(context, DriveOptions())  # gives the context its `record`
    return await serve(context, asked)


def _refused(graph: str, answer: RequestAnswer) -> GraphError:
    """The error as the driver met it."""
    code = answer.data.get("code")
    return GraphError(
        code if code in CODES else "TASK_STATE_CONFLICT",
        answer.message,
        kept=answer.data.get("kept"),
        next=answer.data.get("next"),
        stage="request",
        facts={"taskId": graph},
    )


def _unanswered(runtime: Runtime, graph: str, kind: str, wait_s: float) -> GraphError:
    by = holder(runtime.store.place.folder, graph)
    who = f"process {by.pid}" if by is not None else "the driver"
    is_stopped = by is not None and by.life == "stopped"
    return GraphError(
        "WAIT_TIMED_OUT",
        f"The {kind} of graph {graph} is not done yet: {who}, which drives it,"
        f" {'is stopped itself' if is_stopped else f'did not carry it out within {wait_s:g} s'}.",
        kept="the request, which the driver carries out when it goes on",
        next=f"kill -CONT {by.pid}" if by is not None and is_stopped else f"coordinate-agents graph-status {graph}",
        stage="request",
        facts={"taskId": graph},
    )
