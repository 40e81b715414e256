"""What the child printed: a ring of the last raw bytes, and a bounded, redacted spool in the Session's folder.

The spool (`sessions.spool` reads it) keeps the beginning, then a mark that says how much is missing, then the end:
failures show at either. What stands in an unfinished line is written when the child has been silent for a moment, and
the end of a spool that was cut is written now and then, so that a host that is killed leaves both behind.
"""

import os

from coordinate_agents.sessions import masking, spool
from coordinate_agents.sessions.host.ring import Ring
from coordinate_agents.sessions.plain import decode, last_line, plain, tail
from coordinate_agents.sessions.redact import MASK, Redactor, Stream

# The end of the output that is appended to a log that was cut.
_LOG_TAIL = 64 << 10
# What is kept of the ring when it is over, beside a log that was cut.
_FINAL_TAIL = 1 << 20
_PATTERN_CHARACTERS = 4 << 10
# The C library gives freed memory back to the system, and a flood would have it made anew for every piece. It keeps
# twice the size of the largest block that it gave back before. Source: mallopt(3), M_MMAP_THRESHOLD.
_FREED_BYTES = 2 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class Output:
    """Bytes in; reads, tail, last line and spool out. Memory is bounded by the ring and the redactor's look-ahead."""

    def __init__(self, folder: int, log_name: str, *, ring_bytes: int, log_bytes: int, redactor: Redactor) -> None:
        bytes(_FREED_BYTES)  # never touched, so it costs no memory
        self.ring = Ring(ring_bytes, redactor)
        self._folder = folder
        self._redactor = redactor
        self._stream: Stream | None = Stream(redactor)
        self._room = max(0, log_bytes - _LOG_TAIL)
        self._log_bytes = 0
        self._log_end = 0  # raw bytes that the beginning in the log stands for
        self._saved_total = 0
        self._last_line = (0, "")  # as of how many bytes
        self._index = -1
        self._log = os.open(log_name, _FLAGS, 0o600, dir_fd=folder)

    @property
    def total(self) -> int:
        return self.ring.total

    def add(self, data: bytes) -> None:
        self.ring.add(data)
        if self._stream is not None:
            self._write(self._stream.feed(data))

    def took(self, begin: int) -> None:
        """Something was read into the ring since that offset; it is all still there."""
        if self._stream is not None and self.total > begin:
            self._write(self._stream.feed(self.ring.raw(begin, self.total)))

    def recent(self, max_bytes: int) -> bytes:
        """The last raw bytes, redacted. A little more is looked at, so that a secret cut at the start is masked."""
        return self._redactor.redact(self.ring.last(max_bytes + (16 << 10)))[-max_bytes:]

    def redact_text(self, text: str) -> str:
        return self._redactor.redact_text(text)

    def tail(self, *, since: int = 0) -> str:
        """The last plain text; of what was printed since so many bytes."""
        size = min(32 << 10, self.total - since)
        return tail(self.recent(size)) if size > 0 else ""

    def end_text(self, max_bytes: int = 8 << 10) -> str:
        """The last 4,096 plain characters of the last raw bytes, for patterns; blanks at the end are kept."""
        return plain(decode(self.recent(max_bytes)))[-_PATTERN_CHARACTERS:]

    def last_line(self) -> str:
        if self._last_line[0] != self.total:
            self._last_line = (self.total, last_line(self.recent(4 << 10)))
        return self._last_line[1]

    def settle(self) -> None:
        """Bring the spool up to date as far as it can be, so that it survives this host."""
        if self.ring.total == self._saved_total:
            return
        self._saved_total = self.ring.total
        if self._stream is None:
            self._save_tail(_LOG_TAIL)
        else:
            pending = self._stream.pending()
            size = min(masking.undecided(self._redactor, pending), masking.character_end(pending))
            if size > 0:
                self._write(self._stream.settle(size))

    def finish(self) -> None:
        """Complete the spool and close it."""
        self.ring.is_over = True
        if self._stream is not None:
            self._write(self._stream.finish())
        if self._stream is None:
            self._save_tail(_FINAL_TAIL)
            end = self.recent(_LOG_TAIL)
            missing = max(0, self.total - self._log_end - min(self.total, len(end)))
            self._put(f"\n[truncated: about {missing} bytes left out]\n".encode() + end)
        os.close(self._log)
        if self._index >= 0:
            os.close(self._index)

    def _write(self, data: bytes) -> None:
        """Append to the beginning, and note which raw bytes the masks in it stand for. Full: cut for good."""
        assert self._stream is not None
        masks, self._stream.masks = self._stream.masks, []
        end = self._stream.given
        is_cut = len(data) > self._room
        if is_cut:
            data, masks, end = _shortened(data[: self._room], masks, self._log_end)
        self._room -= len(data)
        lines = "".join(f"{start} {stop}\n" for start, stop in masks)
        self._room -= len(lines)
        if is_cut:
            lines += f"cut {end} {self._log_bytes + len(data)}\n"
        if lines:
            self._note(lines.encode())
        self._log_end = end
        self._put(data)
        if is_cut:
            self._stream = None

    def _note(self, lines: bytes) -> None:
        """Written before the bytes it speaks of: an index that is ahead of its log is no harm, the other way is."""
        try:
            if self._index < 0:
                self._index = os.open(spool.INDEX, _FLAGS, 0o600, dir_fd=self._folder)
            os.write(self._index, lines)
        except OSError:
            self._stream = None

    def _save_tail(self, size: int) -> None:
        """The end of the output beside a log that was cut, whole and by rename."""
        start = max(self.ring.parts()[0][0], self._log_end, self.ring.total - size)
        try:
            spool.write_tail(self._folder, self.ring.piece(start, self.ring.total), start)
        except OSError:
            return  # a full disk; the ring still has it

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        self._log_bytes += len(data)
        try:
            while view:
                view = view[os.write(self._log, view) :]
        except OSError:
            # A full disk must not end the agent; the ring still has the end.
            self._stream = None


def _shortened(data: bytes, masks: list[tuple[int, int]], raw_start: int) -> tuple[bytes, list[tuple[int, int]], int]:
    """The data cut in no mask and no character, the masks that are left in it, and the raw offset of its end."""
    raw, at = raw_start, 0
    for index, (start, stop) in enumerate(masks):
        shown = 0 if start == raw and index and masks[index - 1][1] == start else len(MASK)
        if at + (start - raw) + shown > len(data):
            masks = masks[:index]
            data = data[: min(len(data), at + (start - raw))]
            break
        at += start - raw + shown
        raw = stop
    data = data[: max(at, masking.character_end(data))]
    return data, masks, raw + len(data) - at
