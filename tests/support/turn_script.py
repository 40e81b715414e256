"""A scripted driver, records that can be slow or fail, and a clock that is moved by hand: for tests of turns.

Whatever is asked of the driver passes a named point. A point that is held keeps whoever comes there until it is let go,
so that a test says in which order things happen, and never waits for time.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionEnd, SessionId, TurnFacts, WriteResult
from coordinate_agents.sessions.turns.carrying import Bounds
from coordinate_agents.sessions.turns.coordinator import TurnCoordinator
from coordinate_agents.sessions.turns.model import (
    Answer,
    Connection,
    Fact,
    Permission,
    PermissionOption,
    PermissionRequested,
    ProcessEvent,
    ProcessExited,
    RequestId,
    TurnEvent,
    TurnId,
    TurnRecord,
    TurnSpec,
)
from coordinate_agents.sessions.turns.ports import Report, Standing

S = SessionId("s")
T1, T2, T3 = TurnId("t1"), TurnId("t2"), TurnId("t3")
SPEC = TurnSpec(prompt="do it")
YES, NO = PermissionOption("yes", "Yes"), PermissionOption("no", "No")


# The longest chain of steps of these scripts takes fewer turns of the loop.
_TURNS = 40


async def all_blocked() -> None:
    """Let every task go on to where it waits for something that does not come by itself."""
    for _ in range(_TURNS):
        await anyio.lowlevel.checkpoint()


def refusal(what: str = "no") -> SessionError:
    return SessionError("SPAWN_FAILED", what)


def end(code: int = 0, *survivors: str) -> SessionEnd:
    return SessionEnd("exit", exit_code=code, survivors=survivors)


def asks(request: str, turn: TurnId = T1, *options: PermissionOption, deadline_s: float | None = None) -> Fact:
    permission = Permission(RequestId(request), turn, "may I?", options or (YES, NO), deadline_s=deadline_s)
    return PermissionRequested(permission)


class Points:
    """Named places. `held` ones keep whoever comes there."""

    def __init__(self) -> None:
        self._gates: dict[str, anyio.Event] = {}
        self._reached: dict[str, anyio.Event] = defaultdict(anyio.Event)

    def hold(self, name: str) -> None:
        self._gates[name] = anyio.Event()

    def let_go(self, name: str) -> None:
        self._gates.pop(name).set()

    def hold_on(self, name: str) -> anyio.Event:
        """Whoever is held there stays so until the event is set, and whoever comes from now on passes."""
        return self._gates.pop(name)

    def is_held(self, name: str) -> bool:
        return name in self._gates

    async def reached(self, name: str) -> None:
        await self._reached[name].wait()

    async def passing(self, name: str) -> None:
        self._reached[name].set()
        gate = self._gates.get(name)
        if gate is not None:
            await gate.wait()
        await anyio.lowlevel.checkpoint()


class ScriptedDriver:
    """Does what it is told, and notes what it was asked. `stays`: its processes outlive their turns.

    `fail` gives errors to be raised once, by the name of the method. `left` are the survivors of the next closes.
    """

    def __init__(self, *, stays: bool = True) -> None:
        self.points = Points()
        self.stays = stays
        self.exit_completes = not stays
        self.calls: list[str] = []
        self.fail: dict[str, list[Exception]] = defaultdict(list)
        self.left: list[tuple[str, ...]] = []
        self.reports: dict[SessionId, list[Report]] = defaultdict(list)
        self.living: dict[SessionId, int] = defaultdict(int)
        self.most_living = 0
        self.answers: list[tuple[str, str | None]] = []
        self.standing = Standing()

    # --- what happens

    def say(self, fact: Fact, *, session: SessionId = S, process: int = 0) -> None:
        """Report it from that process, counted from 1; 0: the newest."""
        if isinstance(fact, ProcessExited) and process in (0, len(self.reports[session])):
            self.living[session] = 0
        self.reports[session][process - 1](fact)

    def exits(self, code: int = 0, *survivors: str, session: SessionId = S) -> None:
        self.say(ProcessExited(end(code, *survivors)), session=session)

    # --- the port

    async def validate(self, session: SessionId, spec: TurnSpec) -> None:
        await self._asked("validate")

    async def open(self, session: SessionId, spec: TurnSpec, *, resume: bool, report: Report) -> Connection:
        self.reports[session].append(report)
        await self._asked("resume" if resume else "open")
        self.living[session] += 1
        self.most_living = max(self.most_living, self.living[session])
        await self.points.passing("opened")
        return Connection(self.stays, self.exit_completes, pid=100 + len(self.reports[session]))

    async def stand(self, session: SessionId) -> Standing:
        return self.standing

    async def follow(self, session: SessionId, report: Report) -> None:
        known = self.reports[session][-1:]
        if not known or known[0].args != report.args:  # type: ignore[attr-defined]
            self.reports[session].append(report)  # of a process that it did not start itself
        if self.fail["follow"]:
            raise self.fail["follow"].pop(0)

    async def begin(self, session: SessionId, turn: TurnId, spec: TurnSpec, *, is_new: bool) -> None:
        await self._asked(f"begin {turn}", "begin")

    async def cancel(self, session: SessionId, turn: TurnId | None) -> None:
        await self._asked(f"cancel {turn}", "cancel")

    async def answer(self, session: SessionId, request: RequestId, answer: Answer) -> WriteResult:
        self.answers.append((request, answer.option))
        await self._asked(f"answer {request} {answer.option}", "answer")
        return WriteResult("true")

    async def rest(self, session: SessionId) -> TurnFacts:
        await self._asked("rest")
        return TurnFacts("the end")

    async def close(self, session: SessionId, *, bound_s: float | None, graceful: bool) -> tuple[str, ...]:
        await self._asked("close")
        left = self.left.pop(0) if self.left else ()
        if not left:
            self.living[session] = 0
        return left

    async def write(self, session: SessionId, text: str, *, submit: bool) -> WriteResult:
        await self._asked("write")
        return WriteResult("true")

    async def resize(self, session: SessionId, columns: int, rows: int) -> None:
        await self._asked(f"resize {columns}x{rows}", "resize")

    async def catch_up(self, session: SessionId, report: Report) -> None:
        return None

    async def _asked(self, words: str, name: str = "") -> None:
        name = name or words
        self.calls.append(words)
        await self.points.passing(name)
        if self.fail[name]:
            raise self.fail[name].pop(0)


class ScriptedRecords:
    """Every record that was written, in order. Errors in `fail` are raised once each, None lets one through."""

    def __init__(self) -> None:
        self.points = Points()
        self.fail: list[OSError | None] = []
        self.written: list[TurnRecord] = []
        self.stored: dict[SessionId, TurnRecord] = {}

    async def load(self, session: SessionId) -> TurnRecord | None:
        return self.stored.get(session)

    async def save(self, record: TurnRecord) -> None:
        await self.points.passing("save")
        problem = self.fail.pop(0) if self.fail else None
        if problem is not None:
            raise problem
        self.written.append(record)
        self.stored[record.session] = record


class HandClock:
    """Stands still until `advance`."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._sleepers: list[tuple[float, anyio.Event]] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until, woken = self.time + seconds, anyio.Event()
        self._sleepers.append((until, woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Pass so much time, and wake whoever's time has come, in order."""
        until = self.time + seconds
        while due := sorted((one for one in self._sleepers if one[0] <= until), key=lambda one: one[0]):
            self.time = max(self.time, due[0][0])
            self._sleepers.remove(due[0])
            due[0][1].set()
            await all_blocked()
        self.time = until


class Script:
    """A coordinator over scripted parts, and all that it told."""

    def __init__(self, driver: ScriptedDriver, records: ScriptedRecords | None = None) -> None:
        self.driver = driver
        self.records = records or ScriptedRecords()
        self.clock = HandClock()
        self.events: list[TurnEvent] = []
        self.processes: list[ProcessEvent] = []
        self.turns = TurnCoordinator(
            driver,
            self.records,
            self.clock,
            bounds=Bounds(stop_s=10.0, grace_s=5.0),
            on_event=self.events.append,
            on_process=self.processes.append,
        )

    def told(self, turn: TurnId | None = None) -> list[object]:
        return [each.event for each in self.events if turn in (None, each.turn)]

    async def settle(self) -> None:
        await all_blocked()


@asynccontextmanager
async def scripted(
    *, stays: bool = True, records: ScriptedRecords | None = None, driver: ScriptedDriver | None = None
) -> AsyncIterator[Script]:
    """A script whose coordinator is in its block. Afterwards nothing that it started lives."""
    script = Script(driver or ScriptedDriver(stays=stays), records)
    with anyio.fail_after(20):
        async with script.turns:
            yield script
