"""The driver's answers to what other processes ask it (contract section 8): one handler for each kind of request.

A handler may take its time: each runs beside the others, and the drive does not end before it. What it refuses goes
back as the error that it is; what says that this driver may write no more ends the drive.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import anyio

from coordinate_agents.graph.acts.amend import amend
from coordinate_agents.graph.acts.answers import Act, refusal
from coordinate_agents.graph.acts.check import begin_check
from coordinate_agents.graph.acts.deliver import deliver
from coordinate_agents.graph.acts.dispatch import dispatch
from coordinate_agents.graph.acts.hold import hold, release
from coordinate_agents.graph.acts.resume import resume
from coordinate_agents.graph.acts.resume_task import resume_task
from coordinate_agents.graph.acts.review import review
from coordinate_agents.graph.acts.stop_task import stop_task
from coordinate_agents.graph.acts.tell import tell
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.holding import Holds
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.leaving import Leaving
from coordinate_agents.graph.perform import ENDS_THE_DRIVE
from coordinate_agents.graph.removal_requests import serve_cleanup, serve_undo
from coordinate_agents.graph.resolving import resolve
from coordinate_agents.graph.stopping import stop_all
from coordinate_agents.graph.store.inbox import RequestInbox
from coordinate_agents.graph.store.rows import RequestResult, RequestRow
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError

# What needs no engine: it runs no subtask.
Serve = Callable[[Context, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class Served(NamedTuple):
    """What the handlers of one drive work with. `turn` is held by who must be alone with the worktrees."""

    engine: Engine
    inbox: RequestInbox
    leaving: Leaving
    holds: Holds
    turn: anyio.Lock


class Answering:
    """The answer to one request, given once: with the events that the request caused, or alone."""

    def __init__(self, inbox: RequestInbox, request_id: int) -> None:
        self._inbox = inbox
        self._id = request_id
        self._is_given = False

    def with_events(self, told: Mapping[str, Any]) -> tuple[RequestResult, ...]:
        self._is_given = True
        return (RequestResult(self._id, "accepted", "", told),)

    def accept(self, told: Mapping[str, Any], message: str = "") -> None:
        if not self._is_given:
            self._give(RequestResult(self._id, "accepted", message, told))

    def refuse(self, error: GraphError | WorktreeError | SessionError) -> None:
        if not self._is_given:
            self._give(refusal(self._id, error))

    def _give(self, result: RequestResult) -> None:
        self._is_given = True
        self._inbox.answer(result)


Handler = Callable[[Served, RequestRow, Answering], Awaitable[None]]


async def serve_requests(engine: Engine, inbox: RequestInbox, leaving: Leaving, holds: Holds) -> None:
    """Serve until cancelled. A stop of the whole graph makes the driver leave; it is answered once all is closed."""
    served = Served(engine, inbox, leaving, holds, anyio.Lock())
    async with anyio.create_task_group() as group:
        while True:
            for row in await inbox.next():
                group.start_soon(_serve, served, row)


async def _serve(served: Served, row: RequestRow) -> None:
    answering = Answering(served.inbox, row.id)
    handler = _HANDLERS.get(row.kind)
    try:
        if handler is None:
            raise GraphError("TASK_STATE_CONFLICT", f"This driver does not know the request {row.kind!r}.")
        with served.engine.kept_open():  # what it does may make more ready
            subtask = row.data.get("subtask")
            if subtask is not None:
                _require_subtask(served.engine, str(subtask))
            # One after another: nothing else may begin in a worktree that is being removed, checked or made ready.
            async with served.turn if row.kind not in _BESIDE else nullcontext():
                await handler(served, row, answering)
    except (GraphError, WorktreeError, SessionError) as error:
        if isinstance(error, GraphError) and error.code in ENDS_THE_DRIVE:
            raise
        answering.refuse(error)


def _require_subtask(engine: Engine, subtask: str) -> None:
    if SubtaskId(subtask) not in engine.context.snapshot.runs:
        raise GraphError("TASK_NOT_FOUND", f"graph {engine.context.graph_id} has no subtask {subtask}.")


async def _stop(served: Served, row: RequestRow, answering: Answering) -> None:
    engine, subtask = served.engine, row.data.get("subtask")
    if row.data.get("drain"):
        engine.drain()
        answering.accept({}, "nothing new is started")
    elif subtask is None:
        served.leaving.stop(row)
    else:
        run = engine.context.run(SubtaskId(str(subtask)))
        if run.state == "running":
            await engine.halt(run.id)
        refused = await stop_all(engine.context, reason=str(row.data.get("reason", "stopped")), only=run.id)
        if run.id in refused:
            error = refused[run.id]
            raise GraphError(error.code, error.message, kept=error.kept, next=error.next)
        answering.accept({}, f"subtask {subtask} does not run")


async def _attached(served: Served, row: RequestRow, answering: Answering) -> None:
    """A terminal is joined to the Session of a subtask."""
    problem = served.holds.begin(SubtaskId(str(row.data["subtask"])), announced=True)
    if problem is not None:
        raise GraphError("SESSION_STATE_CONFLICT", problem)
    answering.accept({}, "held while somebody is attached")


async def _detached(served: Served, row: RequestRow, answering: Answering) -> None:
    served.holds.look(SubtaskId(str(row.data["subtask"])))
    answering.accept({}, "released while nobody is attached")


async def _tell(served: Served, row: RequestRow, answering: Answering) -> None:
    told = await tell(served.engine, row.data, who=row.who, request=row.id, answers=answering.with_events)
    answering.accept(told)


async def _dispatch(served: Served, row: RequestRow, answering: Answering) -> None:
    answering.accept(await dispatch(served.engine, row.data))


def _answered(act: Act) -> Handler:
    """A handler of an act that records, and takes the answers that go with its events."""

    async def handler(served: Served, row: RequestRow, answering: Answering) -> None:
        told = await act(served.engine, row.data, who=row.who, answers=answering.with_events)
        answering.accept(told)

    return handler


def _served(serve: Serve) -> Handler:
    """A handler of what needs no engine."""

    async def handler(served: Served, row: RequestRow, answering: Answering) -> None:
        answering.accept(await serve(served.engine.context, row.data))

    return handler


# What must be heard at once, or waits long for a start or a program.
_BESIDE: Final = frozenset({"stop", "task-stop", "hold", "release", "tell", "dispatch"})
_HANDLERS: Final[Mapping[str, Handler]] = {
    "stop": _stop,
    "task-stop": _answered(stop_task),
    "task-resume": _answered(resume_task),
    "hold": _attached,
    "release": _detached,
    "resume": _answered(resume),
    "amend": _answered(amend),
    "check": _answered(begin_check),
    "review": _answered(review),
    "deliver": _answered(deliver),
    "graph-hold": _answered(hold),
    "graph-release": _answered(release),
    "tell": _tell,
    "dispatch": _dispatch,
    "cleanup": _served(serve_cleanup),
    "undo": _served(serve_undo),
    "resolve": _served(resolve),
}
