"""Plain text of terminal output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.sessions.plain import decode, last_line, plain, tail


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07a\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x1b]52;c;c2VjcmV0\x07clipboard", "clipboard"),
        ("\x1bPq#0;2;0\x1b\\image", "image"),
        ("a\x1b[2K\x1b[1Gb\x1b(B\x1b=", "ab"),
        ("one\r\ntwo\r\r\nthree\rover", "one\ntwo\nthree\nover"),
        ("tab\tbell\x07back\x08 nul\x00 del\x7f", "tab\tbellback nul del"),
        ("\x9b31mc1\x9d0;t\x9c", "c1"),
        ("a\x1b]0;never ended\nnext", "a\nnext"),
        ("cut \x1b[38;5;", "cut "),
        ("cut \x1b", "cut "),
    ],
)
def test_control_sequences_are_removed_and_text_stays(shown: str, text: str) -> None:
    assert plain(shown) == text


def test_characters_cut_at_either_end_are_left_out() -> None:
    whole = "✓🙂é".encode()
    assert decode(whole[1:-1]) == "🙂"
    assert decode(whole) == "✓🙂é"


def test_bytes_that_are_no_utf8_are_marked() -> None:
    assert decode(b"caf\xe9 ok") == "caf\ufffd ok"


def test_tail_is_bounded_and_never_splits_a_character() -> None:
    text = tail("é".encode() * 10_000, 1001)
    assert text == "é" * 500


def test_last_line_is_the_last_that_shows_something() -> None:
    assert last_line(b"first\r\n\x1b[2Kworking on it\x1b[0m\r\n \r\n\x1b[?25l") == "working on it"
    assert last_line(b"\r\n \x1b[0m") == ""
    assert last_line(b"z" * 500, 10) == "z" * 10


@given(st.binary(max_size=300))
def test_any_bytes_become_text_without_control_characters(data: bytes) -> None:
    text = plain(decode(data))
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
