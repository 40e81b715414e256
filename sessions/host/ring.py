"""The last raw bytes that a child printed, by their absolute offset, and how they are read out redacted."""

from collections import deque

from coordinate_agents.sessions import masking
from coordinate_agents.sessions.reading import Piece
from coordinate_agents.sessions.redact import MAX_MATCH, Redactor

MIN_BYTES, MAX_BYTES = 64 << 10, 64 << 20
# Smaller pieces are joined, or a program that prints byte by byte would cost a hundred times its output.
_SMALL_BYTES = 4096


class Ring:
    """Implements `reading.Source`. Memory: the size, MAX_MATCH bytes before it, and one piece of output.

    The bytes before are never given out; they show whether the first that is given is the rest of a secret. Pieces are
    kept as they came: moving a whole ring for each of them would cost more than the terminal itself.
    """

    def __init__(self, size: int, redactor: Redactor) -> None:
        self.total = 0
        self.is_over = False
        self._size = min(max(size, MIN_BYTES), MAX_BYTES)
        self._redactor = redactor
        self._pieces: deque[bytes] = deque()
        self._kept = 0  # bytes in the pieces

    def add(self, data: bytes) -> None:
        self.total += len(data)
        most = self._size + MAX_MATCH
        if len(data) > most:
            data = data[-most:]
        self._kept += len(data)
        if self._pieces and len(self._pieces[-1]) < _SMALL_BYTES:
            self._pieces[-1] += data
        else:
            self._pieces.append(data)
        while self._kept - len(self._pieces[0]) >= most:
            self._kept -= len(self._pieces.popleft())

    def parts(self) -> list[tuple[int, int]]:
        return [(self.total - min(self._kept, self._size), self.total)]

    def piece(self, start: int, end: int) -> Piece:
        base = max(self.total - self._kept, start - MAX_MATCH)
        known = min(self.total, end + MAX_MATCH)
        data = self._between(base, known)
        spans = self._redactor.spans(data)
        if known < self.total or self.is_over:
            return Piece(base, data, spans)
        return Piece(base, data, spans, masking.open_start(self._redactor, data, spans))

    def raw(self, start: int, end: int) -> bytes:
        """The raw bytes between two offsets, not redacted, as far as they are kept."""
        return self._between(max(self.total - self._kept, start), min(end, self.total))

    def last(self, size: int) -> bytes:
        """The last raw bytes, not redacted."""
        return self._between(max(self.total - self._kept, self.total - size), self.total)

    def _between(self, start: int, end: int) -> bytes:
        found: list[bytes] = []
        at = self.total
        for piece in reversed(self._pieces):
            if at <= start:
                break
            first = at - len(piece)
            if first < end:
                found.append(piece[max(0, start - first) : end - first] if first < start or at > end else piece)
            at = first
        return b"".join(reversed(found))
