"""session-attach at the person's side: this terminal joined to a Session's, and given back as it was.

`PersonTerminal` implements the port `Terminal`. What the Session prints passes the filter of `sessions.terminal` unless
`--raw`; what the person types goes to it unless read-only; one key leaves. Decides nothing about the Session.

The terminal is restored on every way out: the detach key, the Session's end, an error, SIGTERM, SIGHUP, SIGINT; and
around a stop (SIGTSTP, SIGCONT). It has an open file of its own: only so can it be read without blocking and without
changing how the shell's own descriptors behave.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Final, Protocol, Self

import anyio

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.text import visible
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.terminal import Filter

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_SIGNALS: Final = (*_ENDING, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
_LETTERS: Final = frozenset("abcdefghklnopqrstuvwxyz]\\^_")
_CTRL_C: Final = b"\x03"
_END_SHOWN_S: Final = 2.0
_READ_BYTES: Final = 16384
# A terminal that takes nothing for so long (Ctrl-S, a dead connection) is left without the last words.
_LAST_WORDS_S: Final = 1.0


class Attachment(Protocol):
    """A Session's terminal, joined: what it prints, redacted, until it ends; what is typed; its size."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def send(self, data: bytes) -> None: ...

    async def resize(self, columns: int, rows: int) -> None: ...


def terminal_here() -> "PersonTerminal | None":
    """The terminal that stdin and stdout are; None where one of them is something else."""
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            return PersonTerminal(os.ttyname(sys.stdin.fileno()))
    except (AttributeError, OSError, ValueError):
        pass
    return None


def detach_sequences(name: str) -> tuple[bytes, ...]:
    """What a terminal sends for a key named `C-x`, in the ordinary way and in the two that programs can switch on.

    Raises: INVALID_USAGE for another name, and for keys that are Enter, Tab or the start of other keys.
    """
    letter = name[2:].lower()
    if name[:2] not in ("C-", "c-") or letter not in _LETTERS:
        raise GraphError(
            "INVALID_USAGE",
            f"{visible(name, limit=40)!r} is no key to detach with.",
            kept="the Session as it is",
            next=r"name one as C-a to C-z or C-], C-\, C-^, C-_; not C-i, C-j, C-m, which are Tab and Enter",
        )
    code = ord(letter)
    return bytes([code & 0x1F]), b"\x1b[%d;5u" % code, b"\x1b[27;5;%d~" % code


