"""Plain text from terminal output: control sequences removed, UTF-8 never split, bounded.

This is not a screen: what a program drew over stays in the text. It is for tails, last lines and logs read by people.
Runs in hosts: stdlib only.
"""

import codecs
import re

TAIL_BYTES = 8 << 10
LAST_LINE_CHARACTERS = 200

# Compiled when first used (`re` keeps them): a host needs them at its end, not for its start.
_SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|\Z)"  # CSI, also one that was cut at the end
    # OSC, DCS, SOS, PM, APC with their payload; one that never ends hides no more than its line
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|\Z)"
    r"|\x1b[ -/]*(?:[0-~]|\Z)"  # other escapes
)
_CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]"


def decode(data: bytes) -> str:
    """Text of the bytes; what is not UTF-8 becomes U+FFFD. A character cut at either end is left out."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:], final=False)


def plain(text: str) -> str:
    """Without control sequences and control characters; line ends are LF, and CR starts a new line."""
    text = re.sub(_SEQUENCES, "", text)
    text = re.sub(r"\r+\n", "\n", text).replace("\r", "\n")
    return re.sub(_CONTROLS, "", text)


def tail(data: bytes, max_bytes: int = TAIL_BYTES) -> str:
    """The end of the output as plain text of at most `max_bytes` UTF-8 bytes, without blank lines at its end."""
    text = plain(decode(data)).rstrip()
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= max_bytes else decode(encoded[-max_bytes:])


def last_line(data: bytes, max_characters: int = LAST_LINE_CHARACTERS) -> str:
    """The last line that shows something, cut to `max_characters`; empty when there is none."""
    for line in reversed(plain(decode(data)).split("\n")):
        if stripped := line.strip():
            return stripped[:max_characters]
    return ""
