"""A program that joins the terminal it runs on to a child's, without a host between: for tests of cli/attach.py.

`python joined.py [--read-only] [--raw] [--key C-x] [--fail] command…`. Prints what `join` returned or raised.
"""

import argparse
import contextlib
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator

import anyio

from coordinate_agents.cli.attach import terminal_here
from coordinate_agents.sessions.errors import SessionError


class Child:
    """A child on a terminal of its own, as a Session's attachment."""

    def __init__(self, command: list[str], *, fails: bool) -> None:
        self._fails = fails
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        os.set_blocking(self._descriptor, False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            try:
                await anyio.wait_readable(self._descriptor)
                data = os.read(self._descriptor, 4096)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not data:
                return
            if self._fails and b"fail" in data:
                raise SessionError("SESSION_NOT_HEALTHY", "the host is gone.")
            yield data

    async def send(self, data: bytes) -> None:
        os.write(self._descriptor, data)

    async def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Children:
    def __init__(self, command: list[str], *, fails: bool) -> None:
        self._command, self._fails = command, fails

    @contextlib.asynccontextmanager
    async def attach(self, session_id: str, *, is_writing: bool, is_answering: bool) -> AsyncIterator[Child]:
        child = Child(self._command, fails=self._fails)
        try:
            yield child
        finally:
            child.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--key", default="C-]")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    terminal = terminal_here()
    if terminal is None:
        print("no terminal")
        return

    async def join() -> bool:
        assert terminal is not None
        return await terminal.join(
            Children(asked.command, fails=asked.fail),
            "s1",
            is_writing=not asked.read_only,
            is_raw=asked.raw,
            detach_key=asked.key,
        )

    try:
        print("joined:", "ended" if anyio.run(join) else "left")
    except BaseException as error:
        print("raised:", type(error).__name__, getattr(error, "code", ""))
        sys.exit(3)


if __name__ == "__main__":
    main()
