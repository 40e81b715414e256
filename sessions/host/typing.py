"""Types text and keys into a child, as much as it takes, and says what became of it.

One text at a time; each is a generator that yields how many seconds it wants to wait, so nothing here ever blocks the
host's loop. Facts it rests on (n_tty of Linux, and terminal programs that were measured):

- In line mode the kernel keeps 4095 bytes of an unfinished line and drops the rest without a word. So a longer line is
  only typed once the program left line mode; until then it waits, and in the end says that it was not delivered.
- Finished lines and anything in raw mode are kept back by the kernel until there is room: nothing is lost. But what is
  typed ahead in raw mode would be cut if the program went back to line mode. So no more than one buffer is typed ahead.
- A program that gets text and CR in one piece takes the CR as a part of a paste. So the CR comes alone, after a pause.
"""

import re
import time
from collections import deque

from coordinate_agents.sessions.host.inputs import MAX_LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to load
    from collections.abc import Callable, Generator

    from coordinate_agents.sessions.host.inputs import Input

    Typing = Generator[float, None, "Verdict"]
    Done = Callable[["Verdict"], None]

MAX_TEXT_BYTES = 256 << 10
MAX_QUEUED_BYTES = 1 << 20
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05
# The kernel hands typed bytes on from a queue of its own: an empty buffer is believed when it was seen twice.
_SETTLE_S = 0.02
# How long a program may take to read what was typed before nobody knows whether it will.
_READ_BOUND_S = 10.0
_PIPE_BYTES = 65536
# A program that does not read at all; the terminal takes nothing more.
_FULL_BOUND_S = 30.0


class Verdict:
    __slots__ = ("delivered", "reason")

    def __init__(self, delivered: str, reason: str = "") -> None:
        self.delivered = delivered
        self.reason = reason


class Rules:
    """The host's copy of `model.InputRules`."""

    __slots__ = (
        "acknowledge_bound_s",
        "acknowledged",
        "line_wait_s",
        "paste",
        "pause_s",
        "ready",
        "ready_bound_s",
        "submit",
    )

    def __init__(self, fields: "dict[str, object]") -> None:
        self.paste = fields.get("paste", "auto")
        self.submit = str(fields.get("submit", "\r")).encode()
        self.pause_s = _seconds(fields, "pause_s", 1.0)
        self.ready = _patterns(fields, "ready")
        self.ready_bound_s = _seconds(fields, "ready_bound_s", 60.0)
        self.acknowledged = _patterns(fields, "acknowledged")
        self.acknowledge_bound_s = _seconds(fields, "acknowledge_bound_s", 10.0)
        self.line_wait_s = _seconds(fields, "line_wait_s", 10.0)


class Seen:
    """What typing needs to know of the output; the custody keeps it up to date."""

    __slots__ = ("dialog", "is_bracketed", "tail", "total")

    def __init__(self, tail: "Callable[[], str]", total: "Callable[[], int]", dialog: "Callable[[bytes], str]") -> None:
        self.tail = tail
        self.total = total
        self.dialog = dialog  # see Asking
        self.is_bracketed = False  # the program asked for bracketed paste


