"""The closed list of named keys, and the bytes that a terminal sends for them. Pure."""

from collections.abc import Sequence
from typing import Final

from coordinate_agents.sessions.errors import SessionError

_ESC: Final = b"\x1b"
KEYS: Final[dict[str, bytes]] = {
    "Enter": b"\r",
    "Escape": _ESC,
    "Tab": b"\t",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[H",
    "End": b"\x1b[F",
    "PageUp": b"\x1b[5~",
    "PageDown": b"\x1b[6~",
    "Backspace": b"\x7f",
    "Delete": b"\x1b[3~",
    "Space": b" ",
    "C-c": b"\x03",
    "C-d": b"\x04",
    "C-z": b"\x1a",
    **{f"F{number}": b"\x1bO" + letter for number, letter in zip(range(1, 5), (b"P", b"Q", b"R", b"S"), strict=True)},
    **{
        f"F{number}": b"\x1b[%d~" % code
        for number, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)
    },
    "y": b"y",
    "n": b"n",
    **{str(digit): b"%d" % digit for digit in range(10)},
}
MAX_KEYS: Final = 64


def bytes_of(names: Sequence[str]) -> list[bytes]:
    """The bytes of each key. Raises: INVALID_USAGE for a name that is not in the list, or for too many."""
    unknown = [name for name in names if name not in KEYS]
    if unknown or not names or len(names) > MAX_KEYS:
        what = f"there is no key {unknown[0]!r}" if unknown else f"1 to {MAX_KEYS} keys can be sent, not {len(names)}"
        raise SessionError("INVALID_USAGE", f"{what}; nothing was typed.", next=f"use keys of: {' '.join(KEYS)}")
    return [KEYS[name] for name in names]
