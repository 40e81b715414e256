"""Where output may be cut, so that no reader ever gets one half of a secret, a character or a control sequence.

`redact` masks what is complete. This module looks at the end of what is known so far: what stands there may be the
beginning of something whose rest was not printed yet, and is then held back. Runs in hosts: stdlib only.
"""

import re

from coordinate_agents.sessions.between import STAYING, Shown, compiled, has_controls, shown_text, without_unfinished
from coordinate_agents.sessions.redact import MAX_MATCH, Redactor
from coordinate_agents.sessions.shapes import KEY_OPENING, hints

# Bytes of a secret that are there while its shape is not complete yet, at the very end of the data. A header or the
# scheme of an address is no secret: only what comes behind it is held back.
_TOKEN = (
    rb"(?<![A-Za-z0-9_])(?:gh[pousr]_|github_pat_|glpat-|sk-|[rs]k_live_|[rs]k_test_|xox[abeoprs]-|AKIA|ASIA|AIza|npm_"
    rb"|pypi-|hf_|eyJ)[A-Za-z0-9_.-]{0,16384}\Z"
)
# All that it is made of.
_TOKEN_LETTERS = bytes((*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B))) + b"_.-"
_ADDRESS = rb"://[^\s/:@\"'<>]{0,256}:([^\s/@\"'<>]{1,512})\Z"
_KEY = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----BEGIN)){0,16384}\Z"
_LONGEST_SEQUENCE = 4096
_BEGIN = rb"\x1b|\xc2[\x90\x98\x9b\x9d-\x9f]"
_CSI = rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*"
_STRING = rb"(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])"
_COMPLETE_SEQUENCE = rb"%b[@-~]|%b[^\x07\x1b]*?(?:\x07|\x1b\\|\xc2\x9c)|\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\`-~])" % (
    _CSI,
    _STRING,
)
_CUT_SEQUENCE = rb"%b|%b[^\x07]*|\x1b[ -/]*" % (_CSI, _STRING)


def open_start(redactor: Redactor, data: bytes, spans: list[tuple[int, int]]) -> int:
    """Where the data must be cut because a secret may go on behind its end; its length when none does.

    `spans` are those of `redactor.spans(data)`: one that touches the end may grow.
    """
    first = redactor.literal_opening(data)
    near = data[-MAX_MATCH:]
    base = len(data) - len(near)
    first = min(first, base + _opening(near))
    end = len(data)
    if has_controls(near):
        ended = without_unfinished(near)
        text = shown_text(ended)
        if spans or _opening(text) < len(text):
            shown = Shown(ended, STAYING)
            at = _opening(shown.text)
            first = min(first, base + shown.place(at)) if at < len(shown.text) else first
            # What follows behind a sequence still belongs to the part before it.
            end = base + shown.place(len(shown.text) - 1) + 1 if shown.text else base
    for start, stop in reversed(spans):
        if stop >= end or start < first < stop:
            first = min(first, start)
    return first


def _opening(near: bytes) -> int:
    """Where in the data a secret begins of which more may come; its length when none does."""
    first = len(near)
    token = compiled(_TOKEN).search(near, len(near.rstrip(_TOKEN_LETTERS)))
    if token is not None:
        first = token.start()
    for expression, group, hint in ((_ADDRESS, 1, b"://"), (_KEY, 0, KEY_OPENING)):
        if hint in near and (match := re.search(expression, near)) is not None:
            first = min(first, match.start(group))
    return first


def undecided(redactor: Redactor, data: bytes) -> int:
    """As `open_start`, for a stream that never looks back: also the beginning of a header or a hint is held back."""
    first = min(redactor.literal_opening(data), _first_hint(data))
    if has_controls(data):
        ended = without_unfinished(data)
        text = shown_text(ended)
        if _first_hint(text) < len(text):
            shown = Shown(ended, STAYING)
            at = _first_hint(shown.text)
            first = min(first, shown.place(at)) if at < len(shown.text) else first
    return first


def _first_hint(data: bytes) -> int:
    """Where what may lead to a shape begins; the length of the data when nothing does."""
    line = data.rfind(b"\n") + 1
    first = len(data)
    for hint in hints():
        at = data.find(hint, 0 if hint == KEY_OPENING else line)
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
    at = max((match.start() for match in re.finditer(_BEGIN, data[-_LONGEST_SEQUENCE:])), default=-1)
    if at < 0 or re.match(_COMPLETE_SEQUENCE, data[-_LONGEST_SEQUENCE:][at:], re.DOTALL):
        return len(data)
    at += max(0, len(data) - _LONGEST_SEQUENCE)
    if b"\n" in data[at:] and re.match(_STRING, data[at:]):
        return len(data)  # never ended; it hides no more than its line
    return at if re.fullmatch(_CUT_SEQUENCE, data[at:], re.DOTALL) else len(data)


def _prefix_at_end(data: bytes, word: bytes) -> int:
    for length in range(min(len(word) - 1, len(data)), 0, -1):
        if data.endswith(word[:length]):
            return len(data) - length
    return -1
