"""Foreign text on a terminal: one line, bounded, nothing that acts or hides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.text import clipped, counted, listed, visible, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("naïve ✓🙂 日本語", "naïve ✓🙂 日本語"),
        ("two\nlines\r\n\tend", "two\\nlines\\r\\n\\tend"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
        ("\x9b31m", "\\x9b31m"),  # the one-byte CSI
        ("nul\0del\x7f", "nul\\x00del\\x7f"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("\u2066iso\u2069", "\\u2066iso\\u2069"),
        ("a\u200bb\u200dc\ufeffd\u00ade", "a\\u200bb\\u200dc\\ufeffd\\xade"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("no\u00a0break", "no\\xa0break"),
        ("\U000e0041tag", "\\U000e0041tag"),
        ("e\u0301", "e\u0301"),
        ("\u0301e", "\\u0301e"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("a\ufe01", "a\\ufe01"),
        ("hangul\u3164filler", "hangul\\u3164filler"),
        ("\ue000private", "\\ue000private"),
        ("byte\udcff", "byte\\xff"),
        ("lone\ud800", "lone\\ud800"),
        ("lone\udd00", "lone\\udd00"),
        (b"caf\xc3\xa9 \xff", "café \\xff"),
        ("C:\\path", "C:\\path"),
        ("", ""),
    ],
)
def test_characters_that_act_or_hide_become_visible(text: str | bytes, shown: str) -> None:
    assert visible(text) == shown


def test_stacked_marks_stop_after_four() -> None:
    assert visible("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "\\u0301\\u0301"


def test_long_text_is_cut_and_says_so() -> None:
    assert visible("x" * 11, limit=10) == "x" * 9 + "…"
    assert visible("x" * 10, limit=10) == "x" * 10
    assert visible(b"\xc3\xa9" * 11, limit=10) == "é" * 9 + "…"


@given(text=st.text(), limit=st.integers(1, 40))
def test_any_text_becomes_one_bounded_harmless_line(text: str, limit: int) -> None:
    shown = visible(text, limit=limit)
    assert len(shown) <= limit
    assert all(char == " " or unicodedata.category(char)[0] not in "CZ" for char in shown)
    assert visible(shown, limit=limit) == shown


@given(raw=st.binary(), limit=st.integers(1, 40))
def test_any_bytes_become_one_bounded_harmless_line(raw: bytes, limit: int) -> None:
    shown = visible(raw, limit=limit)
    assert shown == visible(raw.decode("utf-8", "surrogateescape"), limit=limit)


def test_last_lines_are_kept_and_the_rest_counted() -> None:
    assert visible_lines("a\nb\x07\nc\n", max_lines=2) == ("… 1 earlier line", "b\\x07", "c")
    assert visible_lines("a\nb", max_lines=2) == ("a", "b")
    assert visible_lines("a\nb", max_lines=1) == ("… 1 earlier line", "b")
    assert visible_lines("", max_lines=2) == ()
    assert visible_lines("a\nb", max_lines=0) == ("… 2 earlier lines",)


def test_names_are_listed_as_a_person_would() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert listed(["a\n", "b"], total=40) == "a\\n, b and 38 more"
    assert counted(1, "file") == "1 file"
    assert counted(0, "file") == "0 files"


def test_clipped_text_never_ends_within_a_character() -> None:
    assert clipped("éé", 4) == "éé"
    assert clipped("ééé", 5) == "é…"
    assert clipped("abc", 3) == "abc"
    assert clipped("x\udc80", 10) == "x\udc80"
