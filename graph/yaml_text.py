"""Bytes of a document to text: which encodings are read, and where the first bad byte stands.

UTF-8 with or without a byte order mark, and UTF-16 with one. Everything else is refused with a position, because a
guessed encoding would put wrong words into an agent's prompt. Never reads files and never looks at YAML.
"""

import codecs
from typing import Final

from coordinate_agents.graph.errors import Problem

MAX_DOCUMENT_BYTES: Final = 64 << 20

_UTF16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32_MARKS: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


def decode(data: bytes) -> str | Problem:
    """The text without its byte order mark, or the one problem that keeps it from being read."""
    if len(data) > MAX_DOCUMENT_BYTES:
        return Problem(1, 1, "", f"the file has {len(data)} bytes; at most {MAX_DOCUMENT_BYTES} (64 MiB) are read")
    if data.startswith(_UTF32_MARKS) or not data.startswith(_UTF16_MARKS):
        return _decode_utf8(data)
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        return Problem(1, 1, "", f"byte {error.start} is not valid UTF-16 ({error.reason}); save the file as UTF-8")
    return _without_nul(text)


def position(text: str, index: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at `index`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _decode_utf8(data: bytes) -> str | Problem:
    if data.startswith(_UTF32_MARKS):
        return Problem(1, 1, "", "the file is UTF-32; save it as UTF-8")
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[start : start + error.start].decode("utf-8")
        line, column = position(before, len(before))
        bad = data[start + error.start]
        return Problem(
            line,
            column,
            "",
            f"byte {start + error.start} (0x{bad:02X}) is not UTF-8; is the file Latin-1? Save it as UTF-8",
        )
    return _without_nul(text)


def _without_nul(text: str) -> str | Problem:
    index = text.find("\0")
    if index < 0:
        return text
    line, column = position(text, index)
    return Problem(line, column, "", "a NUL character; remove it (is this UTF-16 without a byte order mark?)")
