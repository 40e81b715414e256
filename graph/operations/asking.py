"""A verb that changes a graph: its driver carries it out when there is one, else this process does under the lease.

Either way the same function decides, so that a verb means the same with and without a driver. A refusal of the driver
comes back as the error that it was, with its code and its next step.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import anyio

from coordinate_agents.graph.acts.answers import Act
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import CODES, GraphError
from coordinate_agents.graph.events import Event, GraphAmended
from coordinate_agents.graph.model import TaskGraph
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.serving import Serve
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.requests import ANSWER_TIMEOUT_S, submit
from coordinate_agents.graph.store.rows import NewDocument, RequestResult

# A driver may come between the question who drives and the lease; it is then asked instead.
_TRIES: Final = 3

T = TypeVar("T")
Told = Mapping[str, Any]
# How an act is carried out without a driver: `do_alone` or `with_lease`.
Begin = Callable[[Runtime, str, str, Callable[[Engine], Awaitable[Told]]], Told]


def ask_or_do(
    runtime: Runtime,
    graph: str,
    kind: str,
    data: Mapping[str, Any],
    do: Callable[[], Mapping[str, Any]],
    *,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> Mapping[str, Any]:
    """What came of it, from the driver or from `do`, which takes the lease. Raises: the refusal; WAIT_TIMED_OUT."""
    for left in reversed(range(_TRIES)):
        answer = submit(runtime.store, graph, kind, data, who=runtime.who, timeout_s=timeout_s)
        if answer is None:
            try:
                return do()
            except GraphError as error:
                if error.code != "LEASE_HELD" or not left:
                    raise
                continue
        if answer.outcome == "refused":
            raise _refused(graph, answer.message, answer.data)
        if answer.outcome == "pending":
            raise unanswered(runtime, graph, kind, timeout_s)
        return answer.data
    raise AssertionError("unreachable")


def by_driver_or_alone(
    runtime: Runtime,
    graph: str,
    kind: str,
    asked: Mapping[str, Any],
    act: Act,
    *,
    verb: str,
    wait_s: float = ANSWER_TIMEOUT_S,
    begin: Begin | None = None,
) -> Told:
    """What the act answers, carried out by the driver that lives or by this process. Raises: as `ask_or_do`.

    `begin`: `do_alone` (None), or `with_lease` for an act that does more than record.
    """

    async def alone(engine: Engine) -> Told:
        return await act(engine, asked, who=runtime.who)

    start = begin or do_alone
    return ask_or_do(runtime, graph, kind, asked, lambda: start(runtime, graph, verb, alone), timeout_s=wait_s)


def do_alone(runtime: Runtime, graph: str, verb: str, act: Callable[[Engine], Awaitable[T]]) -> T:
    """Let the act record events under the lease of this process; nothing is started. Raises: LEASE_HELD.

    It is tried first without one: an act that finds nothing to do changes nothing, not even the lease's generation.
    """

    async def look() -> T:
        context = open_context(runtime, graph, -1, needs="records")
        async with context.with_turns():
            return await act(_Looking(context, DriveOptions(only_look=True)))

    try:
        return anyio.run(look)
    except _WouldRecord:
        return with_lease(runtime, graph, verb, act)


def with_lease(runtime: Runtime, graph: str, verb: str, act: Callable[[Engine], Awaitable[T]]) -> T:
    """The same for what acts on the world before it records. Raises: LEASE_HELD."""
    lease = Lease.acquire(runtime.store, graph, purpose=verb)

    async def carry_out() -> T:
        context = open_context(runtime, graph, lease.generation, needs="records")
        async with context.with_turns():
            return await act(Engine(context, DriveOptions(only_look=True)))

    try:
        return anyio.run(carry_out)
    finally:
        lease.release()


class _WouldRecord(Exception):
    """The act has something to record."""


class _Looking(Engine):
    """An engine that records nothing."""

    def apply_all(self, events: Sequence[Event], *, results: Sequence[RequestResult] = ()) -> None:
        raise _WouldRecord

    def amend(
        self,
        event: GraphAmended,
        graph: TaskGraph,
        document: NewDocument,
        config: Config,
        *,
        results: Sequence[RequestResult] = (),
    ) -> None:
        raise _WouldRecord


def by_driver_or_lease(
    runtime: Runtime, graph: str, kind: str, asked: Mapping[str, Any], serve: Serve, *, wait_s: float = ANSWER_TIMEOUT_S
) -> dict[str, Any]:
    """What `serve` answers, run by the driver that lives or by this process under the lease. Raises: as `ask_or_do`."""

    def alone() -> Mapping[str, Any]:
        return under_lease(runtime, graph, kind, asked, serve)

    return dict(ask_or_do(runtime, graph, kind, asked, alone, timeout_s=wait_s))


def under_lease(runtime: Runtime, graph: str, kind: str, asked: Mapping[str, Any], serve: Serve) -> dict[str, Any]:
    """What `serve` answers, run by this process. Raises: LEASE_HELD, and what it raises."""

    async def alone(engine: Engine) -> dict[str, Any]:
        return await serve(engine.context, asked)

    return with_lease(runtime, graph, f"graph-{kind}", alone)


def unanswered(runtime: Runtime, graph: str, what: str, waited_s: float) -> GraphError:
    by = holder(runtime.store.place.folder, graph)
    who = f"process {by.pid}" if by is not None else "the driver"
    is_stopped = by is not None and by.life == "stopped"
    return GraphError(
        "WAIT_TIMED_OUT",
        f"Graph {graph}: the request {what!r} is not carried out yet: {who}, which drives it,"
        f" {'is stopped itself' if is_stopped else f'did not do so within {waited_s:g} s'}.",
        kept="the request, which the driver carries out when it goes on",
        next=f"kill -CONT {by.pid}" if by is not None and is_stopped else f"coordinate-agents graph-status {graph}",
        stage="request",
        facts={"taskId": graph},
    )


def _refused(graph: str, message: str, told: Mapping[str, Any]) -> GraphError:
    code = told.get("code")
    return GraphError(
        code if code in CODES else "TASK_STATE_CONFLICT",
        message,
        kept=told.get("kept"),
        next=told.get("next"),
        stage=told.get("stage"),
        facts={"taskId": graph, **(told.get("facts") or {})},
    )
