"""The time limit of a turn, kept by its driver too: a host that is stopped (SIGSTOP) ends nothing."""

from typing import Final

import anyio

from coordinate_agents.graph.watched import Watched

# A host ends its turn in time, and needs its close bound for that.
HOST_BOUND_S: Final = 60.0
# So often is seen whether the turn works; time in which it waits for a person counts in no limit.
_STEP_S: Final = 30.0


async def end_overdue(watched: Watched) -> None:
    """End the turn as timed out when its limit passed in this driver's own time and its host does not answer.

    Whatever a host that answers says of its turn is believed: it knows of more waits than are recorded.
    """
    worked_s = 0.0
    while watched.cause is None:
        limit_s = watched.context.task(watched.subtask).timeout_s + HOST_BOUND_S
        if worked_s >= limit_s:
            if (await watched.context.sessions.look(watched.session)).liveness == "unreachable":
                await watched.end("timeout", graceful=False)
                return
            worked_s = max(0.0, limit_s - _STEP_S)
        step_s = min(_STEP_S, limit_s - worked_s)
        did_work = watched.phase == "working"
        await anyio.sleep(step_s)
        if did_work and watched.phase == "working":
            worked_s += step_s
