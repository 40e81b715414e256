"""session-attach: a person's terminal joined to the Session's. Its subtask is held while the person may type.

Held: the driver gives no prompt and starts no verification, and its host counts no time. That somebody is attached is a
fact of the Session's host, so the hold ends with the terminal, whatever becomes of this process; the request only
tells a driver to look now. The terminal itself is the edge's (`Runtime.terminal`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.session_shape import session_json
from coordinate_agents.graph.operations.session_target import PROGRAM, Subtask, Target, find, require_live
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.requests import submit
from coordinate_agents.worktrees.values import value_class

DEFAULT_DETACH_KEY: Final = "C-]"
# The driver records the hold at once; a person at a terminal does not wait for a busy one.
_TELL_S: Final = 1.0


@value_class
class Request:
    session: str
    read_only: bool = False
    raw: bool = False
    detach_key: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`ended`: the Session's end was seen; else the person left. Raises: INVALID_USAGE without a terminal,
    SESSION_NOT_FOUND, SESSION_STATE_CONFLICT when it ended, SESSION_NOT_HEALTHY."""
    if runtime.terminal is None:
        raise GraphError(
            "INVALID_USAGE",
            "session-attach joins terminals, and there is none here (or --json was given).",
            kept="the Session as it is",
            next=f"{PROGRAM} session-read {request.session} --follow",
        )
    target: Target = anyio.run(find, runtime, request.session)
    require_live(target)
    with _held(runtime, None if request.read_only else target.subtask):
        ended = anyio.run(_join, runtime, target, request)
    target = anyio.run(find, runtime, str(target.id))
    return Result({"session": session_json(target), "ended": ended})


async def _join(runtime: Runtime, target: Target, request: Request) -> bool:
    assert runtime.terminal is not None
    return await runtime.terminal.join(
        runtime.sessions,
        target.id,
        is_writing=not request.read_only,
        is_raw=request.raw,
        detach_key=request.detach_key or DEFAULT_DETACH_KEY,
    )


@contextmanager
def _held(runtime: Runtime, subtask: Subtask | None) -> Iterator[None]:
    """Tell the subtask's driver, if there is one, before and after."""
    if subtask is None:
        yield
        return
    _tell(runtime, subtask, "hold")
    try:
        yield
    finally:
        _tell(runtime, subtask, "release")


def _tell(runtime: Runtime, subtask: Subtask, kind: str) -> None:
    asked: dict[str, Any] = {"subtask": subtask.id, "why": "session-attach"}
    submit(runtime.store, subtask.graph, kind, asked, who=runtime.who, timeout_s=_TELL_S)
