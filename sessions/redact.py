"""Masks secrets in what leaves a Session: output, logs, tails, command lines.

Two kinds are masked: literal values that the caller names, also where they were encoded on the way (base64, URL, hex,
JSON), and text that has the shape of a well-known secret whatever its value. Masking is exact: what is not a secret
comes out byte for byte.

Both are also masked where control sequences stand between their characters (a program that colours half of one, say):
they vanish from plain text and from the screen, and would leave the secret whole there. The mask takes them along. For
a shape only sequences count that leave the cursor where it is: what is drawn at two places is not one word.

Output arrives in pieces, and a secret may be cut anywhere. `Stream` therefore gives text out only up to a point that no
secret can cross: the last line end, when nothing that spans lines is open there, else `MAX_MATCH` bytes before the end
of what is known. Every pattern is bounded by `MAX_MATCH`, so how the input was cut never changes the result.

Runs in hosts: stdlib only, nothing slow to load.
"""

import binascii
import json
from collections.abc import Iterable

from coordinate_agents.sessions.between import (
    BETWEEN,
    STAYING,
    Shown,
    compiled,
    has_controls,
    shown_text,
    without_unfinished,
)
from coordinate_agents.sessions.shapes import KEY_OPENING, SHAPES, Letters, letters_of, possible

MASK = b"[redacted]"
MAX_MATCH = 32 << 10
_MAX_SECRET_BYTES = 8 << 10
# How far a pattern may look behind its start.
_CONTEXT = 8
# A secret and what stands in it. So much less than MAX_MATCH that a cut never hides one, nor a sequence in it.
_MAX_SPLIT = 24 << 10
# What is looked at before a part, to find where the sequences in it begin: more than twice the longest.
_BEFORE = 1 << 10
_LONGEST_HINT = max(len(hint) for hint, _ in SHAPES)
# Without a line end, look again only after so much.
_STEP = 16 << 10

