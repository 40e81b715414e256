"""What an agent printed and a person's terminal receives: an allow-list, the same for every way to split the bytes."""

import re

import pytest
from drawing import drawing
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.sessions.screen import render
from coordinate_agents.sessions.terminal import Filter


def passed(data: bytes | str) -> str:
    return Filter().feed(data.encode() if isinstance(data, str) else data).decode()


@pytest.mark.parametrize(
    "drawing",
    [
        "text, tabs\t and lines\r\n\a",
        "漢字 👩‍👩‍👧 ❤️ e\u0301",
        "\x1b[m\x1b[1;31mred\x1b[38:2::1:2:3mx\x1b[38;5;3my\x1b[4:3mz\x1b[0m",
        "\x1b[H\x1b[2;3H\x1b[5A\x1b[B\x1b[C\x1b[D\x1b[E\x1b[F\x1b[7G\x1b[3d\x1b[;5H\x1b[2;f\x1b[`\x1b[a\x1b[e",
        "\x1b[J\x1b[1J\x1b[2J\x1b[K\x1b[1K\x1b[2K\x1b[5X\x1b[2b",
        "\x1b[2;5r\x1b[S\x1b[2T\x1b[L\x1b[M\x1b[3@\x1b[4P\x1bD\x1bE\x1bM\x1b[r",
        "\x1bH\x1b[g\x1b[3g\x1b[I\x1b[Z",
        "\x1b7\x1b8\x1b[s\x1b[u\x1b(0lqk\x1b(B\x0e\x0f\x1b=\x1b>\x1b#8",
        "\x1b[?1h\x1b[?7l\x1b[?25l\x1b[?1049h\x1b[?2004h\x1b[?2026h\x1b[?2026l\x1b[4h\x1b[4l",
        "\x1b[?1000l\x1b[?1006;1003l\x1b[?1004l",
        "\x1b[2 q\x1b[ q\x1b[!p",
    ],
)
def test_what_draws_passes_unchanged(drawing: str) -> None:
    assert passed(drawing) == drawing


@pytest.mark.parametrize(
    "acting",
    [
        "\x1b]0;title\x07",
        "\x1b]2;title\x1b\\",
        "\x1b]52;c;c2VjcmV0\x07",
        "\x1b]8;;http://evil.example\x1b\\",
        "\x1b]9;notify\x07\x1b]777;notify;a;b\x07\x1b]1337;File=:AAAA\x07\x1b]50;#1\x07\x1b]4;1;?\x07\x1b]10;?\x07",
        "\x1bP+q544e\x1b\\\x1bP$qm\x1b\\\x1bPq#0;2\x1b\\\x1bPtmux;\x1b\x1b]52;c;QQ==\x07\x1b\\",
        "\x1b_Ga=T;AAAA\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\",
        "\x1b[c\x1b[>c\x1b[=c\x1b[0c\x1bZ\x05",
        "\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n\x1b[?996n",
        "\x1b[?1$p\x1b[4$p\x1b[>q\x1b[>0q\x1b[x\x1b['|\x1b[#y\x1b[1;1;1;1;1*y",
        "\x1b[18t\x1b[21t\x1b[3;0;0t\x1b[22;0t\x1b[8;5;5t\x1b[1t\x1b[>2T",
        "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?1015h\x1b[?9h\x1b[?1004h\x1b[?1001h\x1b[?1016h",
        "\x1b[1;2;3;4;5T\x1b[5i\x1b[4i\x1b[?5i\x1b[0;1s",
        "\x1b[>4;2m\x1b[?4m\x1b[>1u\x1b[=5;1u\x1b[<u\x1b[?u",
        "\x1b[?3h\x1b[?40h\x1b[?69h\x1b[?80h\x1b[?1034h\x1b[?2031h\x1b[?9001h\x1b[2h\x1b[12l",
        "\x1b[3J\x1b[03J\x1b[?J\x1b[?3J",
        "\x1b[1;1;3;3;1;2;2;1$v\x1b[65;1;1;9;9$x\x1b[1;2'}\x1b[2*x\x1b[1\"q\x1b[1#p",
        "\x1bn\x1bo\x1bN\x1bO\x1b~\x1b}\x1b|\x1b%@\x1b%G\x1b#3\x1b#6\x1b F\x1b*0\x1b-A\x1bl\x1bm\x1b9\x1b6\x1bV\x1bW",
        "\x9b\x9d\x9c\x90\x85\x84\x8d\x9a\x80\x9f",
        "\x00\x01\x02\x03\x04\x06\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1c\x1d\x1e\x1f\x7f",
        "\u202e\u2066\u2069\u200f\u2028\u2029",
        "\x1b[999999A\x1b[1:2H\x1b[1;2;3H\x1b[" + "1;" * 300 + "H\x1b[" + "1" * 10_000 + "A",
        "\x1b[<1h\x1b[1<h\x1b[?1?h\x1b[?1:2h",
    ],
)
def test_what_acts_is_dropped(acting: str) -> None:
    assert passed(f"a{acting}b") == "ab"


