"""Masks secrets in what leaves a Session: output, logs, tails, command lines.

Two kinds are masked: literal values that the caller names, also where they were encoded on the way (base64, URL, hex,
JSON), and text that has the shape of a well-known secret whatever its value. Masking is exact: what is not a secret
comes out byte for byte.

A literal value is also masked where control sequences stand between its characters (a program that colours half of it,
say): they vanish from plain text and from the screen, and would leave the value whole there. The mask takes them along.

Output arrives in pieces, and a secret may be cut anywhere. `Stream` therefore gives text out only up to a point that no
secret can cross: the last line end, when nothing that spans lines is open there, else `MAX_MATCH` bytes before the end
of what is known. Every pattern is bounded by `MAX_MATCH`, so how the input was cut never changes the result.

Runs in hosts: stdlib only, nothing slow to load.
"""

import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Iterable

MASK = b"[redacted]"
MAX_MATCH = 32 << 10
_MAX_SECRET_BYTES = 8 << 10
# How far a pattern may look behind its start.
_CONTEXT = 8
_KEY_OPENING = b"-----BEGIN"
# What may stand between two characters of a value and is not shown: sequences, single controls, CR without LF.
_BETWEEN = (
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]"
    rb"|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])[^\x07\x1b\n]{0,512}(?:\x07|\x1b\\|\xc2\x9c)"
    rb"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
    rb"|\r(?!\r*\n)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)
_UNFINISHED = (
    rb"(?:(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])[^\x07\x1b\n]{0,512}(?:\x1b|\xc2)?"
    rb"|\x1b[ -/]*|\xc2|\r+)\Z"
)
# Everything but the bytes that those begin with.
_TEXT = bytes({*range(256)} - {*range(32), 0x7F, 0xC2} | {0x09, 0x0A})
# A value and what stands in it. Less than MAX_MATCH, so that a cut never hides one.
_MAX_SPLIT = 16 << 10

