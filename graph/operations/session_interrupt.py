"""session-interrupt: what Ctrl-C at the Session's terminal would do. Whether the program ends is its own affair."""

from typing import Any, NamedTuple

import anyio

from coordinate_agents.graph.operations.session_shape import session_json
from coordinate_agents.graph.operations.session_target import find, require_live
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime


class Request(NamedTuple):
    session: str


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: SESSION_NOT_FOUND, SESSION_STATE_CONFLICT when it ended, SESSION_NOT_HEALTHY."""
    data: dict[str, Any] = anyio.run(_interrupt, runtime, request.session)
    return Result(data)


async def _interrupt(runtime: Runtime, word: str) -> dict[str, Any]:
    target = await find(runtime, word)
    require_live(target)
    await runtime.sessions.interrupt(target.id)
    return {"session": session_json(target), "interrupted": True}