class PersonTerminal:
    """Implements the port `Terminal` on the terminal of this name."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def join(self, sessions: Any, session_id: Any, *, is_writing: bool, is_raw: bool, detach_key: str) -> bool:
        """Join it to the Session's until the person leaves (False) or the Session ends (True).

        Raises: KeyboardInterrupt after SIGTERM, SIGHUP, SIGINT or SIGQUIT; whatever `sessions.attach` raises.
        """
        keys = detach_sequences(detach_key)
        async with sessions.attach(session_id, is_writing=is_writing, is_answering=is_raw) as attachment:
            with _Line(self._path) as line:
                how = "typing goes to it" if is_writing else "read-only"
                line.say(f"Joined to {visible(str(session_id))} ({how}); {detach_key} leaves it running.")
                visit = _Visit(line, attachment, keys, is_writing=is_writing, is_raw=is_raw)
                return await visit.run()


class _Visit:
    """One time that a person is joined to a Session."""

    def __init__(
        self, line: "_Line", attachment: Attachment, keys: tuple[bytes, ...], *, is_writing: bool, is_raw: bool
    ) -> None:
        self._line = line
        self._attachment = attachment
        self._keys = keys if is_writing else (*keys, _CTRL_C)
        self._is_writing = is_writing
        self._is_raw = is_raw
        self._filter = Filter()
        self._is_away = False
        self._has_ended = False
        self._was_killed = False

    async def run(self) -> bool:
        with anyio.open_signal_receiver(*_SIGNALS) as signals:
            try:
                self._line.enter()
                async with anyio.create_task_group() as group:
                    group.start_soon(self._heed, signals, group.cancel_scope)
                    group.start_soon(self._show, group.cancel_scope)
                    group.start_soon(self._take, group.cancel_scope)
            except ExceptionGroup as errors:
                raise _first(errors) from errors
            finally:
                self._line.restore(self._last_words())
        if self._was_killed:
            raise KeyboardInterrupt
        return self._has_ended

    def _last_words(self) -> bytes:
        return (self._filter.leave_raw if self._is_raw else b"") + self._filter.leave()

    async def _show(self, scope: anyio.CancelScope) -> None:
        """What the Session prints, to the terminal."""
        async for data in self._attachment:
            passed = self._filter.feed(data)
            if not await self._line.write(data if self._is_raw else passed):
                break
        else:
            self._has_ended = True
        scope.cancel()

    async def _take(self, scope: anyio.CancelScope) -> None:
        """What the person types, to the Session; what follows the detach key is nobody's."""
        await self._resize()
        while data := await self._line.read():
            found = [place for key in self._keys if (place := data.find(key)) >= 0]
            typed = data[: min(found)] if found else data
            if typed and self._is_writing:
                await self._send(typed)
            if found:
                break
        scope.cancel()

    async def _send(self, typed: bytes) -> None:
        try:
            await self._attachment.send(typed)
        except SessionError:
            # A Session that has just ended hears nothing any more, and its end is about to be shown.
            await anyio.sleep(_END_SHOWN_S)
            raise

    async def _heed(self, signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
        async for number in signals:
            if number in _ENDING:
                self._was_killed = True
                scope.cancel()
            elif number == signal.SIGTSTP:
                self._stop()
            elif number != signal.SIGCONT or self._come_back():
                await self._resize()

    async def _resize(self) -> None:
        if self._is_writing and not self._is_away:
            await self._attachment.resize(*self._line.size())

    def _stop(self) -> None:
        """Give the terminal back and stop, as the person's shell expects; goes on here after SIGCONT."""
        if not self._is_away:
            self._line.restore(self._last_words())
            self._is_away = True
        os.kill(os.getpid(), signal.SIGSTOP)

    def _come_back(self) -> bool:
        """Take the terminal again, if it is ours; continued in the background it is the shell's, and we stop again."""
        if not self._line.is_foreground():
            self._stop()
            return False
        self._line.enter()
        self._is_away = False
        return True


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    """The first thing that went wrong; what followed followed from it."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


class _Line:
    """An open file of our own on the terminal, never blocking. `restore` may be called at any time and never raises."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._modes: list[Any] = []

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._modes = termios.tcgetattr(self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def enter(self) -> None:
        """Raw mode: every key comes as it is, Ctrl-C and Ctrl-Z too."""
        tty.setraw(self._descriptor, termios.TCSANOW)

    def restore(self, last_words: bytes) -> None:
        """The modes of the terminal as they were, after these bytes. Bounded."""
        if not self.is_foreground():
            return
        with contextlib.suppress(OSError):
            for piece in self._pieces(last_words):
                os.write(self._descriptor, piece)
        # TCSADRAIN would wait for a terminal that is held by Ctrl-S.
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._modes)

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Small pieces, each when there is room; none any more when there is none in time."""
        end = time.monotonic() + _LAST_WORDS_S
        for start in range(0, len(data), 64):
            if not select.select([], [self._descriptor], [], max(0.0, end - time.monotonic()))[1]:
                return
            yield data[start : start + 64]

    def is_foreground(self) -> bool:
        """Whether the terminal is ours to change. One that is not our controlling terminal knows no such thing."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return True

    def size(self) -> tuple[int, int]:
        try:
            return os.get_terminal_size(self._descriptor)
        except OSError:
            return (80, 24)

    def say(self, words: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._descriptor, f"{words}\n".encode())

    async def read(self) -> bytes:
        """What was typed; empty when the terminal is gone."""
        while True:
            try:
                await anyio.wait_readable(self._descriptor)
                return os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    async def write(self, data: bytes) -> bool:
        """Write all of it; False when the terminal is gone."""
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
            except OSError:
                return False
        return True
