"""Answers what a program asks of its terminal while nobody's terminal is there to answer.

Programs ask for the kind of terminal, the cursor's place or a colour, and some wait for the answer before they draw
anything. Also notes what the program switched on, since that decides how text is typed into it and what a person's
terminal that is joined later must be told.
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Row and column of the cursor, from 1, so many bytes before the end of what was printed.
    Place = Callable[[int], tuple[int, int]]

_ASKED = (
    rb"\x1b(?:\[(?:(?P<attributes>[>=?]?0?c)|(?P<status>\??[56]n)|(?P<name>>0?q)|(?P<size>18t)"
    rb"|\?(?P<mode>[0-9]{1,5})\$p|\?(?P<set>[0-9;]{1,40})(?P<how>[hl]))"
    rb"|\](?P<colour>1[01]);\?(?:\x07|\x1b\\))"
)
_UNFINISHED = rb"\x1b(?:\[[>=?]?[0-9;]*\$?|\](?:1(?:[01](?:;(?:\?\x1b?)?)?)?)?)?\Z"
_LONGEST = 48
_ATTRIBUTES = {b"": b"\x1b[?62;22c", b">": b"\x1b[>0;10;0c", b"=": b"\x1bP!|00000000\x1b\\"}
_CURSOR = {b"6n": b"\x1b[%d;%dR", b"?6n": b"\x1b[?%d;%dR"}
_ALTERNATE = {b"47", b"1047", b"1049"}
_COLOUR = {b"10": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\", b"11": b"\x1b]11;rgb:0000/0000/0000\x1b\\"}


class Queries:
    """Feed it all output; it gives the answers in order. Queries split over reads are found."""

    __slots__ = ("_rest", "is_alternate", "is_bracketed")

    def __init__(self) -> None:
        self._rest = b""
        self.is_bracketed = False
        self.is_alternate = False

    @property
    def is_cut(self) -> bool:
        """The last output ended within what may be a query."""
        return bool(self._rest)

    def feed(self, data: bytes, rows: int, columns: int, place: "Place") -> list[bytes]:
        if b"\x1b" not in data and not self._rest:
            return []
        data = self._rest + data
        answers, end = [], 0
        for match in re.finditer(_ASKED, data):
            end = match.end()
            if match["set"] is not None:
                modes = set(match["set"].split(b";"))
                if b"2004" in modes:
                    self.is_bracketed = match["how"] == b"h"
                if modes & _ALTERNATE:
                    self.is_alternate = match["how"] == b"h"
            elif match["status"] in _CURSOR:
                answers.append(_CURSOR[match["status"]] % place(len(data) - match.start()))
            else:
                answers.append(_answer(match, rows, columns))
        unfinished = re.search(_UNFINISHED, data[end:][-_LONGEST:])
        self._rest = unfinished[0] if unfinished else b""
        return answers


def _answer(match: "re.Match[bytes]", rows: int, columns: int) -> bytes:
    if match["attributes"] is not None:
        return _ATTRIBUTES.get(match["attributes"].rstrip(b"c").rstrip(b"0"), b"")
    if match["status"] is not None:
        return b"\x1b[0n"
    if match["name"] is not None:
        return b"\x1bP>|coordinate-agents\x1b\\"
    if match["size"] is not None:
        return b"\x1b[8;%d;%dt" % (rows, columns)
    if match["mode"] is not None:
        return b"\x1b[?%s;0$y" % match["mode"]
    return _COLOUR[match["colour"]]
