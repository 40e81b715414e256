"""session-close: end a Session with everything that it started, within one bound; what survives is listed.

Closing a Session that ended, or twice, is no error. The subtask of a running graph is stopped by graph-stop, which also
records why; closing its Session by hand is seen by the driver as an agent that was stopped.
"""

from typing import Any, Final

import anyio

from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED, GraphError
from coordinate_agents.graph.operations.session_shape import session_json
from coordinate_agents.graph.operations.session_target import find
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

BOUND_RANGE_S: Final = (0.1, 60.0)


@value_class
class Request:
    session: str
    bound: float | None = None
    now: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """`survivors`: "pid name" of what could not be ended; then exit code 1. Raises: SESSION_NOT_FOUND,
    SESSION_CLOSE_FAILED, SESSION_NOT_HEALTHY."""
    low, high = BOUND_RANGE_S
    if request.bound is not None and not low <= request.bound <= high:
        raise GraphError("INVALID_USAGE", f"--bound is from {low:g}s to {high:g}s.")
    data = anyio.run(_close, runtime, request)
    return Result(data, EXIT_REFUSED if data["survivors"] else EXIT_DONE)


async def _close(runtime: Runtime, request: Request) -> dict[str, Any]:
    target = await find(runtime, request.session)
    async with runtime.sessions.turns(read_only=True) as turns:
        survivors = await turns.dispose_session(target.id, bound_s=request.bound, graceful=not request.now)
    facts = await runtime.sessions.look(target.id)
    return {
        "session": session_json(target._replace(facts=facts)),
        "survivors": list(survivors),
        "wasLive": target.facts.liveness == "live",
    }
