"""The last raw bytes that a child printed, by their absolute offset, and how they are read out redacted."""

from coordinate_agents.sessions import masking
from coordinate_agents.sessions.reading import Piece
from coordinate_agents.sessions.redact import MAX_MATCH, Redactor

MIN_BYTES, MAX_BYTES = 64 << 10, 64 << 20


class Ring:
    """Implements `reading.Source`. Memory: the size, MAX_MATCH bytes before it and a quarter of it.

    The bytes before are never given out; they show whether the first that is given is the rest of a secret.
    """

    def __init__(self, size: int, redactor: Redactor) -> None:
        self.total = 0
        self.is_over = False
        self._size = min(max(size, MIN_BYTES), MAX_BYTES)
        self._redactor = redactor
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        kept = self._size + MAX_MATCH
        self._data += data if len(data) <= kept else data[-kept:]
        # Cut at a quarter more, so that dropping costs few moves of the whole.
        if len(self._data) > kept + self._size // 4:
            del self._data[: len(self._data) - kept]

    def parts(self) -> list[tuple[int, int]]:
        return [(self.total - min(self.total, len(self._data), self._size), self.total)]

    def piece(self, start: int, end: int) -> Piece:
        floor = self.total - len(self._data)
        base = max(floor, start - MAX_MATCH)
        known = min(self.total, end + MAX_MATCH)
        data = bytes(memoryview(self._data)[base - floor : known - floor])
        spans = self._redactor.spans(data)
        if known < self.total or self.is_over:
            return Piece(base, data, spans)
        return Piece(base, data, spans, masking.open_start(self._redactor, data, spans))

    def last(self, size: int) -> bytes:
        """The last raw bytes, not redacted."""
        return bytes(self._data[-size:])
