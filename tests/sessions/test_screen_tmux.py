"""The screen compared with a real terminal, tmux, on the same bytes. Skipped where tmux is not installed."""

import os
import warnings
from collections.abc import Iterator

import pytest
from drawing import drawing
from hypothesis import given, settings
from tmux import PROGRAM, Tmux, tmux

from coordinate_agents.sessions.screen import render

COLUMNS, ROWS = 12, 5

if PROGRAM is None:  # pragma: no cover
    warnings.warn("tmux is not installed: the screen was NOT compared with a real terminal", stacklevel=1)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="tmux is not installed: NOT compared with a real terminal")


@pytest.fixture(scope="module")
def pane() -> Iterator[Tmux]:
    with tmux(COLUMNS, ROWS) as one:
        yield one


def same(pane: Tmux, text: str) -> None:
    screen = render(text.encode(), COLUMNS, ROWS)
    shown = (screen.lines, screen.cursor_row, screen.cursor_column, screen.is_alternate)
    assert shown == pane.shows(text.encode()), repr(text)


def same_lines(pane: Tmux, text: str) -> None:
    assert render(text.encode(), COLUMNS, ROWS).lines == pane.shows(text.encode())[0], repr(text)


# How wide they are differs between versions of tmux, and so the cursor does; what is shown is the same.
EMOJI = ["👩‍👩‍👧 after", "❤️ after", "👍🏽 after", "🇩🇪 after", "x\u200dy", "1️⃣ after", "👩‍" + "🚀" * 4]
CASES = {
    "alternate screen": [
        "one\r\n\x1b[?1049htwo",
        "one\r\n\x1b[?1049htwo\x1b[3;3H\x1b[?1049lthree",
        "one\r\n\x1b[?47htwo\x1b[?47lthree",
        "one\x1b[?1047h\x1b[2;2r\x1b[1;1Htwo\x1b[?1047lthree\x1b[?1049l!",
        "one\x1b[?1049h\x1b[?1049h\x1b[?25;1049lthree",
    ],
    "wide characters": [
        "漢字" * 8,
        "12345678901漢",
        " 漢字\x1b[3Gx",
        "漢字\x1b[3Gx",
        "漢字\x1b[2G語",
        "\x1b[?7l1234567890漢字x",
    ],
    "combining marks": ["e\u0301x", "\u0301x", "x\r\n\u0301y", "123456789012\u0301", "漢\u0301x", "e" + "\u0301" * 8],
    "colours": ["\x1b[38:2::1:2:3ma\x1b[38;2;1;2;3mb\x1b[4:3mc\x1b[58:5:1md\x1b[me"],
    "strings": [
        "a\x1b]52;c;QUJD\x07b\x1b]52;c;QUJD\x1b\\c\x1b]0;t\x07d",
        "a\x1bPq#0;2;0\x1b\\b\x1bP$qm\x1b\\c\x1bP+q544e\x1b\\d",
        "a\x1b_Gi=31;AAAA\x1b\\b\x1b^private\x1b\\c\x1bXsos\x1b\\d",
        "a\x1bPtmux;\x1b\x1b]52;c;QUJD\x07\x1b\\b",
    ],
    "private sequences": [
        "a\x1b[>4;2mb\x1b[?uc\x1b[=5;1ud\x1b[<ue\x1b[>1uf\x1b[?2026hg\x1b[?1$ph\x1b[0;1 qi",
        "a\x1b[3\nJb\x1b[2\x18Jc\x1b[1\x1b[2Cd\x1b[9",
    ],
    "line drawing": ["\x1b(0`afgjklmnopqrstuvwxyz{|}~\x1b(Bq", "\x1b)0q\x0eq\x0fq", "\x1b(0é\x1b7\x1b(Bq\x1b8q"],
    "scroll regions": [
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1Ha\nb\nc",
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[2;1H\x1bM\x1b[A\x1b[Ax",
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[5;1H\n\nx\x1b[9Ay\x1b[S\x1b[2T",
        "1\r\n2\r\n3\x1b[2;4r\x1b[?6h\x1b[2;2Hx\x1b[9;9Hy\x1b[?6lz\x1b[3;3r!\x1b[r?",
    ],
    "cursor": [
        "\x1b[3;4Ha\x1b[2Ab\x1b[Bc\x1b[9Cd\x1b[3De\x1b[2Ef\x1b[Fg\x1b[7Gh\x1b[2di\x1b[99;99Hj\x1b[H\x1b[;3Hk",
        "123456789012\x1b[Cx",
        "123456789012\x1b[Dx",
        "123456789012\x1b[Ax",
        "123456789012\x1b[Kx",
        "123456789012\x1b[J\x1b7\x1b[H\x1b8x",
        "\tab\tcd\x1b[Ze\x1b[9Zf\x1b[3g\tg",
    ],
    "erase": [
        "abc\r\ndef\r\nghi\x1b[2;2H" + erase + "x"
        for erase in ("\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[X", "\x1b[9X")
    ],
    "insert and delete": [
        "abcdef\x1b[2G\x1b[2@x\x1b[P",
        "abcdef\x1b[4h\x1b[2Gxyz\x1b[4l!",
        "abcdef\x1b[3G\x1b[99P",
        "1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[2Lx\x1b[99M",
        "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[4;1H\x1b[Lx\x1b[M",
        "a\x1b[3bb\x1b[99bc\x1b[m\x1b[3b",
    ],
    "resets": ["abc\x1b#8x", "abc\x1b[2;3r\x1b(0\x1bcq\n\n\n\n\nx"],
}


@pytest.mark.parametrize("name", CASES)
def test_screen_is_what_a_real_terminal_shows(pane: Tmux, name: str) -> None:
    for text in CASES[name]:
        same(pane, text)


@pytest.mark.parametrize("text", EMOJI)
def test_nothing_is_lost_around_an_emoji(pane: Tmux, text: str) -> None:
    same_lines(pane, text)


@pytest.mark.timeout(600)
def test_random_sequences_show_what_a_real_terminal_shows(pane: Tmux) -> None:
    # SCREEN_EXAMPLES=2000 looks for new ones.
    wanted = os.environ.get("SCREEN_EXAMPLES")

    @settings(max_examples=int(wanted or 80), derandomize=wanted is None)
    @given(drawing(columns=COLUMNS, rows=ROWS))
    def compare(text: str) -> None:
        same(pane, text)

    compare()
