"""What clients may ask of a host, and what they are told without asking.

One request is one answer. Two kinds take time: a read that waits for output, and input, which is answered when it is
known what became of it. Both end: a read at its own bound, input at the typist's.
"""

import binascii
import contextlib
import os
import time

from coordinate_agents.sessions import reading
from coordinate_agents.sessions.drivers.base import COLUMNS, ROWS
from coordinate_agents.sessions.host.asking import Asking
from coordinate_agents.sessions.host.attaching import Attached
from coordinate_agents.sessions.host.cursor import Followed
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.host.queries import Queries
from coordinate_agents.sessions.host.records import Record
from coordinate_agents.sessions.host.server import Client, Message, Server
from coordinate_agents.sessions.host.typing import MAX_TEXT_BYTES, Rules, Seen, Typist, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinate_agents.sessions.host.inputs import Input

MAX_WAIT_S = 25.0
MAX_WAITING = 1024
# Output is told of at most so often.
_ACTIVITY_S = 0.25
# A program that asks more at once asks for nothing.
_MAX_ANSWERS = 16


class Waiting:
    """A read that waits for output."""

    __slots__ = ("client", "message", "until")

    def __init__(self, client: Client, message: Message, until: float) -> None:
        self.client = client
        self.message = message
        self.until = until


