"""Splits what a program writes to a terminal into text, controls and sequences, whatever pieces it arrives in.

Decides what is one sequence; never what it does: `screen` draws from these parts and `terminal` lets some of them
pass. The same bytes give the same parts however they are split, except that a run of text may come in several.

The rules are those of a terminal's parser. A control character inside a sequence is executed before it; ESC, CAN and
SUB end what was begun; characters that cannot stand in a sequence are ignored there. The payload of OSC, DCS, APC, PM
and SOS is nobody's text and is dropped as it comes, so nothing that never ends takes memory.

Source: ECMA-48; https://vt100.net/emu/dec_ansi_parser.
"""

import codecs
import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple, TypeAlias

# More parameters than any program writes; what is longer is dropped whole.
MAX_BODY: Final = 256

_TEXT: Final = re.compile("[^\x00-\x1f\x7f-\x9f]+")
# Up to the character that ends the sequence; `body` may hold controls and characters that are ignored.
_CSI: Final = re.compile(r"(?P<body>[^\x18\x1a\x1b@-~]*)(?P<final>[@-~\x18\x1a\x1b]?)")
_ESCAPE: Final = re.compile(r"\x1b(?P<body>[^\x18\x1a\x1b0-~]*)(?P<final>[0-~\x18\x1a\x1b]?)")
_ENDS_STRING: Final = {"]": re.compile("[\x07\x18\x1a\x1b]")}
_ENDS_OTHER: Final = re.compile("[\x18\x1a\x1b]")
_STRINGS: Final = frozenset("]PX^_")
_CANCELS: Final = frozenset("\x18\x1a\x1b")
_CONTROLS: Final = re.compile("[\x00-\x1f]")
_NOT_IN_BODY: Final = re.compile("[^ -?]")


class Text(NamedTuple):
    """Characters to draw: no controls, C1 included."""

    text: str


class Control(NamedTuple):
    """One C0 control character other than ESC, CAN and SUB."""

    char: str


class Escape(NamedTuple):
    """ESC, intermediates (often none), final."""

    intermediates: str
    final: str


class Csi(NamedTuple):
    """ESC [, a private prefix of ``<=>?`` (often none), parameters (digits, ``;`` and ``:``), intermediates, final."""

    prefix: str
    parameters: str
    intermediates: str
    final: str

    def numbers(self) -> tuple[int | None, ...]:
        """The parameters as numbers, None where one is left out; of colon forms the first part."""
        if not self.parameters:
            return ()
        parts = (part.partition(":")[0] for part in self.parameters.split(";"))
        return tuple(int(part) if part else None for part in parts)


Part: TypeAlias = Text | Control | Escape | Csi

_SHAPE: Final = re.compile(r"(?P<prefix>[<=>?]*)(?P<parameters>[0-9:;]*)(?P<intermediates>[ -/]*)")


class Splitter:
    """Takes the bytes as they come. Bytes that are not UTF-8 become U+FFFD; C1 controls vanish."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # Invariant: empty, or one sequence begun and not ended, without controls, at most MAX_BODY + 3 characters.
        self._begun = ""
        # The letter of the string whose payload is being dropped; empty outside of one.
        self._string = ""

    def feed(self, data: bytes) -> Iterator[Part]:
        """The parts that are complete by now. The iterator must be used up before the next call."""
        text = self._begun + self._decoder.decode(data)
        self._begun = ""
        position = 0
        while position < len(text):
            if self._string:
                position = self._skip_string(text, position)
            elif found := _TEXT.match(text, position):
                position = found.end()
                yield Text(found[0])
            elif text[position] == "\x1b":
                position = yield from self._sequence(text, position)
            else:
                char = text[position]
                position += 1
                if char < " " and char not in _CANCELS:
                    yield Control(char)

    def _skip_string(self, text: str, position: int) -> int:
        """Where the payload ends: after BEL, CAN and SUB, before an ESC; the end of the text when it goes on."""
        found = _ENDS_STRING.get(self._string, _ENDS_OTHER).search(text, position)
        if found is None:
            return len(text)
        self._string = ""
        return found.start() if found[0] == "\x1b" else found.end()

    def _sequence(self, text: str, position: int) -> Generator[Part, None, int]:
        """Yield the sequence that begins at `position`, controls within it first; returns where it ends."""
        found = _ESCAPE.match(text, position)
        assert found is not None
        body, final = found["body"], found["final"]
        if body:
            yield from _controls(body)
            body = _NOT_IN_BODY.sub("", body)
        if not final:
            self._begun = "\x1b" + body[: MAX_BODY + 1]
        elif final in _CANCELS:
            return found.end() - (final == "\x1b")
        elif not body and final == "[":
            return (yield from self._csi(text, found.end()))
        elif not body and final in _STRINGS:
            self._string = final
        elif len(body) <= MAX_BODY:
            yield Escape(body, final)
        return found.end()

    def _csi(self, text: str, position: int) -> Generator[Part, None, int]:
        """As `_sequence`, for what stands after ``ESC [``."""
        found = _CSI.match(text, position)
        assert found is not None
        body, final = found["body"], found["final"]
        if body and _NOT_IN_BODY.search(body):
            yield from _controls(body)
            body = _NOT_IN_BODY.sub("", body)
        if not final:
            self._begun = "\x1b[" + body[: MAX_BODY + 1]
        elif final in _CANCELS:
            return found.end() - (final == "\x1b")
        elif len(body) <= MAX_BODY and (shape := _SHAPE.fullmatch(body)):
            yield Csi(shape["prefix"], shape["parameters"], shape["intermediates"], final)
        return found.end()


def _controls(body: str) -> Iterator[Part]:
    return (Control(char) for char in _CONTROLS.findall(body))
