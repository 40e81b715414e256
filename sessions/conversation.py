"""Talking to a Session through its host, or reading what it left when there is none any more.

Output, input, terminals. Nothing here starts, waits for or ends anything: `client.SessionHosts` adds that.
"""

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from coordinate_agents.sessions import address as addresses
from coordinate_agents.sessions import custodian, exchange, process, reading, starting, strays
from coordinate_agents.sessions.attachment import Attachment
from coordinate_agents.sessions.connection import HostConnection, HostGone, read_token
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.keys import bytes_of
from coordinate_agents.sessions.model import (
    Output,
    OutputForm,
    SessionId,
    SessionRecord,
    TurnFacts,
    TurnLimits,
    WriteResult,
)
from coordinate_agents.sessions.spoken import permission_timeout_s

MAX_WAIT_MS: Final = 25_000
# Input is answered when it is known what became of it: readiness, typing 256 KiB, acknowledgement, each bounded there.
INPUT_BOUND_S: Final = 180.0


class Conversations:
    """With the Sessions of one folder. A host has the look bound to answer, and longer only if it is told to wait."""

    def __init__(self, sessions_root: Path, look_bound_s: float) -> None:
        self._root = sessions_root
        self._look_bound_s = look_bound_s

    async def read(
        self,
        session_id: SessionId,
        *,
        cursor: int | None = None,
        max_bytes: int = 65536,
        max_lines: int | None = None,
        wait_ms: int = 0,
        form: OutputForm = "plain",
    ) -> Output:
        """Output from the cursor on, redacted; without a cursor the last `max_bytes`. Live, ended, or host dead.

        Waits up to `wait_ms` (25,000 at most) when there is nothing yet. Raises: SESSION_NOT_FOUND,
        SESSION_NOT_HEALTHY when a host holds the Session and does not answer.
        """
        limits = {"cursor": cursor, "max_bytes": max_bytes, "max_lines": max_lines, "form": form}
        result = await self._output(session_id, limits, wait_ms)
        return exchange.output_of(result, form)

    async def raw_output(
        self, session_id: SessionId, *, cursor: int | None, max_bytes: int = reading.MAX_BYTES
    ) -> tuple[bytes, int, int, int]:
        """Redacted raw bytes: (data, cursor, next cursor, dropped). Raises as `read`."""
        limits = {"cursor": cursor, "max_bytes": max_bytes, "max_lines": None, "form": "raw"}
        result = await self._output(session_id, limits, 0)
        return result.data, result.cursor, result.next_cursor, result.dropped_bytes

    async def write(
        self, session_id: SessionId, text: str, *, submit: bool = False, is_answer: bool = False
    ) -> WriteResult:
        """Type text, with `submit` followed by what submits it. Returns when it is known what became of it.

        While a dialog of trust, login or permission is shown, nothing that holds a line end is typed, unless it
        `is_answer` to it: in such dialogs Enter means yes.
        Raises: INVALID_USAGE, SESSION_NOT_FOUND, SESSION_NOT_HEALTHY, SESSION_WRITE_FAILED when it has ended.
        """
        data = exchange.checked_text(text)
        fields = {"data": exchange.encoded(data), "submit": submit, "is_answer": is_answer}
        return exchange.write_result(await self._input(session_id, "write", **fields))

    async def keys(self, session_id: SessionId, names: Sequence[str]) -> WriteResult:
        """Type named keys of the closed list, one by one, never as a paste. Raises as `write`."""
        keys = [exchange.encoded(key) for key in bytes_of(names)]
        return exchange.write_result(await self._input(session_id, "keys", keys=keys))

    async def interrupt(self, session_id: SessionId) -> None:
        """What Ctrl-C does. Raises as `write`."""
        await self._input(session_id, "interrupt")

    async def hold(self, session_id: SessionId) -> None:
        """Let no deadline run until `release`: a person works where its program does. Raises as `write`."""
        await self._input(session_id, "hold", held=True)

    async def release(self, session_id: SessionId) -> None:
        """Let the deadlines run again; the time between counts in none. Raises as `write`."""
        await self._input(session_id, "hold", held=False)

    async def set_limits(self, session_id: SessionId, limits: TurnLimits, *, input_timeout_s: float) -> None:
        """Let other deadlines hold for the turn that goes on, counted from its beginning. Raises as `write`.

        Between two turns only that of a person's answers changes.
        """
        fields = {"limits": asdict(limits), "permission_timeout_s": permission_timeout_s(input_timeout_s)}
        await self._input(session_id, "limits", **fields)

    async def resize(self, session_id: SessionId, columns: int, rows: int) -> None:
        """Give the terminal another size; the program gets SIGWINCH. Raises as `write`."""
        await self._input(session_id, "resize", columns=columns, rows=rows)

    async def end_turn(self, session_id: SessionId, *, idle_life_s: float) -> TurnFacts:
        """The turn is over and the child stays: it may be idle for so long, then its host closes it. Raises as `write`.

        What the turn's deadlines were counts no more. Asked again, the time of idleness begins anew.
        """
        return await self._turn(session_id, is_over=True, timeout_s=idle_life_s)

    async def begin_turn(self, session_id: SessionId, limits: TurnLimits) -> None:
        """One more turn in the living child, with deadlines of its own. Raises as `write`."""
        await self._turn(
            session_id,
            is_over=False,
            timeout_s=limits.timeout_s,
            idle_timeout_s=limits.idle_timeout_s,
            on_idle=limits.on_idle,
        )

    async def _turn(self, session_id: SessionId, **fields: Any) -> TurnFacts:
        answer = await self._input(session_id, "turn", turn=fields)
        since = answer.get("since")
        return TurnFacts(
            str(answer["tail"]),
            str(answer["log_path"]),
            int(answer["duration_ms"]),
            since if isinstance(since, int) else None,  # a host of an earlier version says nothing
        )

    @asynccontextmanager
    async def attach(
        self, session_id: SessionId, *, is_writing: bool, is_answering: bool = True
    ) -> AsyncIterator[Attachment]:
        """Join a terminal to the Session's; leaving the context detaches and ends nothing. Raises as `write`.

        `is_answering`: it answers the program's questions to its terminal; else, or when it does not write, the host.
        """
        seen = self._see(session_id)
        if seen.custody in ("ended", "free"):
            raise SessionError(
                "SESSION_WRITE_FAILED", f"Session {session_id} has ended; there is nothing to attach to."
            )
        if seen.custody != "held" or seen.record is None or seen.record.socket is None:
            raise self._refusal(session_id, seen)
        async with AsyncExitStack() as stack:
            try:
                with anyio.fail_after(self._look_bound_s):
                    connection = HostConnection(seen.record.socket, read_token(self._path(session_id)))
                    host = await stack.enter_async_context(connection)
                    answer = await host.ask("attach", writing=is_writing, answering=is_answering)
            except (HostGone, TimeoutError) as error:
                nudge(seen.record)
                raise self._silent(session_id) from error
            if not answer.get("ok"):
                raise SessionError("SESSION_WRITE_FAILED", f"Session {session_id}: {answer.get('error')}.")
            yield Attachment(session_id, host)

    async def _output(self, session_id: SessionId, limits: dict[str, Any], wait_ms: int) -> reading.Result:
        wait_ms = min(max(wait_ms, 0), MAX_WAIT_MS)
        seen = self._see(session_id)
        if seen.custody == "held" and seen.record is not None:
            bound_s = self._look_bound_s + wait_ms / 1000
            answer = await self._ask(seen.record, session_id, "read", bound_s, wait_ms=wait_ms, **limits)
            if answer is not None:
                return exchange.result_of(answer)
            seen = self._see(session_id)  # it may have ended meanwhile
        if seen.custody == "held":
            raise self._silent(session_id)
        if seen.custody in ("absent", "foreign"):
            raise self._refusal(session_id, seen)
        return await anyio.to_thread.run_sync(partial(exchange.read_spool, self._path(session_id), **limits))

    async def _input(self, session_id: SessionId, operation: str, **fields: Any) -> dict[str, Any]:
        seen = self._see(session_id)
        if seen.custody in ("ended", "free"):
            raise SessionError("SESSION_WRITE_FAILED", f"Session {session_id} has ended; nothing was sent.")
        if seen.custody != "held" or seen.record is None:
            raise self._refusal(session_id, seen)
        answer = await self._ask(
            seen.record, session_id, operation, INPUT_BOUND_S, first_s=self._look_bound_s, **fields
        )
        if answer is None:
            if self._see(session_id).custody != "held":
                raise SessionError(
                    "SESSION_WRITE_FAILED", f"Session {session_id} ended meanwhile; what it still read is not known."
                )
            raise self._silent(session_id)
        if not answer.get("ok"):
            raise SessionError("SESSION_WRITE_FAILED", f"Session {session_id}: {answer.get('error')}.")
        return answer

    def _silent(self, session_id: SessionId) -> SessionError:
        return SessionError(
            "SESSION_NOT_HEALTHY",
            f"The host of Session {session_id} holds the Session and does not answer.",
            kept=str(self._path(session_id)),
        )

    async def _ask(
        self,
        record: SessionRecord | None,
        session_id: SessionId,
        operation: str,
        bound_s: float | None = None,
        *,
        first_s: float | None = None,
        **fields: Any,
    ) -> dict[str, Any] | None:
        """The host's answer, or None when it gives none within the bound (the look bound).

        With `first_s` the host must say hello within that, so that a long bound is not spent on a stopped one.
        """
        if record is None or record.socket is None:
            return None
        answer: dict[str, Any] | None = None
        with anyio.move_on_after(bound_s or self._look_bound_s), suppress(HostGone, TimeoutError):
            async with HostConnection(record.socket, read_token(self._path(session_id))) as host:
                if first_s is not None:
                    with anyio.fail_after(first_s):
                        await host.ask("hello")
                answer = await host.ask(operation, **fields)
        if answer is None:
            nudge(record)
        return answer

    def _see(self, session_id: SessionId) -> custodian.Seen:
        """What the folder says; text that is no Session id never becomes a path."""
        if not starting.SESSION_ID.fullmatch(session_id):
            return custodian.Seen("absent")
        return custodian.see(self._path(session_id))

    def _path(self, session_id: SessionId) -> Path:
        return self._root / session_id

    def _refusal(self, session_id: SessionId, seen: custodian.Seen) -> SessionError:
        if seen.custody == "absent":
            return SessionError("SESSION_NOT_FOUND", f"There is no Session {session_id}.")
        return SessionError(
            "SESSION_NOT_HEALTHY",
            f"Session {session_id} belongs to another machine, container or user; its processes cannot be judged here.",
            kept=str(self._path(session_id)),
        )


def nudge(record: SessionRecord) -> None:
    """Ask a host whose socket was removed by a cleaner to make it again now; it would see it by itself in a while."""
    if record.host is None or record.socket is None or addresses.port_of(record.socket) is not None:
        return
    if Path(record.socket).exists():
        return
    host = process.stat(record.host.pid)
    if host is not None and host.start_ticks == record.host.start_ticks and strays.is_host(host.pid):
        process.send(host, signal.SIGUSR1)
