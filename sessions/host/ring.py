"""The last raw bytes that a child printed, by their absolute offset, and how they are read out redacted.

What is printed is read straight into its place here: a flood costs no copy and no new memory. The byte at an absolute
offset stands at that offset modulo the most that is kept; the buffer grows up to there with what is printed.
"""

from coordinate_agents.sessions import masking
from coordinate_agents.sessions.reading import Piece
from coordinate_agents.sessions.redact import MAX_MATCH, Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from collections.abc import Callable

MIN_BYTES, MAX_BYTES = 64 << 10, 64 << 20
# A quiet Session never needs more than twice so much.
_FIRST_BYTES = 16 << 10


class Ring:
    """Implements `reading.Source`. Memory: the size and MAX_MATCH bytes before it, once so much was printed.

    The bytes before are never given out; they show whether the first that is given is the rest of a secret.
    """

    def __init__(self, size: int, redactor: Redactor) -> None:
        self.total = 0
        self.is_over = False
        self.size = min(max(size, MIN_BYTES), MAX_BYTES)
        doublings = ((self.size + MAX_MATCH) // _FIRST_BYTES).bit_length() - 1
        first = -(-(self.size + MAX_MATCH) >> doublings)
        self._most = first << doublings
        self._redactor = redactor
        # Invariant: at least min(total, most) bytes long.
        self._data = bytearray(first)
        self._view = memoryview(self._data)

    def add(self, data: bytes) -> None:
        left = memoryview(data)
        if len(left) > self._most:
            self._grow(self._most)
            self.total += len(left) - self._most
            left = left[-self._most :]
        while left:
            place = self._place()
            size = min(len(place), len(left))
            place[:size] = left[:size]
            place.release()
            self.total += size
            left = left[size:]

    def fill(self, read: "Callable[[memoryview], int | None]", max_bytes: int) -> "int | None":
        """Let `read` put output in its place until it has none or so many bytes came; return what it said last.

        What `read` says is how many bytes it put there: 0 at the end of all output, None when there is nothing now.
        `max_bytes` is at most the ring's size: what came in one call is all kept. Raises: what `read` raises; what came
        before is kept.
        """
        place, at, left = self._place(), 0, max_bytes
        size: int | None = None
        try:
            while left > 0 and (size := read(place[at : at + left])):
                at += size
                left -= size
                if at == len(place):
                    self.total += at
                    at = 0
                    place.release()
                    place = self._place()
        finally:
            self.total += at
            place.release()
        return size

    def has(self, letter: bytes, start: int) -> bool:
        """Whether one byte was printed at that offset or later, as far as that is kept."""
        return any(self._data.find(letter, first, last) >= 0 for first, last in self._places(start, self.total))

    def parts(self) -> list[tuple[int, int]]:
        return [(self.total - min(self.total, self.size), self.total)]

    def piece(self, start: int, end: int) -> Piece:
        base = max(self._first(), start - MAX_MATCH)
        known = min(self.total, end + MAX_MATCH)
        data = self.raw(base, known)
        spans = self._redactor.spans(data)
        if known < self.total or self.is_over:
            return Piece(base, data, spans)
        return Piece(base, data, spans, masking.open_start(self._redactor, data, spans))

    def raw(self, start: int, end: int) -> bytes:
        """The raw bytes between two offsets, not redacted, as far as they are kept."""
        return b"".join(self._view[first:last] for first, last in self._places(start, end))

    def last(self, size: int) -> bytes:
        """The last raw bytes, not redacted."""
        return self.raw(self.total - size, self.total)

    def _first(self) -> int:
        return max(0, self.total - self._most)

    def _places(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where in the buffer the bytes between two offsets stand, in order, as far as they are kept."""
        start, end = max(start, self._first()), min(end, self.total)
        if start >= end:
            return []
        first, last = start % self._most, (end - 1) % self._most + 1
        return [(first, last)] if first < last else [(first, self._most), (0, last)]

    def _place(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        at = self.total % self._most
        if at == len(self._data):
            self._grow(at + 1)
        return self._view[at:]

    def _grow(self, size: int) -> None:
        """Double the buffer until it is as long as that."""
        self._view.release()  # a buffer that is looked at cannot grow
        while len(self._data) < size:
            self._data *= 2  # in place: no second buffer, and no page of the first that is touched again
        self._view = memoryview(self._data)
