"""Follows the terminals that are shown: the last line of each, the screen of the selected one.

A host is asked to answer when there is more output, so a silent agent costs nothing; one that prints without end is
looked at twice a second at most, and the drawing of a screen takes a tenth of the time at most.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final

from coordinate_agents.graph.ports import Screen, Sessions
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionFacts, SessionId

PAUSE_S: Final = 0.5
# One that does not answer is asked again; its host may be stopped.
_AGAIN_S: Final = 3.0
_WAIT_MS: Final = 25_000
_SHARE: Final = 10

Render = Callable[[bytes, int, int], Screen]


class Terminals:
    """`last`: Session to its last line. `screen`: lines of the selected one's terminal. `changed` is called after."""

    def __init__(self, sessions: Sessions, render: Render | None, changed: Callable[[], None]) -> None:
        self._sessions = sessions
        self._render = render
        self._changed = changed
        self._following: dict[str, asyncio.Task[None]] = {}
        self._drawing: asyncio.Task[float] | None = None
        self._selected: str | None = None
        self.last: dict[str, str] = {}
        self.screen: tuple[str, ...] = ()

    def follow(self, wanted: Collection[str], selected: str | None) -> None:
        """Follow these Sessions and no others; draw the screen of the selected one, which is one of them or None."""
        for name in [name for name in self._following if name not in wanted]:
            self._following.pop(name).cancel()
            self.last.pop(name, None)
        for name in wanted:
            if name not in self._following:
                self._following[name] = asyncio.create_task(self._follow(SessionId(name)))
        if selected != self._selected:
            self._selected, self.screen = selected, ()
            if self._drawing is not None:
                self._drawing.cancel()
            self._drawing = None if selected is None else asyncio.create_task(self._draw(SessionId(selected), None))

    def end(self) -> None:
        self.follow((), None)

    async def _follow(self, name: SessionId) -> None:
        while True:
            facts = await self._sessions.look(name)
            self.last[name] = facts.last_line
            spent = await self._draw(name, facts) if name == self._selected else 0.0
            self._changed()
            if facts.liveness in ("ended", "lost"):
                return
            if facts.liveness == "absent":  # meant to start, and not there yet
                await asyncio.sleep(PAUSE_S)
                continue
            await self._more(name, facts)
            await asyncio.sleep(max(PAUSE_S, spent * _SHARE))

    async def _more(self, name: SessionId, facts: SessionFacts) -> None:
        """Wait until it printed more than it had."""
        try:
            await self._sessions.read(name, cursor=facts.output_bytes, max_bytes=16, wait_ms=_WAIT_MS)
        except SessionError:
            await asyncio.sleep(_AGAIN_S)

    async def _draw(self, name: SessionId, facts: SessionFacts | None) -> float:
        """Draw its screen; the seconds that took."""
        try:
            record = (facts or await self._sessions.look(name)).record
            if self._render is None or record is None:
                return 0.0
            data, _, _, _ = await self._sessions.raw_output(name, cursor=None)
        except SessionError:
            return 0.0
        began = time.monotonic()
        shown = await asyncio.to_thread(self._render, data, record.columns, record.rows)
        if name == self._selected:
            self.screen = tuple(line for line in shown.lines if line.strip())
            self._changed()
        return time.monotonic() - began
