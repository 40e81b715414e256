"""One read of a Session's output: which bytes it gives, where the next one goes on, and what was lost between.

The same decision for a living Session (the host's ring) and an ended one (its spool): a `Source` says which parts of
the raw stream it still has and gives bytes with the parts that are masked. Nothing here opens a file or a socket. Runs
in hosts: stdlib only.

Rule: a read never gives half of a secret, of a character or of a control sequence, so it stops before one that is not
complete. The problem this causes: what is larger than the read's bound would never be given. Next rule: a masked part
is given whole whatever its size, and the other two are cut when nothing else would be given.
"""

import re

from coordinate_agents.sessions import masking
from coordinate_agents.sessions.plain import decode, plain
from coordinate_agents.sessions.redact import MASK

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to load
    from typing import Protocol

    class Source(Protocol):
        """`parts`: what is kept of the raw stream, in order, as (start, end). `is_over`: nothing will be added."""

        is_over: bool

        def parts(self) -> list[tuple[int, int]]: ...

        def piece(self, start: int, end: int) -> "Piece":
            """Bytes around start..end of one part, as far as masks need to be known."""


MAX_BYTES = 1 << 20
MIN_BYTES = 16
_LINE_END = rb"\r*\n|\r+(?!\n)"


class Piece:
    """`data` begins at the absolute offset `base`; `spans` are to be masked; what stands at `open` and behind may
    belong to a secret that is not complete yet (the length of the data: nothing does). Offsets are within the data.
    """

    __slots__ = ("base", "data", "open", "spans")

    def __init__(self, base: int, data: bytes, spans: list[tuple[int, int]], open_at: int | None = None) -> None:
        self.base = base
        self.data = data
        self.spans = spans
        self.open = len(data) if open_at is None else open_at


class Result:
    """`data` is redacted; `text` decodes it in the form that was asked for."""

    __slots__ = ("cursor", "data", "dropped_bytes", "ended", "next_cursor", "truncated")

    def __init__(self, data: bytes, cursor: int, next_cursor: int) -> None:
        self.data = data
        self.cursor = cursor
        self.next_cursor = next_cursor
        self.dropped_bytes = 0
        self.truncated = False
        self.ended = False

    def text(self, form: str) -> str:
        text = decode(self.data)
        return plain(text) if form == "plain" else text


def read(source: "Source", *, cursor: int | None, max_bytes: int, max_lines: int | None, form: str) -> Result:
    """What the source has at the cursor; without one the last `max_bytes`. Empty when there is nothing (yet)."""
    max_bytes = min(max(max_bytes, MIN_BYTES), MAX_BYTES)
    parts = source.parts()
    total = parts[-1][1] if parts else 0
    wanted = max(parts[-1][0], total - max_bytes) if cursor is None and parts else max(cursor or 0, 0)
    part = next((one for one in parts if wanted < one[1]), None)
    if part is None:
        result = Result(b"", wanted, wanted)
    else:
        begin = max(wanted, part[0])
        result = _within(source, part, begin, min(part[1], begin + max_bytes), max_lines, form, from_end=cursor is None)
        result.dropped_bytes = begin - wanted
        if cursor is None:
            result.truncated = result.cursor > 0
        elif not result.truncated:
            result.truncated = result.next_cursor == part[1] < total
    result.ended = source.is_over and result.next_cursor >= total
    return result


def _within(
    source: "Source", part: tuple[int, int], begin: int, stop: int, max_lines: int | None, form: str, *, from_end: bool
) -> Result:
    piece = source.piece(begin, stop)
    start = begin - piece.base
    if from_end:
        start = _first_whole(piece, start)
    is_last = stop == part[1]
    end = min(stop - piece.base, piece.open)
    if not (is_last and source.is_over):
        end = _held_back(piece.data, start, end, form, is_cut=not is_last)
    end = _outside_masks(piece, start, end)
    truncated = not is_last
    if max_lines is not None:
        if from_end:
            start = _start_of_last(piece.data, start, end, max_lines)
        elif (cut := _end_of_first(piece.data, start, end, max_lines)) < end:
            end, truncated = _outside_masks(piece, start, cut), True
    result = Result(_masked(piece, start, end), piece.base + start, piece.base + max(start, end))
    result.truncated = truncated
    return result


def _held_back(data: bytes, start: int, end: int, form: str, *, is_cut: bool) -> int:
    """Before an unfinished character or control sequence; where it is when that is all there is and more follows."""
    window = data[start:end]
    size = masking.sequence_end(window) if form == "plain" else len(window)
    size = masking.character_end(window[:size])
    return end if size == 0 and is_cut else start + size


def _outside_masks(piece: Piece, start: int, end: int) -> int:
    """Before a masked part that the end would cut, or behind it when it is the first thing given."""
    for first, last in piece.spans:
        if first < end < last:
            return first if first > start or last > piece.open else last
    return end


def _first_whole(piece: Piece, start: int) -> int:
    """Behind a masked part or a character that the start would cut."""
    for first, last in piece.spans:
        if first < start < last:
            return last
    if start > 0:
        for _ in range(3):
            if start < len(piece.data) and piece.data[start] & 0xC0 == 0x80:
                start += 1
    return start


def _end_of_first(data: bytes, start: int, end: int, lines: int) -> int:
    for match in re.finditer(_LINE_END, data[start:end]):
        lines -= 1
        if lines <= 0:
            return start + match.end()
    return end


def _start_of_last(data: bytes, start: int, end: int, lines: int) -> int:
    """Where the last so many lines begin; a line end at the very end belongs to the last of them."""
    ends = [match.end() for match in re.finditer(_LINE_END, data[start:end])]
    if ends and start + ends[-1] == end:
        ends.pop()
    return start + ends[-lines] if len(ends) >= lines else start


def _masked(piece: Piece, start: int, end: int) -> bytes:
    out = []
    for first, last in piece.spans:
        if last > start and first < end:
            out.append(piece.data[start:first] if first > start else b"")
            out.append(MASK)
            start = last
    out.append(piece.data[start:end])
    return b"".join(out)
