"""Turns over the hosts of Sessions: the driver for programs on terminals and pipes, and for those that speak ACP.

A host keeps every fact in its record and says when that changed. Here the changes become facts of turns, and what the
coordinator wants done becomes a request to the host.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import AgentTurn, SessionEnd, SessionId, SessionRecord, TurnFacts, WriteResult
from coordinate_agents.sessions.turns.coordinator import TurnCoordinator
from coordinate_agents.sessions.turns.folder_records import FolderRecords
from coordinate_agents.sessions.turns.model import (
    IDLE_LIFE_S,
    Answer,
    Connection,
    ExternalSessionNamed,
    Permission,
    PermissionOption,
    PermissionRequested,
    PermissionWithdrawn,
    Printed,
    ProcessExited,
    RequestId,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnSpec,
    Updated,
)
from coordinate_agents.sessions.turns.ports import Report, Standing

# A child that ended has its final record in less, with nothing of its tree left.
_END_S: Final = 2.0


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


@asynccontextmanager
async def turns_of(
    hosts: SessionHosts, sessions_root: Path, *, read_only: bool = False
) -> AsyncIterator[TurnCoordinator]:
    """The turns of these Sessions, coordinated by this process inside the block."""
    records = FolderRecords(sessions_root, read_only=read_only)
    async with TurnCoordinator(HostDriver(hosts), records, SystemClock()) as turns:
        yield turns


class HostDriver:
    """Each Session has its host and its folder once; a process that is gone is not replaced in the same Session."""

    def __init__(self, hosts: SessionHosts, *, idle_life_s: float = IDLE_LIFE_S) -> None:
        self._hosts = hosts
        self._idle_life_s = idle_life_s
        self._speaks: dict[SessionId, bool] = {}
        self._printed: dict[SessionId, int] = {}
        # When each was last looked at (monotonic), or got its turn.
        self._caught_up: dict[SessionId, float] = {}

    async def validate(self, session: SessionId, spec: TurnSpec) -> None:
        return None  # a launch is checked as it starts, a living process as it is asked

    async def open(self, session: SessionId, spec: TurnSpec, *, resume: bool, report: Report) -> Connection:
        if spec.launch is None:
            raise SessionError("SESSION_NOT_HEALTHY", f"The process of Session {session} takes no further turn.")
        return self._connection(await self._hosts.start(spec.launch))

    async def stand(self, session: SessionId) -> Standing:
        record = await self._hosts.record(session)
        if record is None:
            return Standing()
        asked = _permission(record, TurnId(record.turn.id) if record.turn is not None else TurnId(""))
        pending = () if asked is None else (asked,)
        return Standing(self._connection(record), is_busy=_is_busy(record), pending=pending)

    async def follow(self, session: SessionId, report: Report) -> None:
        if not self._speaks.get(session):
            report(ProcessExited(await self._hosts.wait(session)))
            return
        ended: list[SessionEnd] = []

        async def wait() -> None:
            ended.append(await self._hosts.wait(session))
            group.cancel_scope.cancel()

        seen = _Seen()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await self._hear(session, seen, report)
        except* SessionError as errors:
            raise errors.exceptions[0] from None
        record = await self._hosts.record(session)
        if record is not None:
            seen.tell(record, report)  # its last words came with its end
        report(ProcessExited(ended[0]))

    async def _hear(self, session: SessionId, seen: "_Seen", report: Report) -> None:
        known: SessionRecord | None = None
        while True:
            known = await self._hosts.record_change(session, known)
            if known is not None:
                seen.tell(known, report)

    async def begin(self, session: SessionId, turn: TurnId, spec: TurnSpec, *, is_new: bool) -> None:
        self._caught_up[session] = time.monotonic()
        if self._speaks.get(session):
            await self._prompt(session, turn, spec, is_new=is_new)
        elif not is_new:
            await self._hosts.begin_turn(session, spec.limits)

    async def _prompt(self, session: SessionId, turn: TurnId, spec: TurnSpec, *, is_new: bool) -> None:
        """The text, or the prompt file of the Session's folder; its host knows a turn that it has. Empty: nothing yet.

        A turn that a person began in the Session by hand comes to its end first. An agent that has ended by now had its
        turn: how it ended is told by itself.
        """
        while spec.prompt != "":
            try:
                await self._hosts.prompt(session, turn, spec.limits, text=spec.prompt)
                return
            except SessionError as error:
                if is_new and error.code == "SESSION_WRITE_FAILED" and await self._ends(session):
                    return
                record = await self._hosts.record(session)
                if error.code != "SESSION_STATE_CONFLICT" or record is None or record.turn is None:
                    raise
                await self._hosts.turn_end(session, record.turn.id)

    async def _ends(self, session: SessionId) -> bool:
        """Whether it has ended, or does in this moment."""
        with anyio.move_on_after(_END_S):
            await self._hosts.wait(session)
            return True
        return False

    async def cancel(self, session: SessionId, turn: TurnId | None) -> None:
        if self._speaks.get(session):
            await self._hosts.cancel(session, turn)
        else:
            await self._hosts.interrupt(session)

    async def answer(self, session: SessionId, request: RequestId, answer: Answer) -> WriteResult:
        if self._speaks.get(session):
            record = await self._hosts.record(session)
            asked = record.question if record is not None else None
            if asked is None or asked.id != request:
                raise SessionError("SESSION_STATE_CONFLICT", f"Session {session} asks this no more.")
            await self._hosts.answer(session, asked.request, answer.option)
            return WriteResult("true")
        if answer.text is not None:
            return await self._hosts.write(session, answer.text, submit=True, is_answer=True)
        if answer.keys:
            return await self._hosts.keys(session, answer.keys)
        return WriteResult("false", "a screen has no key that only takes a question back")

    async def rest(self, session: SessionId) -> TurnFacts:
        if not self._speaks.get(session):
            return await self._hosts.end_turn(session, idle_life_s=self._idle_life_s)
        facts = await self._hosts.look(session)
        record = facts.record
        if facts.liveness != "live" or record is None or record.state != "idle" or record.turn is None:
            raise SessionError("SESSION_NOT_HEALTHY", f"The process of Session {session} did not outlive its turn.")
        return TurnFacts(record.turn.tail, None, record.turn.duration_ms)

    async def close(self, session: SessionId, *, bound_s: float | None, graceful: bool) -> tuple[str, ...]:
        try:
            return await self._hosts.close(session, bound_s=bound_s, graceful=graceful)
        except SessionError as error:
            if error.code == "SESSION_NOT_FOUND":
                return ()  # it was only meant to start
            raise

    async def write(self, session: SessionId, text: str, *, submit: bool) -> WriteResult:
        return await self._hosts.write(session, text, submit=submit)

    async def resize(self, session: SessionId, columns: int, rows: int) -> None:
        await self._hosts.resize(session, columns, rows)

    async def catch_up(self, session: SessionId, report: Report) -> None:
        facts = await self._hosts.look(session)
        since, now = self._caught_up.get(session), time.monotonic()
        self._caught_up[session] = now
        if facts.liveness == "live" and facts.output_bytes != self._printed.get(session, 0):
            self._printed[session] = facts.output_bytes
            is_progress = facts.quiet_s is None or since is None or facts.quiet_s < now - since
            report(Printed(facts.output_bytes, f"{facts.last_line}\n", is_progress))

    def _connection(self, record: SessionRecord) -> Connection:
        speaks = self._speaks[record.id] = record.driver == "acp"
        return Connection(
            stays=speaks or record.labels.get("mode") == "interactive",
            exit_completes=not speaks,
            pid=record.child.pid if record.child is not None else None,
            host_pid=record.host.pid if record.host is not None else None,
        )


class _Seen:
    """What of an agent's record was told already; only what changed is told again."""

    def __init__(self) -> None:
        self._over = ""
        self._external = ""
        self._asked: RequestId | None = None
        self._doing = ("", "")

    def tell(self, record: SessionRecord, report: Report) -> None:
        """In the order in which it must have happened: the conversation, a tool, what is asked, the end of the turn."""
        external = record.conversation.external_session if record.conversation is not None else ""
        if external and external != self._external:
            self._external = external
            report(ExternalSessionNamed(external))
        turn = record.turn
        if turn is None:
            return
        if turn.doing and self._doing != (turn.id, turn.doing):
            self._doing = (turn.id, turn.doing)
            report(Updated(TurnId(turn.id), "tool_call", {"title": turn.doing}))
        asked = _permission(record, TurnId(turn.id))
        if self._asked is not None and (asked is None or asked.request != self._asked):
            report(PermissionWithdrawn(self._asked))
        self._asked = asked.request if asked is not None else None
        if asked is not None:
            report(PermissionRequested(asked))
        if turn.is_over and turn.id != self._over:
            self._over = turn.id
            if turn.state == "failed":
                report(TurnFailed(TurnId(turn.id), turn.code or "SESSION_NOT_HEALTHY", turn.error))
            else:
                report(TurnCompleted(TurnId(turn.id), _stop_reason(turn)))


def _stop_reason(turn: AgentTurn) -> str:
    """Whoever asked it to stop decided what its end is called. Some agents end a turn as cancelled after a "no" to what
    they asked: nobody stopped that one, and what it left decides.
    """
    if turn.was_cancelled:
        return "cancelled"
    return "cancelled by itself" if turn.stop_reason == "cancelled" else turn.stop_reason


def _permission(record: SessionRecord, turn: TurnId) -> Permission | None:
    """What the Session asks, as a permission; None when it asks nothing. A screen can always be given keys."""
    asked = record.question
    if asked is None:
        return None
    options = tuple(PermissionOption(each.id, each.name, each.kind) for each in asked.options)
    return Permission(RequestId(asked.id), turn, asked.text, options or (PermissionOption("keys", "press keys"),))


def _is_busy(record: SessionRecord) -> bool:
    if record.end is not None or record.state == "idle":
        return False
    return record.turn is None or not record.turn.is_over
