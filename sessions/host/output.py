"""What the child printed: a ring of the last raw bytes, and a bounded, redacted log file.

The log keeps the beginning, then a mark that says how much is missing, then the end: failures show at either.
"""

import os

from coordinate_agents.sessions.plain import last_line, tail
from coordinate_agents.sessions.redact import Redactor, Stream

# The end of the output that is appended to a log that was cut.
_LOG_TAIL = 64 << 10


class Output:
    """Bytes in; tail, last line and log out. Memory is bounded by the ring and the redactor's look-ahead."""

    def __init__(self, folder: int, log_name: str, *, ring_bytes: int, log_bytes: int, redactor: Redactor) -> None:
        self.total = 0
        self._ring = bytearray()
        self._ring_bytes = ring_bytes
        self._redactor = redactor
        self._stream: Stream | None = Stream(redactor)
        self._room = max(0, log_bytes - _LOG_TAIL)
        self._logged_raw = 0  # raw bytes given to the stream
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._log = os.open(log_name, flags, 0o600, dir_fd=folder)

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._ring += data
        # Cut at twice the size, so that dropping costs one move of the ring per ring of output.
        if len(self._ring) > 2 * self._ring_bytes:
            del self._ring[: len(self._ring) - self._ring_bytes]
        if self._stream is not None:
            self._logged_raw += len(data)
            self._write(self._stream.feed(data))

    def recent(self, max_bytes: int) -> bytes:
        """The last raw bytes, redacted. A little more is looked at, so that a secret cut at the start is masked."""
        span = bytes(self._ring[-(max_bytes + (16 << 10)) :])
        return self._redactor.redact(span)[-max_bytes:]

    def tail(self) -> str:
        return tail(self.recent(32 << 10))

    def last_line(self) -> str:
        return last_line(self.recent(4 << 10))

    def finish(self) -> None:
        """Complete the log and close it."""
        if self._stream is not None:
            self._write(self._stream.finish())
        if self._stream is None:
            end = self.recent(_LOG_TAIL)
            missing = max(0, self.total - self._logged_raw - min(self.total, len(end)))
            self._put(f"\n[truncated: about {missing} bytes left out]\n".encode() + end)
        os.close(self._log)

    def _write(self, data: bytes) -> None:
        if len(data) > self._room:
            self._put(data[: self._room])
            self._stream = None
            return
        self._room -= len(data)
        self._put(data)

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._log, view) :]
        except OSError:
            # A full disk must not end the agent; the ring still has the end.
            self._stream = None
