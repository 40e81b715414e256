"""When the record of a Session's turns is written: at once, at a checkpoint, or not at all.

One write of a Session at a time, and each writes what is so at that moment: a newer state can never be overwritten by
an older one, and a write that failed is made up for by the next, with what is so then. What only grows (output,
progress) waits for the checkpoint: one timer from the first change on, so that neither a burst nor a constant stream
decides when something is written. A record that did not change is not written.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.model import TurnRecord
from coordinate_agents.sessions.turns.ports import Clock, Records

# What a driver that dies takes with it: below what a person would miss, above what a disk notices.
CHECKPOINT_S: Final = 15.0


class Keeper:
    """`current` gives the record as it is now, None where there is none any more.

    `catch_up` asks for what was printed, before a checkpoint.
    """

    def __init__(
        self,
        records: Records,
        clock: Clock,
        current: Callable[[SessionId], TurnRecord | None],
        catch_up: Callable[[SessionId], Awaitable[None]],
    ) -> None:
        self._records = records
        self._clock = clock
        self._current = current
        self._catch_up = catch_up
        self._written: dict[SessionId, TurnRecord] = {}
        self._locks: dict[SessionId, anyio.Lock] = {}
        self._dirty: set[SessionId] = set()
        self._queued: set[SessionId] = set()
        self._watched: set[SessionId] = set()
        self._has_work = anyio.Event()
        self._group: TaskGroup | None = None

    async def work(self, group: TaskGroup) -> None:
        """Write checkpoints until cancelled."""
        self._group = group
        while True:
            await self._has_work.wait()
            await self._clock.sleep(CHECKPOINT_S)
            await self.checkpoint()

    async def checkpoint(self) -> None:
        """Write what changed, and what is watched as far as it changed."""
        for session in sorted(self._watched | self._dirty):
            if session in self._watched:
                await self._catch_up(session)
            try:
                await self.settled(session)
            except OSError:
                continue  # still dirty; the next one tries again
        if not self._watched and not self._dirty:
            self._has_work = anyio.Event()

    def known(self, record: TurnRecord) -> None:
        """It was read, so it need not be written."""
        self._written[record.session] = record

    def watch(self, session: SessionId) -> None:
        """A turn runs: at every checkpoint it is looked at."""
        self._watched.add(session)
        self._has_work.set()

    def unwatch(self, session: SessionId) -> None:
        self._watched.discard(session)

    def changed(self, session: SessionId, *, at_once: bool) -> None:
        """Something of the record changed. `at_once`: it is written now, by nobody who waits for it."""
        self._dirty.add(session)
        self._has_work.set()
        if at_once and session not in self._queued and self._group is not None:
            self._queued.add(session)
            self._group.start_soon(self._write_quietly, session)

    async def settled(self, session: SessionId) -> None:
        """Wait until everything that changed before this call is written. Raises: OSError."""
        async with self._locks.setdefault(session, anyio.Lock()):
            self._queued.discard(session)
            if session not in self._dirty:
                return
            record = self._current(session)
            self._dirty.discard(session)
            if record is None or record == self._written.get(session):
                return
            try:
                await self._records.save(record)
            except OSError:
                self._dirty.add(session)
                raise
            self._written[session] = record

    async def flush(self) -> None:
        """Everything that is not on disk yet; what cannot be written is left out. Never raises."""
        for session in sorted(self._dirty):
            await self._write_quietly(session)

    async def _write_quietly(self, session: SessionId) -> None:
        try:
            await self.settled(session)
        except OSError:
            self._queued.discard(session)