class Typist:
    """`step` types on and returns when it wants to be called again."""

    def __init__(self, terminal: "Input", rules: Rules, seen: Seen) -> None:
        self._terminal = terminal
        self._rules = rules
        self._seen = seen
        self._queue: deque[tuple[Typing, int, Done]] = deque()
        self._queued_bytes = 0
        self._at = float("inf")
        self.is_ready = not rules.ready

    def text(self, data: bytes, submit: bool, done: "Done", *, is_answer: bool = False) -> None:
        """Queue a text; `done` is called once with the verdict. `is_answer`: it is meant for a dialog."""
        self._put(self._text(data, submit, is_answer), len(data), done)

    def keys(self, data: list[bytes], done: "Done") -> None:
        """Queue keys, each typed alone."""
        self._put(self._keys(data), sum(map(len, data)), done)

    def raw(self, data: bytes) -> bool:
        """Queue what a person types, as it is; False when too much is queued already."""
        if self._queued_bytes + len(data) > MAX_QUEUED_BYTES:
            return False
        self._put(self._pieces(data), len(data), lambda verdict: None)
        return True

    def step(self, now: float) -> None:
        while self._queue and now >= self._at:
            work, size, done = self._queue[0]
            try:
                self._at = now + next(work)
            except StopIteration as end:
                self._drop_first(size)
                done(end.value)
            except OSError as error:
                self._drop_first(size)
                done(Verdict("false", f"the input was closed: {error.strerror}"))

    @property
    def next_time(self) -> float:
        return self._at if self._queue else float("inf")

    def give_up(self, reason: str) -> None:
        """The child ended: answer everybody who still waits."""
        while self._queue:
            _, size, done = self._queue[0]
            self._drop_first(size)
            done(Verdict("unknown", reason))

    def _put(self, work: "Typing", size: int, done: "Done") -> None:
        if self._queued_bytes + size > MAX_QUEUED_BYTES:
            done(Verdict("false", "too much input is waiting for the program already"))
            return
        if not self._queue:
            self._at = 0.0
        self._queue.append((work, size, done))
        self._queued_bytes += size
        self.step(time.monotonic())

    def _drop_first(self, size: int) -> None:
        self._queue.popleft()
        self._queued_bytes -= size
        self._at = 0.0

    # --- what is typed; each yields seconds to wait

    def _text(self, data: bytes, submit: bool, is_answer: bool) -> "Typing":
        if not self.is_ready:
            verdict = yield from self._wait_until_ready()
            if verdict is not None:
                return verdict
        if (submit or b"\n" in data) and not is_answer and (kind := self._seen.dialog(data)):
            return Verdict("false", f"a {kind} dialog came up; nothing was typed")
        if not self._terminal.has_modes:
            verdict = yield from self._pieces(data + (b"\n" if submit and not data.endswith(b"\n") else b""))
            return verdict
        verdict = yield from self._leave_line_mode(data)
        if verdict is not None:
            return verdict
        if submit and self._terminal.is_line_mode():
            # The line end is what submits there: without it the program gets nothing of the last line.
            return (yield from self._pieces(data if data.endswith(b"\n") else data + b"\n"))
        bracketed = self._rules.paste == "bracketed" or (self._rules.paste == "auto" and self._seen.is_bracketed)
        if self._terminal.is_line_mode():
            verdict = yield from self._pieces(data + b"\n" if submit and not data.endswith(b"\n") else data)
            return verdict
        verdict = yield from self._pieces(b"\x1b[200~" + data + b"\x1b[201~" if bracketed else data)
        is_taken = verdict.delivered == "true" or (verdict.delivered == "unknown" and not self._terminal.sees_reading)
        if not submit or not is_taken:
            if submit and verdict.delivered == "unknown":
                return Verdict("unknown", f"{verdict.reason}; it was not submitted")
            return verdict
        return (yield from self._submit(b"" if is_answer else data))

    def _submit(self, data: bytes) -> "Typing":
        """`data`: the text that is sent off by this; empty when it answers what is asked."""
        yield self._rules.pause_s
        if data and (kind := self._seen.dialog(data)):
            return Verdict("unknown", f"a {kind} dialog came up; it was typed and not submitted")
        before = self._seen.total()
        verdict = yield from self._pieces(self._rules.submit)
        if verdict.delivered == "false" or (verdict.delivered == "unknown" and self._terminal.sees_reading):
            return verdict
        until = time.monotonic() + self._rules.acknowledge_bound_s
        while time.monotonic() < until:
            if self._is_acknowledged(before):
                return Verdict("true")
            yield _LONGEST_PAUSE_S
        return Verdict("unknown", f"no sign of the program within {self._rules.acknowledge_bound_s:g} s of the submit")

    def _is_acknowledged(self, before: int) -> bool:
        if self._seen.total() == before:
            return False
        tail = self._seen.tail() if self._rules.acknowledged else ""
        return not self._rules.acknowledged or any(re.search(one, tail) for one in self._rules.acknowledged)

    def _wait_until_ready(self) -> "Generator[float, None, Verdict | None]":
        until = time.monotonic() + self._rules.ready_bound_s
        while not any(re.search(pattern, self._seen.tail()) for pattern in self._rules.ready):
            if time.monotonic() >= until:
                return Verdict("false", f"not ready after {self._rules.ready_bound_s:g} s; nothing was typed")
            yield _LONGEST_PAUSE_S
        self.is_ready = True
        return None

    def _leave_line_mode(self, data: bytes) -> "Generator[float, None, Verdict | None]":
        """Wait while a line of the text would be cut by the kernel."""
        longest = max(map(len, data.split(b"\n"))) + 1
        until = time.monotonic() + self._rules.line_wait_s
        while longest > MAX_LINE_BYTES and self._terminal.is_line_mode():
            if time.monotonic() >= until:
                return Verdict(
                    "false",
                    f"a line has {longest - 1} bytes and the terminal is in line mode, which keeps "
                    f"{MAX_LINE_BYTES}; nothing was typed",
                )
            yield _LONGEST_PAUSE_S
        return None

    def _keys(self, keys: list[bytes]) -> "Typing":
        verdict = Verdict("true")
        for key in keys:
            verdict = yield from self._pieces(key)
            if verdict.delivered == "false":
                return verdict
        return verdict

    def _pieces(self, data: bytes) -> "Typing":
        """Type everything, at most one buffer ahead of the program, then see whether it was read."""
        at = 0
        until = time.monotonic() + _FULL_BOUND_S
        while at < len(data):
            piece = self._piece(data, at)
            if piece is None:
                return Verdict("false", f"cut after {at} bytes: the program went back to line mode")
            yield from self._wait_until_read(min(_READ_BOUND_S, until - time.monotonic()))
            taken = self._terminal.write(piece)
            if taken:
                at += taken
                until = time.monotonic() + _FULL_BOUND_S
            elif time.monotonic() >= until:
                return Verdict("false", f"cut after {at} of {len(data)} bytes: the program does not read its input")
            else:
                yield _LONGEST_PAUSE_S
        if (yield from self._wait_until_read(_READ_BOUND_S, settle=True)):
            if not self._terminal.sees_reading:
                return Verdict("unknown", "the console has it; whether the program read it cannot be seen")
            if self._terminal.is_line_mode() and not data.endswith((b"\n", b"\r", b"\x04")):
                return Verdict("unknown", "the terminal is in line mode: the program gets the line when it is ended")
            return Verdict("true")
        return Verdict("unknown", f"the terminal has it, but the program did not read it within {_READ_BOUND_S:g} s")

    def _piece(self, data: bytes, at: int) -> bytes | None:
        """What to type next; None when the kernel would cut it."""
        if not self._terminal.has_modes:
            return data[at : at + _PIPE_BYTES]
        piece = data[at : at + MAX_LINE_BYTES]
        if self._terminal.is_line_mode():
            end = piece.rfind(b"\n") + 1
            if end:
                return piece[:end]
            if at + len(piece) < len(data):
                return None
        return piece

    def _wait_until_read(self, bound_s: float, *, settle: bool = False) -> "Generator[float, None, bool]":
        """Whether everything typed was read within the bound. With `settle` it is looked at twice."""
        until = time.monotonic() + bound_s
        pause, is_empty = _FIRST_PAUSE_S, False
        while True:
            unread = self._terminal.unread()
            if unread == 0 and (is_empty or not settle):
                return True
            is_empty = unread == 0
            if time.monotonic() >= until:
                return False
            yield _SETTLE_S if is_empty else pause
            pause = min(pause * 2, _LONGEST_PAUSE_S)


def _seconds(fields: "dict[str, object]", name: str, default: float) -> float:
    value = fields.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def _patterns(fields: "dict[str, object]", name: str) -> list[str]:
    value = fields.get(name)
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
