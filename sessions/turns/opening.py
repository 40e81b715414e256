"""One start of a turn: validated, recorded, given to a process that is there or is made for it; or undone."""

from collections.abc import Callable
from functools import partial

import anyio

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.carrying import Carrier
from coordinate_agents.sessions.turns.inputs import (
    Accepted,
    Illegal,
    Opened,
    ProcessGone,
    ProcessKnown,
    ProcessWanted,
    Refused,
    Validated,
    Withdrawn,
)
from coordinate_agents.sessions.turns.live import Live, Opening
from coordinate_agents.sessions.turns.model import Connection, TurnId, TurnSpec
from coordinate_agents.sessions.turns.ports import ResumeFailed


def conflict(session: SessionId, what: str) -> SessionError:
    return SessionError(
        "SESSION_STATE_CONFLICT",
        f"Session {session}: {what}.",
        kept="the Session as it is",
        next=f"coordinate-agents session-status {session}",
    )


class Starter:
    """`is_wanted` is asked after every wait."""

    def __init__(self, carrier: Carrier, live: Live, spec: TurnSpec, is_wanted: Callable[[], bool]) -> None:
        self._carrier = carrier
        self._driver = carrier.driver
        self._live = live
        self._session = live.session
        self._spec = spec
        self._is_wanted = is_wanted
        # What was found valid is valid as long as no other turn was.
        self._generation = live.turns.generation

    async def validate_beside(self) -> None:
        """Find the turn valid while another one runs; nothing changes. Raises: SessionError."""
        self._require_wanted()
        await self._driver.validate(self._session, self._spec)
        self._require_wanted()

    async def start(self, turn: TurnId, *, is_validated: bool) -> TurnId:
        """Raises: SessionError, OSError."""
        live = self._live
        self._require_wanted()
        try:
            self._carrier.apply(live, Opened())
        except Illegal as error:
            said = f"turn {live.turns.turn} is {error.state}" if live.turns.turn else f"it is {error.state}"
            raise conflict(self._session, f"no turn can start while {said}") from error
        opening = live.opening = Opening()
        failed: BaseException | None = None
        try:
            with opening.scope:
                await self._take_steps(turn, is_validated=is_validated)
                return turn
        except BaseException as error:
            failed = error
            raise
        finally:
            live.opening = None
            self._undo(failed)
            opening.done.set()
            if live.closing is not None:
                with anyio.CancelScope(shield=True):
                    await live.closing.done.wait()
        raise conflict(self._session, "it was ended while the turn was being started")

    def _undo(self, failed: BaseException | None) -> None:
        """After a failure: as if the turn had never been asked for, but for what is recorded."""
        state = self._live.turns.state
        if failed is None or self._live.turns.has_begun:
            return
        self._live.refusal = (getattr(failed, "code", "SESSION_START_FAILED"), str(failed) or type(failed).__name__)
        if state == "opening":
            self._carrier.apply(self._live, Withdrawn())
        elif state in ("starting", "cancelling", "abandoning"):
            self._carrier.apply(self._live, Refused())

    async def _take_steps(self, turn: TurnId, *, is_validated: bool) -> None:
        live = self._live
        if not is_validated:
            await self._driver.validate(self._session, self._spec)
        self._require_wanted()
        live.refusal = ("", "")
        self._carrier.apply(live, Validated(turn))
        live.is_restored = False
        self._generation = live.turns.generation
        # Recorded before the agent knows of it: whoever comes back after a crash finds a turn to look for.
        await self._carrier.keeper.settled(self._session)
        self._require_wanted()
        is_new = await self._connect()
        self._require_wanted()
        await self._driver.begin(self._session, turn, self._spec, is_new=is_new)
        self._require_wanted()
        live.pulse = live.pulse.begun(self._carrier.clock.monotonic())
        self._carrier.keeper.watch(self._session)
        self._carrier.apply(live, Accepted())

    async def _connect(self) -> bool:
        """A living process that fits, or a new one; whether it is new."""
        live, spec = self._live, self._spec
        if live.turns.process and live.turns.stays and spec.configuration in ("", live.configuration):
            return False
        if live.turns.process:
            # Of other settings, or of a turn that is over: never two processes at once.
            survivors = await self._driver.close(self._session, bound_s=None, graceful=True)
            if survivors:
                raise SessionError(
                    "SESSION_CLOSE_FAILED",
                    f"Session {self._session}: its process of before could not be ended: {', '.join(survivors[:3])}.",
                    kept="the Session as it is",
                )
            self._carrier.apply(live, ProcessGone())
        self._require_wanted()
        connection = await self._open()
        live.configuration, live.connection = spec.configuration, connection
        self._carrier.apply(live, ProcessKnown(connection.stays, connection.exit_completes))
        self._carrier.tell_start(live)
        self._carrier.follow(live)
        return True

    async def _open(self) -> Connection:
        """With the conversation of before, where there is one; visibly without it where that fails."""
        live, spec = self._live, self._spec
        live.resumed, live.reason = spec.resume is not None, ""
        if spec.resume is not None:
            try:
                return await self._open_once(resume=True)
            except ResumeFailed as error:
                live.resumed, live.reason = False, error.reason
                if error.child_existed:
                    raise SessionError(
                        "SESSION_START_FAILED",
                        f"Session {self._session}: its conversation could not be taken up: {error.reason}.",
                        kept="the conversation as the agent has it",
                    ) from error
            self._require_wanted()
        return await self._open_once(resume=False)

    async def _open_once(self, *, resume: bool) -> Connection:
        self._carrier.apply(self._live, ProcessWanted())
        report = partial(self._carrier.report, self._live, self._live.turns.process)
        return await self._driver.open(self._session, self._spec, resume=resume, report=report)

    def _require_wanted(self) -> None:
        if not self._is_wanted():
            raise conflict(self._session, "the turn is not wanted any more")
        if self._live.turns.generation != self._generation:
            raise conflict(self._session, "another turn was started meanwhile")
        if self._live.opening is not None and self._live.turns.state == "disposing":
            raise conflict(self._session, "it was ended while the turn was being started")
