"""The cursor that a host follows without drawing, against the screen that is drawn."""

import re

import pytest
from drawing import drawing
from hypothesis import given, settings

from coordinate_agents.sessions.host.cursor import Cursor, Followed
from coordinate_agents.sessions.screen import render

ROWS, COLUMNS = 6, 20


def place(text: str, rows: int = ROWS, columns: int = COLUMNS) -> tuple[int, int]:
    cursor = Cursor(rows, columns)
    cursor.feed(text)
    return cursor.row, min(cursor.column, columns - 1)


@given(drawing(columns=COLUMNS, rows=ROWS))
@settings(max_examples=300, deadline=None)
def test_cursor_stands_where_the_drawn_screen_has_it(text: str) -> None:
    # Repeating is tmux's own at the right edge after a wide character, where terminals part.
    text = re.sub(r"\x1b\[\d*b", "", text)
    screen = render(text.encode(), COLUMNS, ROWS)
    assert place(text) == (screen.cursor_row, screen.cursor_column)


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [
        ("", 0, 0),
        ("abc", 0, 3),
        ("a" * 20, 0, 19),
        ("a" * 21, 1, 1),
        ("漢字", 0, 4),
        ("e\u0301", 0, 1),
        ("\x1b[3;5Hx", 2, 5),
        ("\x1b[99;99H", 5, 19),
        ("one\r\n" * 9, 5, 0),
        ("\x1b[31mred\x1b[0m\x1b]0;title\x07", 0, 3),
        ("\x1b[2;4r\x1b[2;1H\x1b[?6h", 1, 0),
    ],
)
def test_cursor_after_what_programs_print(text: str, row: int, column: int) -> None:
    assert place(text) == (row, column)


def test_place_is_reported_from_one_and_within_the_margins_of_origin_mode() -> None:
    cursor = Cursor(ROWS, COLUMNS)
    cursor.feed("\x1b[2;4r\x1b[?6h\x1b[2;3H")
    assert (cursor.place(), cursor.row) == ((2, 3), 2)


def test_followed_cursor_goes_on_from_where_it_was_asked_and_from_the_end_of_what_is_kept() -> None:
    data = b"one\r\ntwo" + b"x" * (Followed.MAX_BYTES + 100) + b"\r\n\x1b[3;4Hhere"
    asked: list[tuple[int, int]] = []

    def raw(start: int, end: int) -> bytes:
        asked.append((start, end))
        return data[start:end]

    followed = Followed()
    assert followed.place(raw, 8, ROWS, COLUMNS) == (2, 4)
    assert followed.place(raw, 8, ROWS, COLUMNS) == (2, 4)
    assert followed.place(raw, len(data), ROWS, COLUMNS) == (3, 8)
    assert asked == [(0, 8), (len(data) - Followed.MAX_BYTES, len(data))]
