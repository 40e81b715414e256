"""Changes Runtime refs through one kept `git update-ref --stdin`: 0.1 ms a transaction instead of 3 for a process.

Each call is one transaction (start, commands, prepare, commit): all of it is applied or none. git ends with an error,
and then the process with it; the next call starts another. Thread-safe: one transaction at a time. It decides nothing
about names or values: the caller does.
"""

import subprocess
import threading
import time
from collections.abc import Callable
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.kept import MAX_ASKED_BYTES, EndedError, KeptGit

# As for any other call: a lock that somebody holds is waited for by git itself, a second or so.
CHANGE_TIMEOUT_S: Final = 60.0
# git reads the clock for reflogs once in the life of a process, and its configuration too.
MAX_AGE_S: Final = 10.0


class RefusedError(Exception):
    """git did not apply the transaction; `said` is its error output."""

    def __init__(self, said: bytes) -> None:
        super().__init__(said)
        self.said = said


class RefChanger:
    """One `update-ref -z --stdin`, started by `start` when it is needed."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._lock = threading.Lock()
        self._kept = KeptGit("update-ref", start, timeout_s=CHANGE_TIMEOUT_S)

    def fits(self, commands: bytes) -> bool:
        """Whether the commands are few enough for a kept process; more are for a process of their own."""
        return len(commands) <= MAX_ASKED_BYTES

    def apply(self, commands: bytes) -> None:
        """Apply commands in the format of `update-ref -z --stdin` as one transaction.

        Raises: RefusedError when git did not; WorktreeError when it is not known whether it did.
        """
        asked = b"start\0" + commands + b"prepare\0commit\0"
        with self._lock:
            if self._kept.child is not None and time.monotonic() - self._kept.started_at > MAX_AGE_S:
                self._kept.drop()
            try:
                has_begun = self._begin(asked)
            except EndedError:
                # It died before it began this transaction: nothing was applied, and another one may try.
                has_begun = self._begin_again(asked)
            try:
                if not (has_begun and self._kept.line() == b"prepare: ok" and self._kept.line() == b"commit: ok"):
                    raise EndedError(b"")
            except EndedError as error:
                self._kept.drop()
                if error.said:
                    raise RefusedError(error.said) from None
                raise WorktreeError("INTERNAL_ERROR", "git update-ref ended without an answer.") from None

    def close(self) -> None:
        """End the process. A later call starts a new one."""
        with self._lock:
            self._kept.drop()

    def _begin(self, asked: bytes) -> bool:
        self._kept.ask(asked)
        return self._kept.line() == b"start: ok"

    def _begin_again(self, asked: bytes) -> bool:
        try:
            return self._begin(asked)
        except EndedError as error:
            if error.said:
                raise RefusedError(error.said) from None
            raise WorktreeError("INTERNAL_ERROR", "git update-ref ended without an answer.") from None
