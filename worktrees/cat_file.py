"""Answers questions about objects from one kept `git cat-file --batch-check`: 0.05 ms each instead of 2.

Thread-safe: one question at a time. The process is started at the first question and again when it died; `close` ends
it. It only names objects (type and id) and never returns content.
"""

import contextlib
import select
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.process import end_group

ANSWER_TIMEOUT_S: Final = 30.0
_MAX_ANSWER: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object that exists."""

    oid: str
    type: str


class ObjectReader:
    """One `cat-file --batch-check`, started by `start` when it is needed."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def look_up(self, expression: str) -> ObjectName | None:
        """The object that an id or `<id>^{type}` names; None when there is none. Raises: WorktreeError."""
        if "\n" in expression or "\0" in expression:
            return None
        with self._lock:
            answer = self._ask(expression) or self._ask_again(expression)
        return _parse(answer)

    def close(self) -> None:
        """End the process. A later question starts a new one."""
        with self._lock:
            self._drop()

    def _ask_again(self, expression: str) -> bytes:
        self._drop()
        answer = self._ask(expression)
        if not answer:
            self._drop()
            raise WorktreeError("INTERNAL_ERROR", "git cat-file ended without an answer.")
        return answer

    def _ask(self, expression: str) -> bytes:
        """One answer line; empty when the process died."""
        if self._child is None:
            self._child = self._start()
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        answer = bytearray()
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        poll = select.poll()
        poll.register(child.stdout.fileno(), select.POLLIN)
        try:
            child.stdin.write(expression.encode("utf-8", "surrogateescape") + b"\n")
            while not answer.endswith(b"\n") and len(answer) < _MAX_ANSWER:
                if not poll.poll(max(0, int((deadline - time.monotonic()) * 1000))):
                    self._drop()
                    raise WorktreeError("INTERNAL_ERROR", f"git cat-file gave no answer in {ANSWER_TIMEOUT_S:g} s.")
                chunk = child.stdout.read(4096)
                if not chunk:
                    return b""
                answer += chunk
        except BrokenPipeError:
            return b""
        return bytes(answer)

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        end_group(child)


def _parse(answer: bytes) -> ObjectName | None:
    """`<oid> SP <type> SP <size>`; anything else ("missing", "ambiguous") is no object."""
    words = answer.decode("utf-8", "surrogateescape").split()
    if len(words) != 3 or not words[2].isdigit():
        return None
    return ObjectName(words[0], words[1])
