"""Splits what an agent writes on its stdout into messages and stray text.

A line that begins with `{` is kept until it ends; it is a message when it holds one JSON object. Everything else is
stray: programs print banners, warnings and progress where only messages belong. Stray text is passed on as it comes, so
that none waits for a line end.
"""

import json
import re

# Agents put whole files into one message. Beyond this a line is no message any more, and nobody could keep it.
MAX_LINE_BYTES = 16 << 20

_OPENS_AT_ONCE = re.compile(rb"[ \t\r]*\{")
_OPENS_LATER = re.compile(rb"\n[ \t\r]*\{")
_BLANK = b" \t\r"

Message = dict[str, object]


class Lines:
    """`feed` returns what was completed, in order: bytes are stray text, a dict is a message.

    `failure` is empty, or why nothing more can be read: a line of more than `max_bytes`. Memory is bounded by that.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._line: bytearray | None = None  # a message so far
        self._is_start = True  # only blanks came since the last line end
        self.failure = ""

    def feed(self, data: bytes) -> "list[bytes | Message]":
        pieces: list[bytes | Message] = []
        at = 0
        while at < len(data) and not self.failure:
            at = self._kept(data, at, pieces) if self._line is not None else self._stray(data, at, pieces)
        return pieces

    def end(self) -> bytes:
        """What stands in an unfinished line when nothing more will come."""
        line, self._line = self._line, None
        return bytes(line or b"")

    def _stray(self, data: bytes, at: int, pieces: "list[bytes | Message]") -> int:
        """Pass on stray text up to the next line that may be a message; returns where to go on."""
        match = _OPENS_AT_ONCE.match(data, at) if self._is_start else None
        opens = match.end() - 1 if match else -1
        if opens < 0:
            match = _OPENS_LATER.search(data, at)
            opens = match.end() - 1 if match else len(data)
        text = data[at:opens]
        if text:
            pieces.append(text)
        newline = text.rfind(b"\n")
        self._is_start = (self._is_start or newline >= 0) and not text[newline + 1 :].strip(_BLANK)
        if opens < len(data):
            self._line = bytearray()
        return opens

    def _kept(self, data: bytes, at: int, pieces: "list[bytes | Message]") -> int:
        assert self._line is not None
        end = data.find(b"\n", at)
        stop = len(data) if end < 0 else end + 1
        self._line += data[at:stop]
        if len(self._line) > self._max_bytes:
            self._line = None
            self.failure = f"a line of more than {self._max_bytes >> 20} MiB"
        elif end >= 0:
            pieces.append(_parsed(bytes(self._line)))
            self._line, self._is_start = None, True
        return stop


def _parsed(line: bytes) -> "bytes | Message":
    """The message in the line; the line itself when it holds none."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return line
    return message if isinstance(message, dict) else line
