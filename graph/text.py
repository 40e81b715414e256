"""Makes foreign text safe to show: titles, paths, refs, subjects, agents' output and errors.

`visible` is the one function that such text passes before a terminal, a message or a prompt. Nothing here decides
what is shown; it only guarantees that what is shown is one line, bounded, and looks like what it is: a control, bidi
or zero-width character appears as its escape (``\\x1b``, ``\\u202e``) instead of acting.

The rule is an allow-list: a character passes when it is a letter, mark, number, punctuation, symbol or the plain
space. Marks can be stacked without end and some of them hide text, so runs of them are bounded and the invisible ones
are escaped too.
"""

import unicodedata
from collections.abc import Collection
from typing import Final

DEFAULT_LIMIT: Final = 2000
NAME_LIMIT: Final = 160
CUT: Final = "…"

# Characters of admitted categories that draw nothing: they can hide text or make two names look equal.
_INVISIBLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE0E)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
# U+FE0E and U+FE0F choose the text or the emoji form of the character before them, and are everywhere.
_PRESENTATION: Final = frozenset("\ufe0e\ufe0f")
# No script needs more on one character; a hundred would run over the lines above and below.
_MAX_MARKS: Final = 4
_NAMED_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str | bytes, *, limit: int = DEFAULT_LIMIT) -> str:
    """The text as one safe line of at most `limit` characters; a cut one ends in ``…``.

    Bytes are read as UTF-8; what is not UTF-8 shows as ``\\x80``. Applying it twice changes nothing.
    """
    assert limit >= 1, limit
    if isinstance(text, bytes):
        # Four bytes a character at most: the rest would be cut anyway.
        text = text[: 4 * (limit + 1)].decode("utf-8", "surrogateescape")
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    return _cut(_escaped(text[: limit + 1]), limit)


def visible_lines(text: str, *, max_lines: int, limit: int = DEFAULT_LIMIT) -> tuple[str, ...]:
    """The last `max_lines` lines, each made visible; a first line says how many were left out."""
    lines = text.splitlines()
    kept = lines[-max_lines:] if max_lines > 0 else []
    shown = tuple(visible(line, limit=limit) for line in kept)
    if len(kept) == len(lines):
        return shown
    return (f"{CUT} {counted(len(lines) - len(kept), 'earlier line')}", *shown)


def joined_lines(text: str) -> str:
    """The lines that show something, trimmed, with `` / `` between: a dialog as one line that can be read."""
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())


def sentence(words: str) -> str:
    """The words with a capital letter and a full stop."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?')) else '.'}"


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Collection[str], *, total: int | None = None, first: int = 3) -> str:
    """``a``, ``a and b``, ``a, b, c and 7 more``: the first names, made visible, in the order given.

    `total`: how many there are when `names` holds only some of them.
    """
    shown = [visible(name, limit=NAME_LIMIT) for name in list(names)[:first]]
    left_out = max(total or 0, len(names)) - len(shown)
    if left_out > 0:
        shown.append(f"{left_out} more")
    if len(shown) <= 1:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def clipped(text: str, max_bytes: int) -> str:
    """The text within `max_bytes` of UTF-8, never through a character; a cut one ends in ``…``."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= max_bytes:
        return text
    room = max(0, max_bytes - len(CUT.encode()))
    return raw[:room].decode("utf-8", "ignore") + CUT


def _escaped(text: str) -> str:
    parts: list[str] = []
    marks = 0
    for position, char in enumerate(text):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if _passes(char, category) and marks <= _MAX_MARKS and not (marks and position == 0):
            parts.append(char)
        else:
            parts.append(_escape(char))
    return "".join(parts)


def _passes(char: str, category: str) -> bool:
    if char == " " or char in _PRESENTATION:
        return True
    # Cc Cf Cs Co Cn act, hide or are unassigned; Zl Zp break lines; the other Zs look like a space and are not one.
    return category[0] not in "CZ" and char not in _INVISIBLE


def _escape(char: str) -> str:
    named = _NAMED_ESCAPES.get(char)
    if named is not None:
        return named
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + CUT
