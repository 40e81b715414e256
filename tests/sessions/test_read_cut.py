"""Where reads may be cut: whatever the pieces, secrets are masked whole and nothing else changes. Pure."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions import reading
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.host.ring import Ring
from coordinate_agents.sessions.plain import decode, plain
from coordinate_agents.sessions.redact import Redactor
from coordinate_agents.sessions.spool import Spool

SECRET = "correct-horse-battery"
TOKEN = "ghp_" + "a1B2" * 10
WORDS = [
    SECRET,
    f" {TOKEN}",
    "Authorization: Bearer abcdef\n",
    "\x1b[31mred\x1b[0m ",
    "\x1b]0;a title\x07",
    "✓🙂é ",
    "one\r\n",
    "two\n",
    "correct-",
    "ghp_x ",
    "Continue? [y/N] ",
    "x" * 50,
    "https://me:pass@host/ ",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map("".join).map(str.encode)


def read_all(source: Ring | Spool, form: str = "raw", max_bytes: int = 64) -> tuple[bytes, int]:
    """Everything that a follower gets, and its cursor."""
    out, cursor = b"", 0
    while True:
        result = reading.read(source, cursor=cursor, max_bytes=max_bytes, max_lines=None, form=form)
        assert result.dropped_bytes == 0
        assert result.cursor == cursor
        if result.next_cursor == cursor:
            return out, cursor
        out, cursor = out + result.data, result.next_cursor


@given(text=TEXTS, cuts=st.lists(st.integers(1, 40), max_size=30), max_bytes=st.sampled_from([16, 33, 64, 4096]))
def test_stream_read_while_it_is_printed_shows_no_secret_and_changes_nothing_else(
    text: bytes, cuts: list[int], max_bytes: int
) -> None:
    ring = Ring(64 << 10, Redactor([SECRET]))
    out, cursor, at = b"", 0, 0
    for cut in [*cuts, len(text)]:
        ring.add(text[at : at + cut])
        at += cut
        ring.is_over = at >= len(text)
        while True:
            result = reading.read(ring, cursor=cursor, max_bytes=max_bytes, max_lines=None, form="raw")
            if result.next_cursor == cursor:
                break
            out, cursor = out + result.data, result.next_cursor
            result.data.decode()  # no character is cut
        if ring.is_over:
            break
    assert (cursor, result.ended) == (len(text), True)
    assert SECRET.encode() not in out
    assert TOKEN.encode() not in out
    assert b"pass" not in out
    assert _without_masks(out) == _without_masks(Redactor([SECRET]).redact(text))


def _without_masks(data: bytes) -> bytes:
    """A hint alone, such as `ghp_`, is no secret: it may stand before the mask of the token that it began."""
    return re.sub(rb"(?:(?<= )g(?:h(?:p_?)?)?)?(?:\[redacted\])+", b"[redacted]", data)


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_secret_cut_over_two_reads_is_held_back_and_masked_once(cut: int) -> None:
    ring = Ring(64 << 10, Redactor([SECRET]))
    ring.add(b"say " + SECRET.encode()[:cut])
    first = reading.read(ring, cursor=0, max_bytes=4096, max_lines=None, form="plain")
    assert (first.data, first.next_cursor) == (b"say ", 4)
    ring.add(SECRET.encode()[cut:] + b" now")
    second = reading.read(ring, cursor=4, max_bytes=4096, max_lines=None, form="plain")
    assert (second.data, second.next_cursor) == (b"[redacted] now", 4 + len(SECRET) + 4)


def test_prompt_without_a_line_end_is_shown_at_once() -> None:
    ring = Ring(64 << 10, Redactor([SECRET]))
    ring.add(b"Trust this folder? [y/N] ")
    assert (
        reading.read(ring, cursor=0, max_bytes=4096, max_lines=None, form="plain").data == b"Trust this folder? [y/N] "
    )


def test_bytes_that_fell_out_of_the_ring_are_counted_and_half_a_secret_is_masked() -> None:
    ring = Ring(64 << 10, Redactor([SECRET]))
    ring.add(b"x" * 1000 + SECRET.encode() + b"y" * ((64 << 10) - 5))
    result = reading.read(ring, cursor=10, max_bytes=100, max_lines=None, form="raw")
    assert result.cursor == 1000 + len(SECRET) - 5
    assert result.dropped_bytes == result.cursor - 10
    assert result.data == b"[redacted]" + b"y" * 95
    assert result.truncated


@pytest.mark.parametrize(("lines", "cursor", "text"), [(2, 0, "a\nb\n"), (2, None, "c\nd"), (9, None, "a\nb\nc\nd")])
def test_lines_bound_a_read_from_either_end(lines: int, cursor: int | None, text: str) -> None:
    ring = Ring(64 << 10, Redactor())
    ring.add(b"a\r\nb\nc\nd")
    result = reading.read(ring, cursor=cursor, max_bytes=4096, max_lines=lines, form="plain")
    assert result.text("plain") == text


@given(text=TEXTS, cuts=st.lists(st.integers(1, 40), max_size=30))
def test_plain_text_is_the_same_however_it_was_read(text: bytes, cuts: list[int]) -> None:
    ring = Ring(64 << 10, Redactor())
    out, cursor, at = "", 0, 0
    for cut in [*cuts, len(text)]:
        ring.add(text[at : at + cut])
        at += cut
        ring.is_over = at >= len(text)
        result = reading.read(ring, cursor=cursor, max_bytes=4096, max_lines=None, form="plain")
        out, cursor = out + result.text("plain"), result.next_cursor
    whole = plain(decode(Redactor().redact(text)))
    assert _without_masks(out.encode()) == _without_masks(whole.encode())


@given(text=TEXTS, cuts=st.lists(st.integers(1, 40), max_size=30), settles=st.booleans())
def test_spool_gives_what_the_ring_gave_at_every_cursor(text: bytes, cuts: list[int], settles: bool) -> None:
    path = Path(os.environ["HOME"]) / "spool"
    path.mkdir(exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    folder = folders.open_folder(str(path))
    output = Output(folder, folders.OUTPUT, ring_bytes=64 << 10, log_bytes=1 << 20, redactor=Redactor([SECRET]))
    at = 0
    for cut in [*cuts, len(text)]:
        output.add(text[at : at + cut])
        at += cut
        if settles:
            output.settle()
            with Spool(folder) as spool:  # as after the death of the host, at any moment
                assert SECRET.encode() not in read_all(spool)[0]
    output.finish()
    with Spool(folder) as spool:
        for cursor in range(0, len(text) + 1, 7):
            live = reading.read(output.ring, cursor=cursor, max_bytes=4096, max_lines=None, form="raw")
            kept = reading.read(spool, cursor=cursor, max_bytes=4096, max_lines=None, form="raw")
            assert (kept.data, kept.next_cursor, kept.ended) == (live.data, live.next_cursor, live.ended)
    os.close(folder)


def test_spool_that_was_cut_has_the_beginning_and_the_end_and_counts_what_is_missing(tmp_path: Path) -> None:
    folder = folders.open_folder(str(tmp_path))
    output = Output(
        folder, folders.OUTPUT, ring_bytes=64 << 10, log_bytes=(64 << 10) + 1000, redactor=Redactor([SECRET])
    )
    line = f"a line with {SECRET} in it\n".encode()
    for _ in range(20_000):
        output.add(line)
    output.finish()
    with Spool(folder) as spool:
        first = reading.read(spool, cursor=0, max_bytes=100_000, max_lines=None, form="raw")
        assert first.data.startswith(b"a line with [redacted] in it\na line")
        assert (first.truncated, first.ended) == (True, False)
        rest = reading.read(spool, cursor=first.next_cursor, max_bytes=1 << 20, max_lines=None, form="raw")
        assert rest.dropped_bytes == rest.cursor - first.next_cursor > 0
        assert rest.data.endswith(b"\na line with [redacted] in it\n")
        assert (rest.next_cursor, rest.ended) == (len(line) * 20_000, True)
        assert SECRET.encode() not in first.data + rest.data
    os.close(folder)
