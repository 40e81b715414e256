"""Puts every input to the machine and carries out what follows from it, in this process's one event loop.

`apply` decides at once and never waits: events go out in the order in which they were decided. What takes time (an
answer to the agent, the end of a tree, a write) goes on in tasks of its own and comes back as another input.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, assert_never

import anyio
from anyio.abc import TaskGroup

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId, TurnFacts
from coordinate_agents.sessions.turns import machine
from coordinate_agents.sessions.turns.inputs import (
    Beat,
    Close,
    Closed,
    Dispose,
    Effect,
    Finish,
    Finished,
    Input,
    Overdue,
    PermissionOverdue,
    Reap,
    Record,
    Reported,
    SendAnswer,
    SendCancel,
    Tell,
    TellExit,
)
from coordinate_agents.sessions.turns.keeping import Keeper
from coordinate_agents.sessions.turns.live import Closing, Live
from coordinate_agents.sessions.turns.model import (
    TERMINAL,
    Fact,
    Payload,
    Permission,
    PermissionAsked,
    Printed,
    ProcessEvent,
    Progress,
    Stdout,
    TurnEvent,
    TurnId,
    TurnRecord,
    TurnSpec,
    Updated,
)
from coordinate_agents.sessions.turns.ports import Clock, Driver, Records
from coordinate_agents.sessions.turns.states import LISTENING

# A turn that was asked to stop gets so long; then its tree is ended.
STOP_BOUND_S: Final = 10.0
# A process that has said its last word ends by itself in less.
GRACE_S: Final = 5.0


class Bounds(NamedTuple):
    stop_s: float = STOP_BOUND_S
    grace_s: float = GRACE_S


OnEvent = Callable[[TurnEvent], None]
OnProcess = Callable[[ProcessEvent], None]


class Carrier:
    """Owns the Sessions that this process coordinates. `group` runs what takes time."""

    def __init__(
        self,
        driver: Driver,
        records: Records,
        clock: Clock,
        *,
        bounds: Bounds,
        on_event: OnEvent,
        on_process: OnProcess,
    ) -> None:
        self.driver = driver
        self.records = records
        self.clock = clock
        self.bounds = bounds
        self.lives: dict[SessionId, Live] = {}
        self.keeper = Keeper(records, clock, self._record, self._catch_up)
        self.group: TaskGroup | None = None
        self._on_event = on_event
        self._on_process = on_process

    def apply(self, live: Live, what: Input) -> None:
        """Decide, then begin what follows. Raises: Illegal, with nothing changed."""
        was_waiting, was = bool(live.turns.pending), live.turns.state
        live.turns, effects = machine.step(live.turns, what)
        if was_waiting != bool(live.turns.pending):
            live.pulse = live.pulse.waiting(self.clock.monotonic(), is_waiting=not was_waiting)
        if live.turns.state in ("cancelling", "abandoning") and live.turns.state != was:
            assert live.turns.turn is not None
            self._spawn(self._end_overdue, live, live.turns.turn)
        if live.turns.state == "finishing" and was != "finishing":
            live.decided_at = self.clock.now()
        sends: list[SendAnswer | SendCancel] = []
        for effect in effects:
            self._carry(live, effect, sends)
        if sends:
            self._spawn(self._send, live, tuple(sends))
        closing = live.closing
        if closing is not None and closing.has_ended and live.turns.state != "finishing":
            live.closing = None
            closing.done.set()
        live.has_changed()

    def report(self, live: Live, process: int, fact: Fact) -> None:
        """A fact of one process of the Session; the function that a driver is given."""
        is_heard = process == live.turns.process
        if is_heard and (isinstance(fact, Updated) or (isinstance(fact, Printed) and fact.is_progress)):
            self._note_progress(live, fact)
        self.apply(live, Reported(process, fact))

    def follow(self, live: Live) -> None:
        """Hear the Session's present process from now on."""
        self._spawn(self._follow, live, live.turns.process)

    def tell_start(self, live: Live) -> None:
        self._tell_process(live, ProcessEvent(live.session, live.turns.process, self.clock.now()))

    def give_again(self, live: Live, turn: TurnId, spec: TurnSpec) -> None:
        """Give it the turn once more, in case its agent never got it; a driver that cannot tell does nothing."""
        self._spawn(self._give_again, live, turn, spec)

    def forget(self, live: Live) -> None:
        """Hear it no more; it is looked at anew when it is next asked for."""
        if live.following is not None:
            live.following.cancel()
        self.keeper.unwatch(live.session)
        self.lives.pop(live.session, None)

    def close(self, live: Live) -> Closing:
        """The close of the tree that is under way; it is begun when there is none."""
        if live.closing is None:
            live.closing = Closing()
            self._spawn(self._close, live, live.closing)
        return live.closing

    # --- effects

    def _carry(self, live: Live, effect: Effect, sends: list[SendAnswer | SendCancel]) -> None:
        match effect:
            case Tell(turn, seq, event):
                self._tell(live, turn, seq, event)
            case TellExit(process, end):
                self._tell_process(live, ProcessEvent(live.session, process, self.clock.now(), end))
            case SendAnswer() | SendCancel():
                sends.append(effect)
            case Record(at_once):
                self.keeper.changed(live.session, at_once=at_once)
            case Close():
                self.close(live)
            case Finish():
                self._spawn(self._finish, live)
            case Reap(process):
                self._spawn(self._reap, live, process)
            case _:
                assert_never(effect)

    def _tell(self, live: Live, turn: TurnId, seq: int, event: Payload) -> None:
        if isinstance(event, Stdout):
            live.printed(event.cursor, event.text)
        if isinstance(event, PermissionAsked) and event.permission.deadline_s is not None:
            self._spawn(self._take_back_overdue, live, event.permission, event.permission.deadline_s)
        time = live.decided_at if isinstance(event, TERMINAL) else self.clock.now()
        told = TurnEvent(live.session, turn, seq, time, event)
        live.note(told)
        self._on_event(told)

    def _tell_process(self, live: Live, event: ProcessEvent) -> None:
        live.note(event)
        self._on_process(event)

    def _note_progress(self, live: Live, fact: Printed | Updated) -> None:
        """At most one durable write in a while says that the turn lives."""
        if live.turns.state not in LISTENING:
            return
        live.pulse, is_due = live.pulse.progressed(self.clock.monotonic())
        if is_due:
            live.progress_at = self.clock.now()
            cursor = fact.cursor if isinstance(fact, Printed) else live.cursor
            self.apply(live, Beat(Progress(cursor)))

    def _spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        assert self.group is not None, "used outside its block"
        self.group.start_soon(work, *args)

    # --- what takes time

    async def _send(self, live: Live, sends: Sequence[SendAnswer | SendCancel]) -> None:
        """In this order. What the agent does not hear does not matter: a bound stands behind each."""
        for each in sends:
            try:
                if isinstance(each, SendAnswer):
                    await self.driver.answer(live.session, each.request, each.answer)
                else:
                    await self.driver.cancel(live.session, each.turn)
            except (SessionError, OSError):
                continue

    async def _end_overdue(self, live: Live, turn: TurnId) -> None:
        await self.clock.sleep(self.bounds.stop_s)
        self.apply(live, Overdue(turn))

    async def _take_back_overdue(self, live: Live, permission: Permission, deadline_s: float) -> None:
        await self.clock.sleep(deadline_s)
        if live.turns.turn == permission.turn:
            self.apply(live, PermissionOverdue(permission.request))

    async def _close(self, live: Live, closing: Closing) -> None:
        """End the tree, after a start that is under way has come to its end. Not cut short by whoever lets go."""
        with anyio.CancelScope(shield=True):
            if live.opening is not None:
                live.opening.scope.cancel()
                await live.opening.done.wait()
            bound_s, graceful = live.close_how
            try:
                closing.survivors = await self.driver.close(live.session, bound_s=bound_s, graceful=graceful)
            except (SessionError, OSError) as error:
                closing.error = error
            live.close_how, closing.has_ended = (None, True), True
            self.apply(live, Closed(closing.survivors, is_sure=closing.error is None))

    async def _finish(self, live: Live) -> None:
        """What the turn came to is on disk, and every id that the agent named, before anybody is told."""
        with anyio.CancelScope(shield=True):
            self.keeper.unwatch(live.session)
            self.keeper.changed(live.session, at_once=False)
            await self._settle(live)
            facts: TurnFacts | None = None
            if live.turns.process and live.turns.stays:
                try:
                    facts = await self.driver.rest(live.session)
                except (SessionError, OSError):
                    facts = None  # its process went in this moment, which is told by itself
            self.apply(live, Finished(facts))

    async def _settle(self, live: Live) -> None:
        try:
            await self.keeper.settled(live.session)
        except OSError:
            return  # tried again at the next checkpoint; the agent's end does not wait for a disk

    async def _reap(self, live: Live, process: int) -> None:
        await self.clock.sleep(self.bounds.grace_s)
        if live.turns.process == process and live.turns.state == "idle":
            self.apply(live, Dispose())

    async def _give_again(self, live: Live, turn: TurnId, spec: TurnSpec) -> None:
        try:
            await self.driver.begin(live.session, turn, spec, is_new=True)
        except (SessionError, OSError):
            return  # it is gone or silent, and its end is waited for

    async def _follow(self, live: Live, process: int) -> None:
        try:
            with anyio.CancelScope() as live.following:
                await self.driver.follow(live.session, partial(self.report, live, process))
        except (SessionError, OSError) as error:
            if live.turns.process == process:
                live.trouble = error
                live.has_changed()

    def _record(self, session: SessionId) -> TurnRecord | None:
        live = self.lives.get(session)
        return live.record() if live is not None else None

    async def _catch_up(self, session: SessionId) -> None:
        live = self.lives.get(session)
        if live is None:
            return
        try:
            await self.driver.catch_up(session, partial(self.report, live, live.turns.process))
        except (SessionError, OSError):
            return
