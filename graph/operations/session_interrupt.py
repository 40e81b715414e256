"""session-interrupt: ask the Session's agent to stop what it does, as Ctrl-C at its terminal would.

Whether the program ends is its own affair; whoever waits for its turn sees what comes of it.
"""

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
    async with runtime.sessions.turns(read_only=True) as turns:
        await turns.interrupt(target.id)
    return {"session": session_json(target), "interrupted": True}