# Each shape: a literal that is looked for first, since that is much faster than any expression, and the expression,
# which starts as near to that literal as it can; what its one group holds is masked. No expression may need more than
# a bounded number of steps per byte, whatever an agent prints.
_SHAPES: tuple[tuple[bytes, bytes], ...] = (
    *((b"gh%c_" % letter, rb"\b(gh%c_[A-Za-z0-9]{36,255})" % letter) for letter in b"pousr"),
    (b"github_pat_", rb"\b(github_pat_[A-Za-z0-9_]{22,255})"),
    (b"glpat-", rb"\b(glpat-[A-Za-z0-9_-]{20,128})"),
    (b"sk-", rb"\b(sk-[A-Za-z0-9_-]{20,512})"),
    (b"k_live_", rb"\b([rs]k_live_[A-Za-z0-9]{16,255})"),
    (b"k_test_", rb"\b([rs]k_test_[A-Za-z0-9]{16,255})"),
    (b"xox", rb"\b(xox[abeoprs]-[A-Za-z0-9-]{10,512})"),
    (b"AKIA", rb"\b(AKIA[0-9A-Z]{16})\b"),
    (b"ASIA", rb"\b(ASIA[0-9A-Z]{16})\b"),
    (b"AIza", rb"\b(AIza[0-9A-Za-z_-]{35})"),
    (b"npm_", rb"\b(npm_[A-Za-z0-9]{36})"),
    (b"pypi-", rb"\b(pypi-[A-Za-z0-9_-]{50,1024})"),
    (b"hf_", rb"\b(hf_[A-Za-z0-9]{30,128})"),
    (b"eyJ", rb"\b(eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048})"),
    *(
        (name, name + rb"[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?([^\s\"'][^\r\n\"']{0,8191})")
        for name in (b"uthorization", b"UTHORIZATION")
    ),
    (b"ookie:", rb"(?<=[Cc])ookie:[ \t]{0,8}([^\s][^\r\n]{0,8191})"),
    (b"://", rb"://[^\s/:@\"'<>]{0,256}:([^\s/@\"'<>]{1,512})@"),
    (
        _KEY_OPENING,
        rb"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?:(?:[^-]|-(?!----BEGIN)){1,16384}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rb"|(?:[\s,\"']|\\[nr]){0,8}(?:[A-Za-z0-9+/=]{16,128}(?:[\s,\"']|\\[nr]){0,8}){1,100}))",
    ),
)

# The letters of each hint, those first that ordinary output has least of. One letter is found ten times faster than a
# word, and one that is not there at all answers for every shape that needs it.
_BY_RARITY = b"JZIzU_Ax:-kywgbpfhudlsmrntaoie"


def _letters_of(word: bytes) -> tuple[bytes, ...]:
    return tuple(bytes([letter]) for letter in sorted(set(word), key=lambda one: (_BY_RARITY.find(one), one)))


_LETTERS = tuple(_letters_of(hint) for hint, _ in _SHAPES)
# Without a line end, look again only after so much.
_STEP = 16 << 10

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_COMPILED: dict[bytes, re.Pattern[bytes]] = {}


def _compiled(expression: bytes) -> re.Pattern[bytes]:
    """Compiled when first needed: a host that never sees a shape never pays for it."""
    found = _COMPILED.get(expression)
    if found is None:
        found = _COMPILED[expression] = re.compile(expression)
    return found


def compile_shapes() -> None:
    """Compile every shape now: for a process that forks hosts, so that each of them has them."""
    for expression in (*(shape for _, shape in _SHAPES), _BETWEEN, _UNFINISHED):
        _compiled(expression)


def hints() -> list[bytes]:
    """The literal that each shape starts near to."""
    return [hint for hint, _ in _SHAPES]


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
    for upper in ("%%%02X", "%%%02x"):
        forms.add(b"".join(bytes([c]) if _is_plain_in_url(c) else (upper % c).encode() for c in raw))
    for ascii_only in (True, False):
        text_json = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        forms.add(text_json.encode("utf-8", "surrogateescape"))
    return {form for form in forms if len(form) >= 6}


def _is_plain_in_url(c: int) -> bool:
    return (chr(c).isalnum() and c < 128) or c in b"-._~"


class _Letters(dict[bytes, bool]):
    """Whether a letter is in the data from some place on; each is looked for once, when first asked for."""

    __slots__ = ("_data", "_start")

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start

    def __missing__(self, letter: bytes) -> bool:
        found = self[letter] = self._data.find(letter, self._start) >= 0
        return found


class _Shown:
    """Where in the data a byte is that remains when everything between characters is taken out."""

    __slots__ = ("_at", "_gone")

    def __init__(self, data: bytes) -> None:
        self._at: list[int] = []  # how many bytes remain before each part that goes
        self._gone = [0]  # how many bytes have gone with it
        for match in _compiled(_BETWEEN).finditer(data):
            self._at.append(match.start() - self._gone[-1])
            self._gone.append(self._gone[-1] + match.end() - match.start())

    def place(self, index: int) -> int:
        return index + self._gone[bisect_right(self._at, index)]


def _has_controls(data: bytes) -> bool:
    """Whether anything of `_BETWEEN` may be there. Quick, since most output has none but CR LF."""
    if b"\x1b" in data:
        return True
    controls = data.translate(None, _TEXT)
    returns = controls.count(b"\r")
    return returns != len(controls) or (returns > 0 and returns != data.count(b"\r\n"))


class Redactor:
    """Masks one fixed set of literal values and all known shapes."""

    __slots__ = ("_letters", "_literals", "_openings")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            value = secret.strip()
            if value and len(value.encode("utf-8", "surrogateescape")) <= _MAX_SECRET_BYTES:
                forms |= encodings(value)
        self._literals = sorted(forms, key=lambda form: (-len(form), form))
        self._letters = [(form, _letters_of(form)) for form in self._literals]
        # First lines of values that span lines: a line end behind one of them is no safe cut.
        self._openings = [(form.split(b"\n", 1)[0], len(form)) for form in self._literals if b"\n" in form]

    def redact(self, data: bytes) -> bytes:
        """The data with every secret replaced by MASK; secrets that touch or overlap share one."""
        stream = Stream(self)
        return stream.feed(data) + stream.finish()

    def redact_text(self, text: str) -> str:
        return self.redact(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def literal_spans(self, data: bytes, start: int, limit: int) -> list[tuple[int, int]]:
        """Every occurrence that starts within start..limit, overlapping ones too."""
        spans = []
        for form in self._literals:
            end = limit + len(form) - 1
            at = data.find(form, start, end)
            while at >= 0:
                spans.append((at, at + len(form)))
                at = data.find(form, at + 1, end)
        return spans + self._split_spans(data, start, limit) if self._literals else spans

    def _split_spans(self, data: bytes, start: int, limit: int) -> list[tuple[int, int]]:
        """Every occurrence that starts within start..limit and has control sequences in it."""
        data = data[start : limit + _MAX_SPLIT]
        has = _Letters(data, 0)
        found = [form for form, letters in self._letters if all(has[letter] for letter in letters)]
        if not found or not _has_controls(data):
            return []
        text = _compiled(_BETWEEN).sub(b"", data)
        found = [form for form in found if form in text]
        if not found:
            return []
        shown, spans = _Shown(data), []
        for form in found:
            at = text.find(form)
            while at >= 0:
                first, last = shown.place(at), shown.place(at + len(form) - 1) + 1
                if len(form) < last - first <= _MAX_SPLIT and first < limit - start:
                    spans.append((start + first, start + last))
                at = text.find(form, at + 1)
        return spans

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Every part to be masked, in order; parts that touch or overlap are one."""
        found = self.literal_spans(data, 0, len(data))
        has = _Letters(data, 0)
        for (hint, expression), letters in zip(_SHAPES, _LETTERS, strict=True):
            if all(has[letter] for letter in letters) and data.find(hint) >= 0:
                found += [match.span(1) for match in _compiled(expression).finditer(data)]
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
        if self._literals and _has_controls(near):
            ended = _compiled(_UNFINISHED).sub(b"", near)
            text = _compiled(_BETWEEN).sub(b"", ended)
            at = self._opening(text)
            if at < len(text):
                first = min(first, len(data) - len(near) + _Shown(ended).place(at))
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
        opening = data.rfind(_KEY_OPENING, max(0, cut - MAX_MATCH), cut)
        if opening >= 0:
            return start
        for first_line, length in self._openings:
            if data.find(first_line, max(0, cut - length), cut) >= 0:
                return start
        return cut


class Stream:
    """Masks one stream given in pieces; `feed` returns what is safe to show, `finish` the rest."""

    __slots__ = ("_buffer", "_done", "_forgotten", "_later", "_masked", "_next_shape", "_redactor", "_scanned", "masks")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._buffer = b""
        self._done = 0  # everything before it was given out or masked
        self._scanned = 0  # literal values that start before it were found
        self._next_shape = [0] * len(_SHAPES)  # where each shape goes on searching
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
        spans = self._later + self._redactor.literal_spans(data, self._scanned, limit)
        has = _Letters(data, min(self._next_shape))
        for index, (hint, expression) in enumerate(_SHAPES):
            self._shape_spans(index, hint, expression, limit, spans, has)
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

    def _shape_spans(
        self, index: int, hint: bytes, expression: bytes, limit: int, spans: list[tuple[int, int]], has: _Letters
    ) -> None:
        """Add the masked parts of one shape's matches that start before `limit`."""
        data, position = self._buffer, self._next_shape[index]
        if not all(has[letter] for letter in _LETTERS[index]) or data.find(hint, position) < 0:
            # What was searched without success needs no second search, but for a hint that is cut by the end.
            self._next_shape[index] = max(limit, len(data) - len(hint) - _CONTEXT)
            return
        for match in _compiled(expression).finditer(data, position):
            if match.start() >= limit:
                break
            spans.append(match.span(1))
            position = match.end()
        self._next_shape[index] = max(position, limit)

    def _forget(self) -> None:
        """Drop what no later decision can look at."""
        drop = min(self._scanned, self._done) - _CONTEXT
        if drop > 0:
            self._buffer = self._buffer[drop:]
            self._forgotten += drop
            self._done -= drop
            self._scanned -= drop
            self._later = [(start - drop, end - drop) for start, end in self._later]
            self._next_shape = [position - drop for position in self._next_shape]