def test_modes_that_may_pass_are_kept_of_several() -> None:
    assert passed("\x1b[?25;1000;2004h\x1b[?1000;1049l") == "\x1b[?25;2004h\x1b[?1000;1049l"


def test_controls_inside_a_sequence_come_before_it() -> None:
    assert passed("\x1b[3\r\x05\x7f1m") == "\r\x1b[31m"
    assert passed("\x1b[3\x1b[2Jx") == "\x1b[2Jx"
    assert passed("\x1b[3\x18Jx") == "Jx"


def test_full_reset_becomes_its_part_on_the_screen() -> None:
    assert passed("\x1bc") == "\x1b[!p\x1b[m\x1b(B\x1b)B\x0f\x1b[?7h\x1b[?25h\x1b[H\x1b[2J"


def test_bytes_that_are_no_text_are_marked() -> None:
    assert passed(b"caf\xe9 \x9b31mx \xff") == "caf\ufffd \ufffd31mx \ufffd"


def test_string_that_never_ends_is_never_kept() -> None:
    one = Filter()
    for _ in range(100):
        assert one.feed(b"\x1b]52;c;" + b"A" * 10_000) == b""
    assert one.feed(b"\x07text") == b"text"


def test_leaving_turns_off_what_was_turned_on() -> None:
    one = Filter()
    one.feed(b"\x1b[?1049h\x1b[2;3r\x1b[?25l\x1b(0")
    left = one.leave().decode()
    assert left.endswith("\x1b[?6l\x1b[r\x1b[9999H\x1b[?1049l\r\n")
    for each in ("\x1b[?25h", "\x1b[?2004l", "\x1b[?1l", "\x1b[m", "\x1b(B", "\x1b[?7h", "\x1b[4l", "\x1b>"):
        assert each in left
    assert "1049" not in one.leave().decode()
    assert "1049" not in Filter().leave().decode()


# Every sequence that a terminal may receive, written a second time and differently from the filter.
_SAFE = re.compile(
    r"[^\x00-\x1f\x7f-\x9f]|[\x07-\x0f]"
    r"|\x1b[78DEHM=>]|\x1b#8|\x1b[()][0AB]"
    r"|\x1b\[[0-9:;]*m"
    r"|\x1b\[[0-9;]*[@-IKLMPSTXZ`abdefgr]|\x1b\[[0-2;]*J|\x1b\[[su]"
    r"|\x1b\[(?:4|20)(?:;(?:4|20))*[hl]"
    r"|\x1b\[\?(?:1|6|7|12|25|47|1047|1048|1049|2004|2026)(?:;(?:1|6|7|12|25|47|1047|1048|1049|2004|2026))*h"
    r"|\x1b\[\?[0-9;]+l"
    r"|\x1b\[[0-6]? q|\x1b\[!p"
)
_BITS = st.sampled_from(
    [
        *b"\x1b \x1b[ [ ] \x1b]52;c; \x1bP \x1b_ \\ \x07 \x18 \x9b \xc2\x9b \x00 \x7f \xff text $ ! p".split(b" "),
        *b"? ; : 1049 25 1000 3 0 h l m J H c n t q r".split(b" "),
        *(b" ", b"\n", b"\r", "漢".encode(), "🙂".encode()),
    ]
)
_OUTPUT = st.lists(_BITS | st.binary(max_size=3), max_size=40).map(b"".join)


@given(_OUTPUT)
def test_whatever_is_printed_only_what_draws_comes_out(data: bytes) -> None:
    text = passed(data)
    assert re.sub(_SAFE, "", text) == "", repr(text)


@given(_OUTPUT, st.data())
def test_every_way_to_split_gives_the_same(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=10)))
    one = Filter()
    pieces = [one.feed(data[start:end]) for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert b"".join(pieces).decode() == passed(data)
    single = Filter()
    assert b"".join(single.feed(bytes([byte])) for byte in data).decode() == passed(data)


@given(_OUTPUT)
def test_filtering_twice_changes_nothing(data: bytes) -> None:
    once = passed(data)
    assert passed(once) == once


@given(_OUTPUT)
def test_after_leaving_text_is_drawn_as_ever(data: bytes) -> None:
    one = Filter()
    shown = one.feed(data) + one.leave() + b"\x1b[2J\x1b[Habc\x1b[1;5Hqq\r\nd"
    screen = render(shown, 8, 4)
    assert (screen.lines, screen.is_alternate) == (("abc qq", "d", "", ""), False)


@given(drawing(columns=9, rows=4))
def test_what_is_seen_is_the_same_with_and_without_the_filter(text: str) -> None:
    assert render(passed(text).encode(), 9, 4) == render(text.encode(), 9, 4)
