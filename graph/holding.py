"""Holds: while a person types into a subtask's Session, the driver prompts, verifies and starts nothing there.

That somebody is attached is a fact of the Session's host and ends with the terminal, also when the command was killed.
A request only says when to look; a driver that comes later finds the fact by itself. While a hold lasts the host is
asked twice a second: nobody is told when a terminal goes away, and a person does not notice half a second.
"""

from typing import Final

import anyio
from anyio.abc import TaskGroup

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import PhaseChanged
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.runs import still_asked
from coordinate_agents.sessions.model import SessionId

# A terminal is attached this long after it was announced, or not at all.
_ATTACH_BOUND_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.5
# Until it is there it is looked for more often: a terminal that came and went at once must not be waited for.
_LOOK_FOR_IT_S: Final = 0.05


class Holds:
    """The holds of one drive; their tasks live in `group`."""

    def __init__(self, context: Context, group: TaskGroup) -> None:
        self._context = context
        self._group = group
        self._look_now: dict[SubtaskId, anyio.Event] = {}

    def begin(self, subtask: SubtaskId, *, announced: bool) -> str | None:
        """Hold the subtask while somebody is attached; why it cannot be, or None. Twice is no error.

        `announced`: the terminal is about to come; else it is there already.
        """
        run = self._context.snapshot.runs.get(subtask)
        if run is None or run.state != "running" or run.session is None:
            return f"subtask {subtask} has no Session that runs"
        if subtask not in self._context.holds:
            self._context.holds.add(subtask)
            self._look_now[subtask] = anyio.Event()
            self._group.start_soon(self._hold, subtask, SessionId(run.session), announced)
        return None

    def look(self, subtask: SubtaskId) -> None:
        """Somebody detached: see whether that was the last one."""
        if subtask in self._look_now:
            self._look_now[subtask].set()

    async def _hold(self, subtask: SubtaskId, session: SessionId, announced: bool) -> None:
        context = self._context
        before = context.run(subtask)
        if before.phase != "held":
            context.record(PhaseChanged(subtask, "held", "somebody is attached"))
        try:
            await self._until_detached(subtask, session, announced=announced)
        finally:
            del self._look_now[subtask]
            context.holds.discard(subtask)
            context.notify()
        run = context.run(subtask)
        if run.state != "running" or run.phase != "held" or run.is_held:
            return
        if before.phase == "awaiting-input" and not run.can_go_on:
            context.record(still_asked(before))
        else:
            # It gave its slot back; the planner gives it the next one.
            context.record(PhaseChanged(subtask, "held", can_go_on=True))

    async def _until_detached(self, subtask: SubtaskId, session: SessionId, *, announced: bool) -> None:
        clock = self._context.clock
        patience = clock.monotonic() + (_ATTACH_BOUND_S if announced else 0.0)
        while True:
            facts = await self._context.sessions.look(session)
            if facts.liveness not in ("live", "unreachable"):
                return
            if facts.attached:
                patience = 0.0
            elif facts.liveness == "live" and clock.monotonic() >= patience:
                return
            with anyio.move_on_after(_LOOK_FOR_IT_S if patience else _LOOK_EVERY_S):
                await self._look_now[subtask].wait()
                patience = 0.0
                self._look_now[subtask] = anyio.Event()
