"""What the coordinator needs: somebody who talks to agents, somewhere to write, and a clock.

A driver reports facts and decides nothing. Its methods may raise SessionError, and may take any time: the coordinator
bounds them where the rules say so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from coordinate_agents.sessions.model import SessionId, TurnFacts, WriteResult
from coordinate_agents.sessions.turns.model import Answer, Fact, RequestId, TurnId, TurnRecord, TurnSpec

# Takes a fact at once, in the event loop's thread; never raises. It belongs to one process of the Session.
Report = Callable[[Fact], None]


@dataclass(frozen=True, slots=True)
class Connection:
    """A living process. `stays`: it outlives its turns. `exit_completes`: exit code 0 in a turn is the turn's end, as
    of a program that does one thing; otherwise only a word of the agent is. `configuration`: see TurnSpec.
    """

    stays: bool = False
    exit_completes: bool = True
    pid: int | None = None
    host_pid: int | None = None
    configuration: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What lives of a Session that this process did not start itself. `connection` None: nothing.

    `pending` are the permissions that its process still waits for.
    """

    connection: Connection | None = None
    pending: frozenset[RequestId] = frozenset()


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
        """Give it the turn; returns when it has it. `is_new`: `open` was just called. Raises: SessionError."""
        ...

    async def cancel(self, session: SessionId, turn: TurnId) -> None:
        """Ask the agent its own way to stop. That the turn ended is a fact that comes later, or never."""
        ...

    async def answer(self, session: SessionId, request: RequestId, answer: Answer) -> None: ...

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
