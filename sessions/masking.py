"""Where output may be cut, so that no reader ever gets one half of a secret, a character or a control sequence.

`redact` masks what is complete. This module looks at the end of what is known so far: what stands there may be the
beginning of something whose rest was not printed yet, and is then held back. Runs in hosts: stdlib only.
"""

import re

from coordinate_agents.sessions.redact import MAX_MATCH, Redactor, hints

# Bytes of a secret that are there while its shape is not complete yet, at the very end of the data. A header or the
# scheme of an address is no secret: only what comes behind it is held back.
_TOKEN = (
    rb"(?<![A-Za-z0-9_])(?:gh[pousr]_|github_pat_|glpat-|sk-|[rs]k_live_|[rs]k_test_|xox[abeoprs]-|AKIA|ASIA|AIza|npm_"
    rb"|pypi-|hf_|eyJ)[A-Za-z0-9_.-]{0,16384}\Z"
)
_ADDRESS = rb"://[^\s/:@\"'<>]{0,256}:([^\s/@\"'<>]{1,512})\Z"
_KEY = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----BEGIN)){0,16384}\Z"
_LONGEST_SEQUENCE = 4096
_COMPLETE_SEQUENCE = rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"


def open_start(redactor: Redactor, data: bytes, spans: list[tuple[int, int]]) -> int:
    """Where the data must be cut because a secret may go on behind its end; its length when none does.

    `spans` are those of `redactor.spans(data)`: one that touches the end may grow.
    """
    first = redactor.literal_opening(data)
    near = data[-MAX_MATCH:]
    base = len(data) - len(near)
    for expression, group, hint in ((_TOKEN, 0, b""), (_ADDRESS, 1, b"://"), (_KEY, 0, b"-----BEGIN")):
        if (not hint or hint in near) and (match := re.search(expression, near)) is not None:
            first = min(first, base + match.start(group))
    for start, end in reversed(spans):
        if end == len(data) or start < first < end:
            first = min(first, start)
    return first


def undecided(redactor: Redactor, data: bytes) -> int:
    """As `open_start`, for a stream that never looks back: also the beginning of a header or a hint is held back."""
    line = data.rfind(b"\n") + 1
    first = redactor.literal_opening(data)
    for hint in hints():
        at = data.find(hint, 0 if hint == b"-----BEGIN" else line)
        if at < 0:
            at = _prefix_at_end(data, hint)
        first = min(first, max(0, at - 8) if at >= 0 else first)
    return first


def character_end(data: bytes) -> int:
    """The length of the data without an unfinished UTF-8 character at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < length and byte < 0xF8 else len(data)
    return len(data)


def sequence_end(data: bytes) -> int:
    """The length of the data without an unfinished control sequence, or a CR whose LF may follow, at its end."""
    if data.endswith(b"\r"):
        data = data.rstrip(b"\r")
        return len(data)
    at = data.rfind(b"\x1b", max(0, len(data) - _LONGEST_SEQUENCE))
    if at < 0 or re.match(_COMPLETE_SEQUENCE, data[at:], re.DOTALL):
        return len(data)
    if data[at : at + 2] in (b"\x1b]", b"\x1bP", b"\x1bX", b"\x1b^", b"\x1b_") and b"\n" in data[at:]:
        return len(data)  # never ended; it hides no more than its line
    return at if re.fullmatch(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07]*|[ -/]*)", data[at:], re.DOTALL) else len(data)


def _prefix_at_end(data: bytes, word: bytes) -> int:
    for length in range(min(len(word) - 1, len(data)), 0, -1):
        if data.endswith(word[:length]):
            return len(data) - length
    return -1
