"""Lets through to a person's terminal what draws, and nothing that acts: the filter of session-attach.

An agent's output is foreign text. The filter is an allow-list: text, colours, cursor movement, erasing, scrolling,
inserting, deleting, line drawing and the modes named here. Everything else is dropped: strings (OSC, DCS, APC, PM,
SOS) that set titles, clipboards and files; questions, whose answers would be typed into the agent as if by the
person; C1 controls; window operations; modes that make the terminal send on its own (mouse, focus); whatever it does
not know. What passes is written anew from its parts, so the terminal cannot read it in another way than the filter.

The output does not depend on how the input was split. `leave` brings a terminal back from all that may have passed.
"""

import re
from collections.abc import Iterator
from typing import Final

from coordinate_agents.sessions.sequences import Control, Csi, Escape, Part, Splitter, Text

# What sets these is passed with every value; `l` of the second group only: nothing may turn them on.
_MODES: Final = frozenset(
    (
        1,  # application cursor keys
        6,  # origin
        7,  # wrap at the right edge
        12,  # blinking cursor
        25,  # visible cursor
        47,
        1047,
        1048,
        1049,  # the alternate screen
        2004,  # bracketed paste
        2026,  # synchronised drawing
    )
)
_MODES_OFF: Final = frozenset((5, 9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016))
_PLAIN_MODES: Final = frozenset((4, 20))
_ALTERNATE: Final = frozenset((47, 1047, 1049))

_CONTROLS: Final = frozenset("\a\b\t\n\v\f\r\x0e\x0f")
# Cursor saved and restored, line feeds, tab stop, keypad, character sets, test picture.
_ESCAPES: Final = frozenset(("7", "8", "D", "E", "H", "M", "=", ">", "#8", "(0", "(A", "(B", ")0", ")A", ")B"))
# Final → most parameters it may have. More mean something else: `T` with five tracks the mouse, `s` sets margins.
_CSIS: Final = {
    **dict.fromkeys("@ABCDEFGIJKLMPSTXZ`abdeg", 1),
    **dict.fromkeys("Hfr", 2),
    **dict.fromkeys("su", 0),
}
_NUMBERS: Final = re.compile(r"(?:[0-9]{1,5}(?:;[0-9]{1,5}|;)*|;[0-9]{1,5})?")
_COLOURS: Final = re.compile(r"[0-9:;]{0,200}")
# A reset of the terminal would also take what the person had above; this is its part on the screen.
_RESET: Final = "\x1b[!p\x1b[m\x1b(B\x1b)B\x0f\x1b[?7h\x1b[?25h\x1b[H\x1b[2J"
# Text that draws nothing itself and turns other text around or breaks the line.
_BIDI: Final = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")

_LEAVE: Final = (
    "\x1b[?2026l\x1b[?1l\x1b[?2004l\x1b[?7h\x1b[?12l\x1b[?25h\x1b[4l\x1b[20l\x1b>\x1b[0 q\x1b[m\x1b(B\x1b)B\x0f"
)
# What passes only with --raw: an unfinished string, mouse, focus, keyboards that report more.
_LEAVE_RAW: Final = (
    "\x18\x1b\\\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[<u\x1b[>4;0m\x1b[?5l"
)
# Both send the cursor to the top, over what the person had there; so it goes to the last line after them.
_LEAVE_REGION: Final = "\x1b[?6l\x1b[r\x1b[9999H"


class Filter:
    """Takes the raw output as it comes; returns what may be written to a person's terminal."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._is_alternate = False
        self._has_region = False

    @property
    def leave_raw(self) -> bytes:
        """What must come before `leave` where the output went to the terminal as it was."""
        return _LEAVE_RAW.encode()

    def feed(self, data: bytes) -> bytes:
        """What of the data may pass; a sequence that is not complete waits for its rest."""
        return "".join(self._passed(data)).encode()

    def leave(self) -> bytes:
        """What brings the terminal back to how it was, whatever passed; the cursor at the start of a line."""
        back = _LEAVE_REGION if self._has_region else ""
        # Only then: otherwise 1049 would move the cursor to a place that nobody saved.
        back += "\x1b[?1049l" if self._is_alternate else ""
        self._is_alternate = self._has_region = False
        return f"{_LEAVE}{back}\r\n".encode()

    def _passed(self, data: bytes) -> Iterator[str]:
        for part in self._splitter.feed(data):
            yield self._let(part)

    def _let(self, part: Part) -> str:
        match part:
            case Text(text):
                return _BIDI.sub("", text)
            case Control(char):
                return char if char in _CONTROLS else ""
            case Escape("", "c"):
                return _RESET
            case Escape(intermediates, final):
                name = intermediates + final
                return f"\x1b{name}" if name in _ESCAPES else ""
            case Csi(prefix, parameters, "", "h" | "l" as final) if prefix in ("", "?"):
                return self._modes(prefix, parameters, final)
            case Csi():
                self._has_region = self._has_region or part.final == "r"
                return _csi(part)

    def _modes(self, prefix: str, parameters: str, final: str) -> str:
        if not _NUMBERS.fullmatch(parameters):
            return ""
        allowed = _PLAIN_MODES if not prefix else _MODES if final == "h" else _MODES | _MODES_OFF
        numbers = [int(each) for each in parameters.split(";") if each and int(each) in allowed]
        if prefix and not _ALTERNATE.isdisjoint(numbers):
            self._is_alternate = final == "h"
        self._has_region = self._has_region or (bool(prefix) and 6 in numbers)
        return f"\x1b[{prefix}{';'.join(map(str, numbers))}{final}" if numbers else ""


def _csi(part: Csi) -> str:
    """The sequence written anew, or nothing."""
    parameters = part.parameters
    if part.prefix:
        return ""
    if part.final == "m" and not part.intermediates:
        return f"\x1b[{parameters}m" if _COLOURS.fullmatch(parameters) else ""
    if part.intermediates:
        # The shape of the cursor, and a reset of modes that has no part outside the screen.
        name = part.intermediates + part.final
        is_known = (name == " q" and re.fullmatch("[0-6]?", parameters)) or (name == "!p" and not parameters)
        return f"\x1b[{parameters}{name}" if is_known else ""
    most = _CSIS.get(part.final)
    if most is None or not _NUMBERS.fullmatch(parameters):
        return ""
    if len(parameters.split(";")) > max(most, 1) or (most == 0 and parameters):
        return ""
    # Erasing what scrolled away would take what the person had there before.
    if part.final == "J" and parameters.strip("0") == "3":
        return ""
    return f"\x1b[{parameters}{part.final}"
