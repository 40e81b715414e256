"""The one place between whoever wants turns done and the drivers that talk to agents.

Every decision is the machine's; `carrying` puts inputs to it and carries out what follows. Here callers ask, and wait
for what they asked for. A caller that goes away leaves nothing half done: a start is undone, a close goes on.

Rule: the state changes before anything is awaited, and is looked at again after every wait. The problem this causes: of
two callers who meet, one finds that the world has moved on under it. Next rule: it then changes nothing, ends what it
had started itself, and raises.

Used as `async with TurnCoordinator(…) as turns`. Leaving the block writes what is pending and lets go; no agent ends.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId, WriteResult
from coordinate_agents.sessions.turns.carrying import Bounds, Carrier, OnEvent, OnProcess
from coordinate_agents.sessions.turns.inputs import (
    Abandon,
    Cancel,
    Dispose,
    Illegal,
    Lost,
    Reported,
    Resolve,
    TakenOver,
)
from coordinate_agents.sessions.turns.live import Live, restored
from coordinate_agents.sessions.turns.model import (
    Answer,
    Fact,
    PermissionRequested,
    RequestId,
    TurnId,
    TurnOutcome,
    TurnRecord,
    TurnSpec,
    TurnsView,
)
from coordinate_agents.sessions.turns.opening import Starter, conflict
from coordinate_agents.sessions.turns.ports import Clock, Driver, Records
from coordinate_agents.sessions.turns.states import ACTIVE


def _nobody(event: object) -> None:
    return None


class TurnCoordinator:
    """Of the Sessions of one driver. All methods may be called from several tasks at once."""

    def __init__(
        self,
        driver: Driver,
        records: Records,
        clock: Clock,
        *,
        bounds: Bounds | None = None,
        on_event: OnEvent = _nobody,
        on_process: OnProcess = _nobody,
    ) -> None:
        self._carrier = Carrier(
            driver, records, clock, bounds=bounds or Bounds(), on_event=on_event, on_process=on_process
        )
        self._driver = driver
        self._clock = clock
        self._known: dict[SessionId, anyio.Lock] = {}
        self._is_leaving = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        self._carrier.group = group
        group.start_soon(self._carrier.keeper.work, group)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_leaving = True
        with anyio.CancelScope(shield=True):
            for live in self._carrier.lives.values():
                live.has_changed()
                if live.closing is not None:
                    await live.closing.done.wait()
            await self._carrier.keeper.flush()
        assert self._carrier.group is not None
        self._carrier.group.cancel_scope.cancel()
        await self._stack.aclose()

    # --- turns

    async def start_turn(
        self,
        session: SessionId,
        spec: TurnSpec,
        *,
        turn: TurnId | None = None,
        replacing: TurnId | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> TurnId:
        """Give the agent a turn; returns when it has it. One at a time: a second one is refused and changes nothing.

        `turn` names it (None: by its number). `replacing`: that turn is abandoned first, once this one is found valid.
        `is_wanted` is asked again after every wait; when it says no, what was started is ended again.
        Raises: SESSION_STATE_CONFLICT; what the driver and the records raise. Then no event tells of the turn.
        """
        live = await self._live(session)
        if turn is not None and live.is_restored and live.is_at(turn):
            return turn  # begun before a crash: what it needs, it has
        starter = Starter(self._carrier, live, spec, lambda: not self._is_leaving and is_wanted())
        if replacing is not None:
            await starter.validate_beside()
            await self.abandon_turn(session, replacing)
        return await starter.start(turn or TurnId(f"t{live.turns.generation + 1}"), is_validated=replacing is not None)

    async def take_over(self, session: SessionId, turn: TurnId, spec: TurnSpec) -> None:
        """Coordinate a turn that an earlier process started and that nobody saw the end of; one of here is left alone.

        A driver that can tell is asked to give the turn in case its agent never got it. Raises: SESSION_NOT_FOUND when
        there is nothing of it; SESSION_STATE_CONFLICT when another turn runs.
        """
        live = await self._live(session)
        if live.trouble is not None or (live.is_restored and live.turns.state == "idle"):
            # Its folder may be there again, and what it told while nobody cared is to be told again.
            self._carrier.forget(live)
            live = await self._live(session)
        if live.turns.outcome is not None and live.turns.outcome.turn == turn:
            return
        if live.turns.state == "idle" and (live.turns.process or live.turns.end is not None):
            self._carrier.apply(live, TakenOver(turn))
        if not live.turns.process and live.turns.end is None and not live.is_at(turn):
            raise SessionError("SESSION_NOT_FOUND", f"There is no Session {session}.")
        if not live.is_at(turn):
            raise conflict(session, f"turn {turn} is not to be taken over while it is {live.turns.state}")
        self._carrier.keeper.watch(session)
        if live.is_restored and live.turns.process:
            self._carrier.give_again(live, turn, spec)

    async def wait_for_turn(self, session: SessionId, turn: TurnId) -> TurnOutcome:
        """How the turn ended, once it has. Cancelling the wait is not cancelling the turn.

        Raises: SESSION_STATE_CONFLICT for a turn that is not known or that nobody coordinates any more;
        SESSION_NOT_HEALTHY when its Session cannot be followed.
        """
        live = await self._live(session)
        while live.is_at(turn):
            if live.trouble is not None:
                raise live.trouble
            if self._is_leaving:
                raise conflict(session, f"turn {turn} goes on, and nobody here waits for it any more")
            await live.next_change()
        outcome = live.turns.outcome
        if outcome is None or outcome.turn != turn:
            raise conflict(session, f"there is no turn {turn}, or it was long ago")
        return outcome

    async def cancel_turn(self, session: SessionId, turn: TurnId) -> bool:
        """Ask the agent to stop, wait for that, and end its tree at the bound. False: that turn does not run."""
        live = await self._live(session)
        if not live.is_at(turn):
            return False
        self._carrier.apply(live, Cancel(turn))
        await self._until_over(live, turn)
        return True

    async def abandon_turn(self, session: SessionId, turn: TurnId) -> None:
        """As `cancel_turn`, and nobody is told how it ended."""
        live = await self._live(session)
        if live.is_at(turn):
            self._carrier.apply(live, Abandon(turn))
            await self._until_over(live, turn)

    def observe(self, session: SessionId, fact: Fact) -> None:
        """A fact about the living process that somebody else than the driver saw, such as the end of a turn."""
        live = self._carrier.lives.get(session)
        if live is not None:
            self._carrier.apply(live, Reported(live.turns.process, fact))

    async def resolve_permission(self, session: SessionId, request: RequestId, answer: Answer) -> WriteResult:
        """Answer it; the first answer counts. Raises: SESSION_STATE_CONFLICT for one that is not asked, or any more."""
        live = await self._live(session)
        try:
            self._carrier.apply(live, Resolve(request))
        except Illegal as error:
            raise conflict(session, f"permission {request} is not asked for, or any more") from error
        return await self._driver.answer(session, request, answer)

    async def interrupt(self, session: SessionId) -> None:
        """Ask the agent to stop what it does. Whoever waits for its turn sees what comes of it."""
        await self._live(session)
        await self._driver.cancel(session, None)

    # --- Sessions

    async def dispose_session(
        self, session: SessionId, *, bound_s: float | None = None, graceful: bool = True
    ) -> tuple[str, ...]:
        """End the Session's tree, with a turn or a start that is under way; returns survivors. Twice is one close.

        Returns when the tree is gone or what is left of it is known. What ended before keeps its outcome.
        Raises: SessionError when the close itself failed: then no turn starts, and it can be tried again.
        """
        live = await self._live(session)
        while live.turns.state == "finishing" and live.closing is None:
            await live.next_change()  # what it came to stays as it is
        if live.closing is None:
            live.close_how = (bound_s, graceful)
            self._carrier.apply(live, Dispose())
        assert live.closing is not None
        closing = live.closing
        await closing.done.wait()
        if closing.error is not None:
            raise closing.error
        return closing.survivors

    async def destroy_all(self) -> dict[SessionId, tuple[str, ...]]:
        """Start nothing from this instant on, and end every Session; what survived of each. Pending writes are done.

        Whoever waits for a turn is released.
        """
        self._is_leaving = True
        left: dict[SessionId, tuple[str, ...]] = {}

        async def dispose(session: SessionId) -> None:
            try:
                left[session] = await self.dispose_session(session)
            except (SessionError, OSError) as error:
                left[session] = (str(error),)

        async with anyio.create_task_group() as group:
            for live in self._carrier.lives.values():
                live.has_changed()
                group.start_soon(dispose, live.session)
        await self._carrier.keeper.flush()
        return left

    async def write_input(self, session: SessionId, text: str, *, submit: bool = False) -> WriteResult:
        """Type into the living process. That we say something is no progress of the turn."""
        return await self._driver.write(session, text, submit=submit)

    async def resize(self, session: SessionId, columns: int, rows: int) -> None:
        await self._driver.resize(session, columns, rows)

    # --- looks

    async def get_state(self, session: SessionId) -> TurnsView:
        live = await self._live(session)
        turns = live.turns
        return TurnsView(
            turns.state,
            turns.turn,
            turns.generation,
            tuple(each.request for each in turns.pending),
            turns.external_sessions[-1] if turns.external_sessions else None,
            turns.outcome,
            live.pulse.silent_s(self._clock.monotonic()),
            live.connection,
        )

    def has_active_turn(self, session: SessionId) -> bool:
        """Whether a turn of the Session was begun here, or taken over, and has not ended."""
        live = self._carrier.lives.get(session)
        return live is not None and live.turns.state in ACTIVE

    def is_awaiting_permission(self, session: SessionId) -> bool:
        live = self._carrier.lives.get(session)
        return live is not None and live.turns.state == "awaiting-permission"

    # --- inside

    async def _live(self, session: SessionId) -> Live:
        """What is known of it; at first from its record and a look at what lives."""
        async with self._known.setdefault(session, anyio.Lock()):
            live = self._carrier.lives.get(session)
            if live is None:
                live = await self._restore(session)
        return live

    async def _restore(self, session: SessionId) -> Live:
        record = await self._carrier.records.load(session)
        standing = await self._driver.stand(session)
        known = record or TurnRecord(session)
        live = Live(session, restored(known, standing), known, self._clock.monotonic())
        self._carrier.lives[session] = live
        if record is not None:
            self._carrier.keeper.known(record)
        still = {each.request for each in standing.pending}
        for request in known.pending:
            if request not in still:
                self._carrier.apply(live, Lost(request))
        for each in standing.pending:
            asked = each._replace(turn=live.turns.turn or each.turn)
            self._carrier.apply(live, Reported(live.turns.process, PermissionRequested(asked)))
        if live.turns.process:
            self._carrier.follow(live)
        return live

    async def _until_over(self, live: Live, turn: TurnId) -> None:
        while live.is_at(turn):
            await live.next_change()
        if live.closing is not None:
            await live.closing.done.wait()
