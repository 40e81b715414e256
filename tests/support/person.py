"""A person at a real terminal: the test types, sees what comes, and looks at the terminal's modes."""

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

WAIT_S = 30.0


class Person:
    """Somebody at a terminal of 24 rows and 80 columns in which the program of these words runs.

    `shown` is what came since the last look, `all` everything.
    """

    def __init__(self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        self.shown = ""
        self.all = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            # The shell's modes must be there before the program reads them.
            os.chdir(cwd or Path.cwd())
            os.execve(words[0], list(words), dict(env or os.environ))
        self.resize(80, 24)
        self.modes = termios.tcgetattr(self.descriptor)

    def type(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def sees(self, text: str) -> str:
        """Wait for the text; returns what came with and before it since the last call."""
        return self.waits(lambda: text in self.shown, text)

    def waits(self, condition: Callable[[], Any], what: str) -> str:
        end = time.monotonic() + WAIT_S
        while not condition():
            left = end - time.monotonic()
            assert left > 0, f"{what!r} was not seen: {self.shown!r}"
            self._read(min(left, 0.05))  # what is waited for may come without a word
        shown, self.shown = self.shown, ""
        return shown

    def _read(self, bound_s: float) -> bool:
        if select.select([self.descriptor], [], [], bound_s)[0]:
            try:
                data = os.read(self.descriptor, 4096)
            except OSError:
                return False
            self.all += data
            self.shown += self._decoder.decode(data)
            return bool(data)
        return True

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.descriptor)[3] & termios.ICANON

    def until_stopped(self) -> None:
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status

    def until_gone(self) -> int:
        """Wait for the end of the program; its exit code. What it still said is in `shown`."""
        end = time.monotonic() + WAIT_S
        while self._read(max(0.0, end - time.monotonic())):
            assert time.monotonic() < end
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def hang_up(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1

    def end(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        if self.descriptor >= 0:
            os.close(self.descriptor)
