"""What a screen shows: expected text written out. test_screen_tmux.py compares with a real terminal."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinate_agents.sessions.screen import MAX_BYTES, MAX_SIDE, Screen, render


def lines(text: str, columns: int = 20, rows: int = 4) -> tuple[str, ...]:
    return render(text.encode(), columns, rows).lines


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("plain\r\ntext", ("plain", "text", "", "")),
        ("over\rO\x1b[2CR", ("OveR", "", "", "")),
        ("\x1b[1;31mred\x1b[38;2;1;2;3m \x1b[38:2::1:2:3mcolon\x1b[4:3m!", ("red colon!", "", "", "")),
        ("a\x1b]0;title\x07b\x1b]52;c;c2VjcmV0\x1b\\c\x1b]8;;http://x\x1b\\d", ("abcd", "", "", "")),
        ("a\x1bPq#0;2\x1b\\b\x1b_Gi=1\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", ("abcde", "", "", "")),
        ("a\x1b[?2026hb\x1b[>4;2mc\x1b[=1ud\x1b[?u\x1b[>qe\x1b[18tf\x1b[6ng", ("abcdefg", "", "", "")),
        ("\N{FAMILY}👩‍👩‍👧‍👦 and ❤️ a👍🏽.", ("👪👩‍👩‍👧‍👦 and ❤️ a👍🏽.", "", "", "")),
        ("e\u0301a\u0308\u0323 x", ("e\u0301a\u0308\u0323 x", "", "", "")),
        ("\x1b(0lqqk\x1b(B ok\r\n\x1b)0\x0ex\x0fx", ("┌──┐ ok", "│x", "", "")),
        ("\ta\tb\x1b[3g\x1b[5G\x1bH\r\tc", ("    c   a       b", "", "", "")),
        ("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n", ("1", "3", "", "4")),
        ("1\r\n2\r\n3\x1b[2;1H\x1b[L", ("1", "", "2", "3")),
        ("1\r\n2\r\n3\x1b[1;1H\x1b[2M", ("3", "", "", "")),
        ("abcdef\x1b[3G\x1b[2@\x1b[1G\x1b[P", ("b  cdef", "", "", "")),
        ("abcdef\x1b[3G\x1b[2X\x1b[6G\x1b[K", ("ab  e", "", "", "")),
        ("a\x1b[4b\x1b[2;2Hx\x1b[A\x1b[1K", ("   aa", " x", "", "")),
        ("\x9b31mnot a sequence\x85", ("31mnot a sequence", "", "", "")),
    ],
)
def test_sequences_act_and_are_never_shown(printed: str, shown: tuple[str, ...]) -> None:
    assert lines(printed) == shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("12345678\x1b[5G\x1b[4@", ("1234", "")),
        ("12345678\x1b[1G\x1b[99@x", ("x", "")),
        ("12345678ab\r\b\b!", ("12345678", "!b")),
    ],
)
def test_where_tmux_parts_from_terminals_the_screen_does_not_follow(printed: str, shown: tuple[str, ...]) -> None:
    assert lines(printed, 8, 2) == shown


def test_text_wraps_at_the_right_edge_and_the_screen_scrolls() -> None:
    assert lines("0123456789" * 5 + "end", 10, 3) == ("0123456789", "0123456789", "end")
    assert lines("\x1b[?7l" + "0123456789abc", 10, 2) == ("012345678c", "")


def test_wide_character_at_the_right_edge_goes_to_the_next_line() -> None:
    assert lines("123456789漢x", 10, 2) == ("123456789", "漢x")
    assert lines("12345678漢x", 10, 2) == ("12345678漢", "x")


def test_half_overwritten_wide_character_becomes_a_blank() -> None:
    assert lines("漢字\x1b[2Gx", 10, 1) == (" x字",)
    assert lines("漢字\x1b[3Gx", 10, 1) == ("漢x",)


@pytest.mark.parametrize("mode", ["47", "1047", "1049"])
def test_alternate_screen_is_its_own_and_the_first_one_comes_back(mode: str) -> None:
    during = render(f"kept\r\n\x1b[?{mode}h\x1b[2J\x1b[Hmenu".encode(), 10, 2)
    assert during == Screen(("menu", ""), 0, 4, is_alternate=True)
    after = render(f"kept\r\n\x1b[?{mode}h\x1b[2J\x1b[Hmenu\x1b[?{mode}l".encode(), 10, 2)
    assert (after.lines, after.is_alternate) == (("kept", ""), False)
    assert (after.cursor_row, after.cursor_column) == ((1, 0) if mode == "1049" else (0, 4))


def test_character_cut_at_the_end_is_left_out_and_bad_bytes_are_marked() -> None:
    assert render("ok ✓".encode()[:-1], 10, 1).lines == ("ok",)
    assert render(b"caf\xe9 \xff\xfe.", 10, 1).lines == ("caf\ufffd \ufffd\ufffd.",)


def test_sizes_beyond_reason_are_brought_within() -> None:
    assert render(b"ab", 0, 0) == Screen(("b",), 0, 0)
    assert render("漢a".encode(), 1, -5) == Screen(("a",), 0, 0)
    huge = render(b"x", 10**9, 10**9)
    assert (len(huge.lines), huge.lines[0]) == (MAX_SIDE, "x")


def test_text_is_the_lines_without_the_empty_ones_below() -> None:
    assert render(b"\r\n\r\na\r\n\r\n", 10, 6).text == "\n\na"


def test_everything_before_a_full_reset_is_forgotten() -> None:
    assert render(b"\x1b[?1049h\x1b[2;3r\x1b(0old\x1bcqnew", 10, 2) == Screen(("qnew", ""), 0, 4)


def test_of_too_much_output_the_end_is_drawn() -> None:
    data = b"\x1b[?1049h" + b"old " * MAX_BYTES + b"\r\n\x1b[31mred\r\nlast\r\n"
    assert render(data, 10, 3) == Screen(("red", "last", ""), 2, 0, is_alternate=True)
    data = b"\x1b[?1049h\x1b[?1049l" + b"old " * MAX_BYTES + b"\r\nlast"
    assert not render(data, 10, 3).is_alternate


@pytest.mark.parametrize("unit", [b"x", b"\n", b"\x1b[@", b"\x1b#8", b"\x1b", b"\x1b[1", "\u0301".encode()])
def test_fifty_megabytes_of_anything_take_bounded_time(unit: bytes) -> None:
    data = unit * (50_000_000 // len(unit))
    start = time.process_time()
    render(data, 200, 60)
    # One to four seconds here; what is unbounded takes minutes.
    assert time.process_time() - start < 30


@given(st.binary(max_size=400), st.integers(1, 12), st.integers(1, 5))
def test_any_bytes_make_a_whole_screen(data: bytes, columns: int, rows: int) -> None:
    screen = render(data, columns, rows)
    assert len(screen.lines) == rows
    assert 0 <= screen.cursor_row < rows
    assert 0 <= screen.cursor_column < columns
    assert not [c for c in "".join(screen.lines) if c < " " or "\x7f" <= c < "\xa0"]


_PIECES = st.sampled_from(
    [
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b",
        b"2;2H",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[2;3r",
        b"\x1b[?7l",
        b"\x1b[?7h",
        b"\x1b[4h",
    ]
)


@given(st.lists(_PIECES | st.binary(max_size=3) | st.just("字ab".encode()), max_size=40).map(b"".join))
@example("字字0\x1b[?7l0".encode())
def test_any_sequences_make_a_whole_screen(data: bytes) -> None:
    screen = render(data, 5, 4)
    assert len(screen.lines) == 4
    assert not [c for c in "".join(screen.lines) if c < " " or "\x7f" <= c < "\xa0"]
