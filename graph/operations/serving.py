"""The driver's answers to what other processes ask it (contract section 8): stop all or one subtask, drain, hold."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.holding import Holds
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.leaving import Leaving
from coordinate_agents.graph.removal_requests import serve_cleanup, serve_undo
from coordinate_agents.graph.resolving import resolve
from coordinate_agents.graph.stopping import stop_all
from coordinate_agents.graph.store.inbox import RequestInbox
from coordinate_agents.graph.store.rows import RequestResult, RequestRow
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError

# One act of a person on a graph, with what it was asked with; its answer is JSON.
Serve = Callable[[Context, Mapping[str, Any]], Awaitable[dict[str, Any]]]
_SERVED: Final[Mapping[str, Serve]] = {"cleanup": serve_cleanup, "undo": serve_undo, "resolve": resolve}


async def serve_requests(engine: Engine, inbox: RequestInbox, leaving: Leaving, holds: Holds) -> None:
    """Serve until cancelled. A stop of the whole graph makes the driver leave; it is answered once all is closed."""
    while True:
        for row in await inbox.next():
            if row.kind in ("hold", "release"):
                _hold(holds, inbox, row)
            elif row.kind in _SERVED:
                await _serve(engine, inbox, row)
            elif row.kind != "stop":
                inbox.answer(RequestResult(row.id, "refused", f"this driver does not know the request {row.kind!r}"))
            elif row.data.get("drain"):
                engine.drain()
                inbox.answer(RequestResult(row.id, "accepted", "nothing new is started"))
            elif row.data.get("subtask") is not None:
                await _stop_subtask(engine, inbox, row)
            else:
                leaving.stop(row)


async def _serve(engine: Engine, inbox: RequestInbox, row: RequestRow) -> None:
    """Carry out what does not run subtasks. One after another: nothing else may begin in a worktree meanwhile.

    An error crosses to who asked as its sentences.
    """
    with engine.kept_open():  # what becomes ready is driven, too
        try:
            data = await _SERVED[row.kind](engine.context, row.data)
        except (GraphError, WorktreeError, SessionError) as error:
            facts = {"code": error.code, "kept": error.kept, "next": error.next}
            inbox.answer(RequestResult(row.id, "refused", error.message, facts))
        else:
            inbox.answer(RequestResult(row.id, "accepted", row.kind, data))


def _hold(holds: Holds, inbox: RequestInbox, row: RequestRow) -> None:
    subtask = SubtaskId(str(row.data["subtask"]))
    problem = None
    if row.kind == "hold":
        problem = holds.begin(subtask, announced=True)
    else:
        holds.look(subtask)
    words = f"{'held' if row.kind == 'hold' else 'released'} while somebody is attached"
    inbox.answer(RequestResult(row.id, "refused" if problem else "accepted", problem or words))


async def _stop_subtask(engine: Engine, inbox: RequestInbox, row: RequestRow) -> None:
    subtask = SubtaskId(str(row.data["subtask"]))
    run = engine.context.snapshot.runs.get(subtask)
    if run is None:
        inbox.answer(RequestResult(row.id, "refused", f"graph {engine.context.graph_id} has no subtask {subtask}"))
        return
    with engine.kept_open():  # the last running one, halted, would end the drive before its Session is closed
        if run.state == "running":
            await engine.halt(subtask)
        refused = await stop_all(engine.context, reason=str(row.data.get("reason", "stopped")), only=subtask)
        if subtask in refused:
            inbox.answer(RequestResult(row.id, "refused", refused[subtask].message))
            return
        inbox.answer(RequestResult(row.id, "accepted", f"subtask {subtask} does not run"))