class Requests:
    def __init__(self, record: Record, output: Output, input_rules: "dict[str, object]") -> None:
        self._record = record
        self._output = output
        self._server: Server | None = None
        self._terminal: Input | None = None
        self._rules = Rules(input_rules)
        self._attached = Attached(output)
        # A person works in the worktree: no deadline runs.
        self.is_held = False
        self._queries = Queries()
        self.asking = Asking(output, input_rules)
        self.seen = Seen(output.end_text, lambda: output.total, self.asking.dialog)
        rows, columns = record.get("rows"), record.get("columns")
        self._size = (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else (ROWS, COLUMNS)
        self._cursor = Followed()
        self._pumped_total = 0
        self.typist: Typist | None = None
        self._waiting: list[Waiting] = []
        self._told_at = self._told_total = 0.0

    def serve(self, server: Server) -> None:
        self._server = server
        server.on_gone = self._gone
        server.on_room = lambda client: self._attached.pump(server, client)

    def take(self, terminal: "Input | None") -> None:
        self._terminal = self.asking.terminal = terminal
        self.asking.started(time.monotonic())
        if terminal is not None:
            self.typist = Typist(terminal, self._rules, self.seen)

    def handle(self, client: Client, message: Message) -> Message | None:
        """The answer, None when it comes later; {} is no operation of this class."""
        match message.get("op"):
            case "read":
                return self._read(client, message)
            case "write":
                return self._write(client, message)
            case "keys":
                return self._keys(client, message)
            case "interrupt":
                return self._interrupt()
            case "resize":
                return self._resize(message)
            case "hold":
                self.is_held = bool(message.get("held"))
                return {"ok": True}
            case "attach":
                return self._attach(client, message)
            case "input":
                return self._type_raw(client, message)
            case "subscribe":
                client.wants_activity = True
                return {"ok": True, "output_bytes": self._output.total}
            case _:
                return {}

    def set_turn(self, *, is_over: bool) -> None:
        """Between turns nothing is asked. Who begins another one has seen that the program takes a prompt."""
        self.asking.rest(time.monotonic(), is_resting=is_over)
        if not is_over and self.typist is not None:
            self.typist.is_ready = True

    @property
    def is_attached(self) -> bool:
        return self._attached.is_writing

    def printed(self, begin: int, now: float) -> None:
        """Look at output since that offset: a program may have asked its terminal something, or a person."""
        self.asking.printed(now)
        ring = self._output.ring
        if not self._queries.is_cut and not ring.has(b"\x1b", begin):
            return
        answers = self._queries.feed(ring.raw(begin, ring.total), *self._size, self._cursor_at)
        self.seen.is_bracketed = self._queries.is_bracketed
        terminal = self._terminal
        if not answers or self._attached.is_answering:
            return
        if terminal is None or not terminal.answers_queries or terminal.is_line_mode():
            return  # in line mode nobody waits for an answer, and it would be taken for typed text
        with contextlib.suppress(OSError):
            terminal.write(b"".join(answers[:_MAX_ANSWERS]))

    def _cursor_at(self, back: int) -> tuple[int, int]:
        return self._cursor.place(self._output.ring.raw, self._output.total - back, *self._size)

    def next_time(self) -> float:
        times = [one.until for one in self._waiting]
        times.append(self.asking.next_time)
        if self.typist is not None:
            times.append(self.typist.next_time)
        if self._told_total != self._output.total and self._server and self._server.has_listeners_for_activity():
            times.append(self._told_at + _ACTIVITY_S)
        return min(times, default=float("inf"))

    def on_time(self, now: float) -> None:
        if self.typist is not None:
            self.typist.step(now)
        total = self._output.total
        if self._waiting:
            self._wake(now)
        if total != self._pumped_total and self._server is not None:
            self._pumped_total = total
            self._attached.pump_all(self._server)
        if total != self._told_total and now >= self._told_at + _ACTIVITY_S and self._server is not None:
            self._told_at, self._told_total = now, total
            self._server.broadcast({"event": "output-activity", "output_bytes": total}, activity=True)

    def ended(self) -> None:
        """The output is complete: answer everybody who waits."""
        if self.typist is not None:
            self.typist.give_up("the program ended")
        self._wake(float("inf"))
        if self._server is not None:
            self._attached.finish(self._server)

    # --- output

    def _read(self, client: Client, message: Message) -> Message | None:
        result = self._result(message)
        wait_s = min(max(_number(message, "wait_ms", 0) / 1000, 0.0), MAX_WAIT_S)
        if result.data or result.ended or wait_s <= 0 or len(self._waiting) >= MAX_WAITING:
            return _output_fields(result)
        message["cursor"] = result.next_cursor
        self._waiting.append(Waiting(client, message, time.monotonic() + wait_s))
        return None

    def _wake(self, now: float) -> None:
        assert self._server is not None
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            result = self._result(one.message)
            if result.data or result.ended or now >= one.until:
                self._server.reply(one.client, one.message.get("id"), _output_fields(result))
            else:
                self._waiting.append(one)

    def _result(self, message: Message) -> reading.Result:
        cursor, lines = message.get("cursor"), message.get("max_lines")
        return reading.read(
            self._output.ring,
            cursor=cursor if isinstance(cursor, int) else None,
            max_bytes=int(_number(message, "max_bytes", 65536)),
            max_lines=max(lines, 1) if isinstance(lines, int) else None,
            form=str(message.get("form", "raw")),
        )

    # --- input

    def _write(self, client: Client, message: Message) -> Message | None:
        try:
            data = binascii.a2b_base64(str(message.get("data", "")))
        except ValueError:
            return {"ok": False, "error": "data is not base64"}
        if len(data) > MAX_TEXT_BYTES:
            return {"ok": False, "error": f"more than {MAX_TEXT_BYTES} bytes"}
        if self.typist is None:
            return _verdict_fields(Verdict("false", "the Session has no terminal and no open stdin"))
        submit, is_answer = bool(message.get("submit")), bool(message.get("is_answer"))
        if (submit or b"\n" in data) and not is_answer and (kind := self.asking.dialog()):
            return _verdict_fields(Verdict("false", f"it shows a {kind} dialog, which this would answer blindly"))
        self.asking.typed()
        self.typist.text(data, submit, self._reply_to(client, message), is_answer=is_answer)
        return None

    def _keys(self, client: Client, message: Message) -> Message | None:
        names = message.get("keys")
        if not isinstance(names, list):
            return {"ok": False, "error": "keys is no list"}
        if self.typist is None or self._terminal is None or not self._terminal.has_modes:
            return _verdict_fields(Verdict("false", "the Session has no terminal, so it takes no keys"))
        keys = [binascii.a2b_base64(str(name)) for name in names]
        self.asking.typed()
        self.typist.keys(keys, self._reply_to(client, message))
        return None

    def _reply_to(self, client: Client, message: Message):  # type: ignore[no-untyped-def]
        def done(verdict: Verdict) -> None:
            assert self._server is not None
            self._server.reply(client, message.get("id"), _verdict_fields(verdict))

        return done

    def _attach(self, client: Client, message: Message) -> Message | None:
        is_writing = bool(message.get("writing"))
        if is_writing and self.typist is None:
            return {"ok": False, "error": "the Session has no terminal to type into"}
        cursor = message.get("cursor")
        assert self._server is not None
        # A filtered terminal never sees the program's questions, so they stay the host's to answer.
        is_answering = bool(message.get("answering", True))
        start = cursor if isinstance(cursor, int) else None
        self._attached.join(client, start, is_writing=is_writing, is_answering=is_answering)
        self._server.reply(client, message.get("id"), {"ok": True, "rows": self._size[0], "columns": self._size[1]})
        if start is None and self._queries.is_alternate:
            self._attached.enter_alternate(self._server, client)
        self._attached.pump(self._server, client)
        if is_writing and self._terminal is not None:
            # What is drawn from the last output alone may be half a screen; a program that draws does so again.
            self._terminal.redraw()
        return None

    def _type_raw(self, client: Client, message: Message) -> Message | None:
        try:
            data = binascii.a2b_base64(str(message.get("data", "")))
        except ValueError:
            return {"ok": False, "error": "data is not base64"}
        if self.typist is None or not self._attached.may_type(client):
            return {"ok": False, "error": "not attached for writing"}
        self.asking.typed()
        if not self.typist.raw(data):
            return {"ok": False, "error": "too much input is waiting for the program already"}
        return {"ok": True}

    def _interrupt(self) -> Message:
        if self._terminal is None:
            return {"ok": False, "error": "there is nothing to interrupt"}
        try:
            self._terminal.interrupt()
        except OSError as error:
            return {"ok": False, "error": f"nobody could be interrupted: {error.strerror}"}
        return {"ok": True}

    def _resize(self, message: Message) -> Message:
        columns, rows = int(_number(message, "columns", 0)), int(_number(message, "rows", 0))
        if not (1 <= columns <= 1000 and 1 <= rows <= 1000):
            return {"ok": False, "error": "columns and rows are 1 to 1000"}
        if self._terminal is None or not self._terminal.has_modes:
            return {"ok": False, "error": "the Session has no terminal"}
        try:
            self._terminal.resize(columns, rows)
        except OSError as error:
            return {"ok": False, "error": os.strerror(error.errno or 0)}
        self._size = (rows, columns)
        self._record.changed(rows=rows, columns=columns)
        return {"ok": True}

    def _gone(self, client: Client) -> None:
        self._waiting = [one for one in self._waiting if one.client is not client]
        self._attached.leave(client)


def _output_fields(result: reading.Result) -> Message:
    return {
        "ok": True,
        "data": binascii.b2a_base64(result.data, newline=False).decode("ascii"),
        "cursor": result.cursor,
        "next_cursor": result.next_cursor,
        "dropped_bytes": result.dropped_bytes,
        "truncated": result.truncated,
        "ended": result.ended,
    }


def _verdict_fields(verdict: Verdict) -> Message:
    return {"ok": True, "delivered": verdict.delivered, "reason": verdict.reason}


def _number(message: Message, name: str, default: float) -> float:
    value = message.get(name)
    return value if isinstance(value, int | float) else default