_PLAIN_IN_URL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def encodings(secret: str) -> set[bytes]:
    """The forms in which a value may appear in output, the value itself included."""
    raw = secret.encode("utf-8", "surrogateescape")
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    forms.add(raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    for shift in range(3):
        # Within a longer text the value starts at one of three places of a base64 group; the characters that also
        # depend on neighbours are left out.
        text = binascii.b2a_base64(bytes(shift) + raw, newline=False)
        first = (0, 2, 3)[shift]
        last = len(text) - (0, 3, 2)[(shift + len(raw)) % 3]
        forms.add(text[first:last])
        forms.add(text[first:last].translate(_URL_SAFE))
    if raw.translate(None, _PLAIN_IN_URL):  # else it stands as it is in addresses and in JSON
        for upper in ("%%%02X", "%%%02x"):
            forms.add(b"".join(bytes([c]) if c in _PLAIN_IN_URL else (upper % c).encode() for c in raw))
        for ascii_only in (True, False):
            text_json = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
            forms.add(text_json.encode("utf-8", "surrogateescape"))
    return {form for form in forms if len(form) >= 6}


class Redactor:
    """Masks one fixed set of literal values and all known shapes."""

    __slots__ = ("_letters", "_literals", "_openings", "_split_openings")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            value = secret.strip()
            if value and len(value.encode("utf-8", "surrogateescape")) <= _MAX_SECRET_BYTES:
                forms |= encodings(value)
        self._literals = sorted(forms, key=lambda form: (-len(form), form))
        self._letters = [(form, letters_of(form)) for form in self._literals]
        # First lines of values that span lines: a line end behind one of them is no safe cut.
        self._openings = [(form.split(b"\n", 1)[0], len(form)) for form in self._literals if b"\n" in form]
        words = (KEY_OPENING, *(first_line for first_line, _ in self._openings))
        self._split_openings = [(word, letters_of(word)) for word in words]

    def redact(self, data: bytes) -> bytes:
        """The data with every secret replaced by MASK; secrets that touch or overlap share one."""
        # Most words and lines show at a glance that they hold none.
        if not (has_controls(data) or possible(Letters(data, 0)) or any(form in data for form in self._literals)):
            return data
        stream = Stream(self)
        return stream.feed(data) + stream.finish()

    def redact_text(self, text: str) -> str:
        return self.redact(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def literal_spans(self, data: bytes, start: int, limit: int, has: Letters) -> list[tuple[int, int]]:
        """Every occurrence that starts within start..limit, overlapping ones too. `has`: of all from `start` on."""
        spans: list[tuple[int, int]] = []
        found = [form for form, letters in self._letters if has.all(letters)]
        if not found:
            return spans
        for form in found:
            end = limit + len(form) - 1
            at = data.find(form, start, end)
            while at >= 0:
                spans.append((at, at + len(form)))
                at = data.find(form, at + 1, end)
        near = data[start : limit + _MAX_SPLIT]
        if has_controls(near):
            spans += [(start + one, start + other) for one, other in _split_literals(found, near, limit - start)]
        return spans

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Every part to be masked, in order; parts that touch or overlap are one."""
        has = Letters(data, 0)
        found = self.literal_spans(data, 0, len(data), has)
        wanted = possible(has)
        for hint, expression in (SHAPES[index] for index in wanted):
            if data.find(hint) >= 0:
                found += [match.span(1) for match in compiled(expression).finditer(data)]
        found += _split_shapes(data, 0, len(data), [0] * len(SHAPES), wanted)
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def literal_opening(self, data: bytes) -> int:
        """Where a literal value may have begun of which more is to come; the length of the data when none has."""
        near = data[-_MAX_SPLIT:]
        first = self._opening(data)
        if self._literals and has_controls(near):
            ended = without_unfinished(near)
            text = compiled(BETWEEN).sub(b"", ended)
            at = self._opening(text)
            if at < len(text):
                first = min(first, len(data) - len(near) + Shown(ended).place(at))
        return first

    def _opening(self, data: bytes) -> int:
        first = len(data)
        for form in self._literals:
            at = data.find(form[:1], max(0, len(data) - len(form) + 1), first)
            while at >= 0:
                if form.startswith(data[at:]):
                    first = at
                    break
                at = data.find(form[:1], at + 1, first)
        return first

    def safe_line_end(self, data: bytes, start: int) -> int:
        """The end of the last line that no secret can cross; `start` when there is none."""
        cut = data.rfind(b"\n", start) + 1
        if cut <= start:
            return start
        if data.rfind(KEY_OPENING, max(0, cut - MAX_MATCH), cut) >= 0:
            return start
        for first_line, length in self._openings:
            if data.find(first_line, max(0, cut - length), cut) >= 0:
                return start
        return start if self._has_split_opening(data[max(0, cut - MAX_MATCH) : cut]) else cut

    def _has_split_opening(self, data: bytes) -> bool:
        """Whether the first line of something that spans lines is there with sequences in it."""
        has = Letters(data, 0)
        words = [word for word, letters in self._split_openings if has.all(letters)]
        if not words or not has_controls(data):
            return False
        text = compiled(BETWEEN).sub(b"", data)
        return any(word in text for word in words)


class Stream:
    """Masks one stream given in pieces; `feed` returns what is safe to show, `finish` the rest."""

    __slots__ = (
        "_buffer",
        "_done",
        "_forgotten",
        "_later",
        "_masked",
        "_next_shape",
        "_next_split",
        "_redactor",
        "_scanned",
        "masks",
    )

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._buffer = b""
        self._done = 0  # everything before it was given out or masked
        self._scanned = 0  # literal values that start before it were found
        self._next_shape = [0] * len(SHAPES)  # where each shape goes on searching
        self._next_split = [0] * len(SHAPES)  # the same for those with sequences in them
        self._later: list[tuple[int, int]] = []  # found already, but start behind the present limit
        self._masked = False  # the last thing given out was a mask that ends at _done
        self._forgotten = 0  # bytes of the stream before the buffer
        # The parts (start, end) of the stream that masks given out so far stand for, in order, for the caller to take.
        # A part that touches the one before shares its mask.
        self.masks: list[tuple[int, int]] = []

    @property
    def given(self) -> int:
        """Offset in the stream up to which everything was given out."""
        return self._forgotten + self._done

    def pending(self) -> bytes:
        """What was not decided yet: the caller may know that a part of it is no secret's beginning."""
        return self._buffer[self._scanned :]

    def settle(self, size: int) -> bytes:
        """Give out also the first `size` pending bytes, in which no secret may begin that is not complete."""
        return self._advance(self._scanned + size)

    def feed(self, data: bytes) -> bytes:
        self._buffer += data
        limit = self._redactor.safe_line_end(self._buffer, self._scanned)
        if len(self._buffer) - MAX_MATCH - _STEP > self._scanned:
            limit = max(limit, len(self._buffer) - MAX_MATCH)
        return self._advance(limit) if limit > self._scanned else b""

    def finish(self) -> bytes:
        return self._advance(len(self._buffer))

    def _advance(self, limit: int) -> bytes:
        data = self._buffer
        has = Letters(data, self._scanned)
        spans = self._later + self._redactor.literal_spans(data, self._scanned, limit, has)
        wanted = possible(has)
        for index in wanted:
            self._shape_spans(index, limit, spans)
        # What was searched without success needs no second search, but for a hint that is cut by the end.
        done = max(limit, len(data) - _LONGEST_HINT - _CONTEXT)
        self._next_shape = [
            next_ if index in wanted else max(next_, done) for index, next_ in enumerate(self._next_shape)
        ]
        spans += _split_shapes(data, self._scanned, limit, self._next_split, wanted)
        spans.sort()
        self._later = [span for span in spans if span[0] >= limit]
        out = []
        for start, end in spans[: len(spans) - len(self._later)]:
            if start > self._done:
                out.append(data[self._done : start])
                self._masked = False
            if not self._masked:
                out.append(MASK)
                self._masked = True
            before = max(start, self._done)
            self._done = max(self._done, end)
            if self._done > before:
                self.masks.append((self._forgotten + before, self._forgotten + self._done))
        if self._done < limit:
            out.append(data[self._done : limit])
            self._done, self._masked = limit, False
        self._scanned = limit
        self._forget()
        return b"".join(out)

    def _shape_spans(self, index: int, limit: int, spans: list[tuple[int, int]]) -> None:
        """Add the masked parts of one shape's matches that start before `limit`."""
        data, position = self._buffer, self._next_shape[index]
        hint, expression = SHAPES[index]
        if data.find(hint, position) < 0:
            self._next_shape[index] = max(limit, len(data) - len(hint) - _CONTEXT)
            return
        for match in compiled(expression).finditer(data, position):
            if match.start() >= limit:
                break
            spans.append(match.span(1))
            position = match.end()
        self._next_shape[index] = max(position, limit)

    def _forget(self) -> None:
        """Drop what no later decision can look at."""
        drop = min(self._scanned, self._done) - _BEFORE
        if drop > 0:
            self._buffer = self._buffer[drop:]
            self._forgotten += drop
            self._done -= drop
            self._scanned -= drop
            self._later = [(start - drop, end - drop) for start, end in self._later]
            self._next_shape = [position - drop for position in self._next_shape]
            self._next_split = [position - drop for position in self._next_split]


def _split_literals(forms: list[bytes], data: bytes, limit: int) -> list[tuple[int, int]]:
    """Every occurrence of these that starts before `limit` and has control sequences in it."""
    text = compiled(BETWEEN).sub(b"", data)
    forms = [form for form in forms if form in text]
    spans: list[tuple[int, int]] = []
    if not forms:
        return spans
    shown = Shown(data)
    for form in forms:
        at = text.find(form)
        while at >= 0:
            first, last = shown.place(at), shown.place(at + len(form) - 1) + 1
            if len(form) < last - first <= _MAX_SPLIT and first < limit:
                spans.append((first, last))
            at = text.find(form, at + 1)
    return spans


def _split_shapes(
    data: bytes, start: int, limit: int, positions: list[int], wanted: list[int]
) -> list[tuple[int, int]]:
    """The masked parts of shapes that start before `limit`, found in what is shown; positions are moved on.

    `positions`: where each shape goes on searching, none before `start`. `wanted`: those that may be there.
    """
    base = max(0, start - _BEFORE)
    spans: list[tuple[int, int]] = []
    if wanted and has_controls(near := data[base : limit + MAX_MATCH]):
        text = shown_text(near)
        wanted = [i for i in wanted if SHAPES[i][0] in text and compiled(SHAPES[i][1]).search(text)]
        shown = Shown(near if wanted else b"", STAYING)
        for index in wanted:
            _, expression = SHAPES[index]
            at = shown.index(positions[index] - base)
            for match in compiled(expression).finditer(shown.text, at):
                if base + shown.place(match.start()) >= limit:
                    break
                first, last = shown.place(match.start(1)), shown.place(match.end(1) - 1) + 1
                if last - first <= _MAX_SPLIT:
                    spans.append((base + first, base + last))
                positions[index] = base + shown.place(match.end() - 1) + 1
    positions[:] = [max(position, limit) for position in positions]
    return spans
