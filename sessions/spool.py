"""The redacted output on disk, as it is written by the host and read when there is no host to ask any more.

`output.log` is the beginning of the output. Masks in it are shorter or longer than what they stand for, so
`output.index` says for each, in order, the raw bytes "start end" it stands for (one that begins where the last ended
shares its mask), and "cut <raw end> <bytes>" when the log was full: what follows in the log then is for people. The end
of the output is in `output.tail`: one line of JSON, then redacted bytes. Neither file exists without need.
"""

import contextlib
import json
import os

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.reading import Piece
from coordinate_agents.sessions.redact import MASK

INDEX = "output.index"
TAIL = "output.tail"
_MAX_INDEX_BYTES = 64 << 20
_MAX_TAIL_BYTES = 66 << 20


class Spool:
    """Implements `reading.Source` over the folder as it is now. Use as a context, since it holds the log open.

    Masked parts are given back as zeros of their raw length, so that offsets are raw offsets again.
    """

    is_over = True

    def __init__(self, folder: int) -> None:
        self._log = -1
        self._masks: list[tuple[int, int]] = []
        self._tail: Piece | None = None
        self._tail_end = 0
        with contextlib.suppress(FileNotFoundError):
            self._log = os.open(folders.OUTPUT, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        size = os.fstat(self._log).st_size if self._log >= 0 else 0
        size, self._end = self._read_index(folders.read_whole(folder, INDEX, _MAX_INDEX_BYTES) or b"", size)
        self._size = size
        self._read_tail(folders.read_whole(folder, TAIL, _MAX_TAIL_BYTES))

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._log >= 0:
            os.close(self._log)

    def parts(self) -> list[tuple[int, int]]:
        found = [(0, self._end)] if self._end else []
        if self._tail is not None and self._tail_end > self._end:
            found.append((max(self._tail.base, self._end), self._tail_end))
        return found

    def piece(self, start: int, end: int) -> Piece:
        if start >= self._end:
            assert self._tail is not None
            return self._tail
        first, last = self._offset(start), self._offset(end)
        base, spans = start, []
        for mask_start, mask_end in self._masks:
            if mask_end > start and mask_start < end:
                base = min(base, mask_start)
                spans.append((mask_start, mask_end))
        if spans and spans[0][0] == base:
            first = self._offset(base)
        if spans and spans[-1][1] > end:
            end, last = spans[-1][1], self._offset(spans[-1][1])
        data = os.pread(self._log, last - first, first)
        return Piece(base, _stretched(data, base, spans), [(one - base, other - base) for one, other in spans])

    def _read_index(self, data: bytes, size: int) -> tuple[int, int]:
        """Fill the masks; return the bytes of the log that count, and the raw offset of their end."""
        cut: tuple[int, int] | None = None
        for line in data.split(b"\n")[:-1]:
            words = line.split()
            if words[0] == b"cut":
                cut = int(words[2]), int(words[1])
            elif self._masks and self._masks[-1][1] == int(words[0]):
                self._masks[-1] = (self._masks[-1][0], int(words[1]))
            else:
                self._masks.append((int(words[0]), int(words[1])))
        if cut is not None:
            return cut
        at = raw = 0
        kept = []
        for start, end in self._masks:
            if at + start - raw + len(MASK) > size:
                break  # the index is ahead of the log
            kept.append((start, end))
            at += start - raw + len(MASK)
            raw = end
        self._masks = kept
        return size, raw + size - at

    def _read_tail(self, data: bytes | None) -> None:
        if data is None:
            return
        line, _, rest = data.partition(b"\n")
        fields = json.loads(line)
        base, spans = int(fields["start"]), [(int(start), int(end)) for start, end in fields["spans"]]
        stretched = _stretched(rest, base, spans)
        self._tail = Piece(base, stretched, [(start - base, end - base) for start, end in spans])
        self._tail_end = base + len(stretched)

    def _offset(self, raw: int) -> int:
        """Where in the log a raw offset is; within a mask: before it."""
        shift = 0
        for start, end in self._masks:
            if end > raw:
                return min(raw, start) - shift
            shift += (end - start) - len(MASK)
        return raw - shift


def write_tail(folder: int, piece: Piece, start: int) -> None:
    """Replace the tail by a part of the output from the raw offset on. Raises: OSError."""
    out: list[bytes] = []
    spans: list[tuple[int, int]] = []
    at = start - piece.base
    end = piece.open
    for first, last in piece.spans:
        if last > at and first < end:
            first = max(first, at)
            out += [piece.data[at:first], MASK]
            spans.append((piece.base + first, piece.base + last))
            at = last
    out.append(piece.data[at:end])
    header = json.dumps({"v": 1, "start": start, "spans": spans}).encode("ascii")
    folders.write_whole(folder, TAIL, header + b"\n" + b"".join(out))


def _stretched(data: bytes, base: int, spans: list[tuple[int, int]]) -> bytes:
    """Redacted bytes from the raw offset on, each mask replaced by zeros of the length that it stands for."""
    out = []
    at, raw = 0, base
    for start, end in spans:
        out += [data[at : at + start - raw], bytes(end - start)]
        at += start - raw + len(MASK)
        raw = end
    out.append(data[at:])
    return b"".join(out)
