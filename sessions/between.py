"""What may stand between two characters of a secret and is not shown: control sequences and single controls.

They vanish from plain text and from the screen, so a secret with some of them in it is whole there. Runs in hosts:
stdlib only.
"""

import re
from bisect import bisect_left, bisect_right

_CSI = rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*"
_STRING = rb"(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])[^\x07\x1b\n]{0,512}(?:\x07|\x1b\\|\xc2\x9c)"
# Sequences, single controls, CR without LF.
BETWEEN = rb"%b[@-~]|%b|\x1b[ -/]*[0-OQ-WYZ\\`-~]|(?<!\r)\r++(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]" % (
    _CSI,
    _STRING,
)
# The same in two groups: after the first the next character stands beside the last one (colours, modes, titles); after
# the second it may stand anywhere, so two texts are not one word. CR is left as it is: it separates by itself.
_STAYS = rb"%b[chlmnpqt]|%b|\x1b(?:[ -/]+[0-~]|[7=>\\])|[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]" % (_CSI, _STRING)
_MOVES = rb"%b[@-~]|\x1b[0-OQ-WYZ`-~]|[\x08\x0b\x0c]" % _CSI
STAYING = rb"(%b)|(%b)" % (_STAYS, _MOVES)
UNFINISHED = (
    rb"(?:(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])[^\x07\x1b\n]{0,512}(?:\x1b|\xc2)?"
    rb"|\x1b[ -/]*|\xc2|(?<!\r)\r++)\Z"
)
# Everything but the bytes that those begin with.
_TEXT = bytes({*range(256)} - {*range(32), 0x7F, 0xC2} | {0x09, 0x0A})
_SEPARATOR = b"\r"
# More than a sequence that is not finished can have.
_LONGEST = 1 << 10

_COMPILED: dict[bytes, re.Pattern[bytes]] = {}


def compiled(expression: bytes) -> re.Pattern[bytes]:
    """Compiled when first needed: a host that never sees a shape never pays for it."""
    found = _COMPILED.get(expression)
    if found is None:
        found = _COMPILED[expression] = re.compile(expression)
    return found


class Shown:
    """`text` is the data without what stands between characters; `place` and `index` lead from one to the other.

    With STAYING a sequence that may move the cursor leaves one separator behind.
    """

    __slots__ = ("_at", "_gone", "_starts", "text")

    def __init__(self, data: bytes, expression: bytes = BETWEEN) -> None:
        self._starts: list[int] = []  # where each part begins that goes
        self._at: list[int] = []  # the first place in the text behind each of them
        self._gone = [0]  # how many bytes have gone with it
        kept, end = [], 0
        for match in compiled(expression).finditer(data):
            start = match.start()
            kept.append(data[end:start])
            end = match.end()
            left = 1 if expression is STAYING and match.lastindex == 2 else 0
            if left:
                kept.append(_SEPARATOR)
            self._starts.append(start)
            self._at.append(start - self._gone[-1] + left)
            self._gone.append(self._gone[-1] + end - start - left)
        self.text = b"".join([*kept, data[end:]]) if kept else data

    def place(self, index: int) -> int:
        """Where in the data a byte of the text is."""
        return index + self._gone[bisect_right(self._at, index)]

    def index(self, place: int) -> int:
        """How many bytes of the text come from before a place in the data."""
        parts = bisect_left(self._starts, place)
        return max(place - self._gone[parts], self._at[parts - 1]) if parts else place


def shown_text(data: bytes) -> bytes:
    """As the text of `Shown` with STAYING, but for sequences that a removed one had held apart. At half its cost."""
    return compiled(_MOVES).sub(_SEPARATOR, compiled(_STAYS).sub(b"", data))


def has_controls(data: bytes) -> bool:
    """Whether anything of `BETWEEN` may be there. Quick, since most output has none but CR LF."""
    if b"\x1b" in data:
        return True
    controls = data.translate(None, _TEXT)
    returns = controls.count(b"\r")
    return returns != len(controls) or (returns > 0 and returns != data.count(b"\r\n"))


def without_unfinished(data: bytes) -> bytes:
    """The data without a sequence at its end whose rest is to come."""
    return data[:-_LONGEST] + compiled(UNFINISHED).sub(b"", data[-_LONGEST:])
