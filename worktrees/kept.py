"""A git process that is kept for many questions: started when needed, ended by `close`, bounded in every wait.

It knows pipes and deadlines, and nothing of what is asked. Not thread-safe: who owns one holds a lock. Between
questions the process waits at its input (no CPU); it ends by itself when its owner dies, since that closes its input.
"""

import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.process import MAX_ERROR_BYTES, close_pipes, end_group

_CHUNK: Final = 1 << 16
# More is never written at once: a process that is busy answering does not read, and both would wait for each other.
MAX_ASKED_BYTES: Final = 32 << 10


class EndedError(Exception):
    """The process ended instead of answering. `said`: what it gave as the reason, if its error output is read."""

    def __init__(self, said: bytes) -> None:
        super().__init__(said)
        self.said = said


class KeptGit:
    """One process of `start`; `name` is for messages. Unread output of an earlier question ends the process."""

    def __init__(self, name: str, start: Callable[[], subprocess.Popen[bytes]], *, timeout_s: float) -> None:
        self._name = name
        self._start = start
        self._timeout_s = timeout_s
        self._unread = bytearray()
        self._deadline = 0.0
        self.child: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    def ask(self, given: bytes) -> None:
        """Begin a question; every `line` and `exactly` until the next one shares its time. Raises: EndedError."""
        if self.child is None or self._unread:
            self.drop()
            self.child = self._start()
            self.started_at = time.monotonic()
        assert self.child.stdin is not None
        self._deadline = time.monotonic() + self._timeout_s
        rest = memoryview(given)
        try:
            while rest:
                rest = rest[os.write(self.child.stdin.fileno(), rest) :]
        except BrokenPipeError:
            raise self._ended() from None

    def line(self, limit: int = _CHUNK) -> bytes:
        """The next line of the answer without its end. Raises: EndedError, WorktreeError when it takes too long."""
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > limit:
                self.drop()
                raise WorktreeError("INTERNAL_ERROR", f"git {self._name} gave an answer that is no line.")
            self._read()
        found = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return found

    def exactly(self, count: int) -> bytes:
        """The next bytes of the answer. Raises: as `line`."""
        while len(self._unread) < count:
            self._read()
        found = bytes(self._unread[:count])
        del self._unread[:count]
        return found

    def drop(self) -> None:
        """End the process; the next question starts another."""
        child, self.child = self.child, None
        self._unread.clear()
        if child is not None:
            close_pipes(child)
            end_group(child)

    def _read(self) -> None:
        assert self.child is not None
        assert self.child.stdout is not None
        fd = self.child.stdout.fileno()
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(max(0, int((self._deadline - time.monotonic()) * 1000))):
            self.drop()
            raise WorktreeError("INTERNAL_ERROR", f"git {self._name} gave no answer in {self._timeout_s:g} s.")
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            raise self._ended()
        self._unread += chunk

    def _ended(self) -> EndedError:
        said = b""
        if self.child is not None and self.child.stderr is not None:
            # It has ended, or is ending: nothing that it left behind may keep this waiting.
            end_group(self.child)
            os.set_blocking(self.child.stderr.fileno(), False)
            try:
                said = os.read(self.child.stderr.fileno(), MAX_ERROR_BYTES)
            except BlockingIOError:
                said = b""
        self.drop()
        # Hints and warnings are not why it ended: a process that was killed gave no reason.
        return EndedError(b"\n".join(line for line in said.splitlines() if line.startswith((b"fatal:", b"error:"))))
