"""What the coordinator needs: somebody who talks to agents, somewhere to write, and a clock.

A driver reports facts and decides nothing. Its methods may raise SessionError, and may take any time: the coordinator
bounds them where the rules say so.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from coordinate_agents.sessions.model import SessionId, TurnFacts, WriteResult
from coordinate_agents.sessions.turns.model import (
    Answer,
    Connection,
    Fact,
    Permission,
    RequestId,
    TurnId,
    TurnRecord,
    TurnSpec,
)

# Takes a fact at once, in the event loop's thread; never raises. It belongs to one process of the Session.
Report = Callable[[Fact], None]


class Standing(NamedTuple):
    """What lives of a Session that this process did not start itself. `connection` None: nothing.

    `is_busy`: its process is in a turn, as far as it can be seen. `pending` are the permissions that it waits for.
    """

    connection: Connection | None = None
    is_busy: bool = True
    pending: tuple[Permission, ...] = ()


class ResumeFailed(Exception):
    """The conversation could not be taken up. `child_existed`: a process of the agent had been started for it."""

    def __init__(self, reason: str, *, child_existed: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.child_existed = child_existed


class Driver(Protocol):
    """Of all Sessions of one coordinator."""

    async def validate(self, session: SessionId, spec: TurnSpec) -> None:
        """Whether the turn is possible at all; nothing is changed. Raises: SessionError."""
        ...

    async def open(self, session: SessionId, spec: TurnSpec, *, resume: bool, report: Report) -> Connection:
        """Start the process; with `resume` it takes up `spec.resume`. Facts may come before it returns.

        Raises: SessionError; ResumeFailed.
        """
        ...

    async def stand(self, session: SessionId) -> Standing:
        """Look at a Session that another process may have started."""
        ...

    async def follow(self, session: SessionId, report: Report) -> None:
        """Report facts until the process is gone. A driver whose facts come by themselves returns at once."""
        ...

    async def begin(self, session: SessionId, turn: TurnId, spec: TurnSpec, *, is_new: bool) -> None:
        """Give it the turn; returns when it has it. Raises: SessionError.

        `is_new`: the process was started for it, so one that got it with its launch is given nothing.
        """
        ...

    async def cancel(self, session: SessionId, turn: TurnId | None) -> None:
        """Ask the agent its own way to stop (None: whatever it does). That it has, is a fact that may come later."""
        ...

    async def answer(self, session: SessionId, request: RequestId, answer: Answer) -> WriteResult:
        """Raises: SESSION_STATE_CONFLICT when somebody else was faster."""
        ...

    async def rest(self, session: SessionId) -> TurnFacts:
        """The turn is over and the process stays, idle."""
        ...

    async def close(self, session: SessionId, *, bound_s: float | None, graceful: bool) -> tuple[str, ...]:
        """End the whole tree and wait for that; returns survivors. Of what has ended, or never was: nothing."""
        ...

    async def write(self, session: SessionId, text: str, *, submit: bool) -> WriteResult: ...

    async def resize(self, session: SessionId, columns: int, rows: int) -> None: ...

    async def catch_up(self, session: SessionId, report: Report) -> None:
        """Before a checkpoint: report what was printed since, where that does not come by itself."""
        ...


class Records(Protocol):
    """Where the newest record of each Session is. Called for one Session at a time."""

    async def load(self, session: SessionId) -> TurnRecord | None: ...

    async def save(self, record: TurnRecord) -> None:
        """Replace the record, whole. Raises: OSError."""
        ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for records and events."""
        ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
