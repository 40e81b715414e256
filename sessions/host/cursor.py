"""Where a program's cursor stands, followed through what it printed: for programs that ask their terminal.

Only places are followed, no cells: that is what a host can afford, and only once somebody asked. Text, line ends,
moves, margins, wrapping, saved cursors and the alternate screen count; what a terminal would do to its cells does not.
Runs in hosts: stdlib only. `screen_layer` draws the whole screen, in clients; a test holds the two against each other.
"""

import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from collections.abc import Callable

# Whole sequences, one control, or a run of text.
_PART = re.compile(
    r"\x1b\[([<=>?]?)([0-9;:]*)[ -/]*([@-~])|\x1b(?:[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|([ -/]*[0-~]))"
    r"|([\x00-\x1f\x7f])|([^\x00-\x1f\x7f]+)"
)
_LONGEST_NUMBER = 4


class Cursor:
    """`row` and `column` count from 0. `column` may be one behind the last: the next character wraps."""

    __slots__ = (
        "_bottom",
        "_columns",
        "_is_alternate",
        "_is_origin",
        "_last",
        "_primary",
        "_rows",
        "_saved",
        "_stops",
        "_top",
        "_wraps",
        "column",
        "row",
    )

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self.row = self.column = 0
        self._reset()

    def place(self) -> tuple[int, int]:
        """Row and column as a terminal reports them, from 1."""
        row = self.row - self._top if self._is_origin else self.row
        return row + 1, min(self.column, self._columns - 1) + 1

    def resize(self, rows: int, columns: int) -> None:
        if (rows, columns) != (self._rows, self._columns):
            self._rows, self._columns = rows, columns
            self._top, self._bottom = 0, rows - 1
            self.row, self.column = min(self.row, rows - 1), min(self.column, columns - 1)

    def feed(self, text: str) -> None:
        for match in _PART.finditer(text):
            private, numbers, final, escape, control, run = match.groups()
            if run is not None:
                self._text(run)
            elif final is not None:
                self._sequence(private, numbers, final)
            elif control is not None:
                self._control(control)
            elif escape is not None:
                self._escape(escape)

    def _reset(self) -> None:
        self.row = self.column = 0
        self._top, self._bottom = 0, self._rows - 1
        self._is_origin, self._wraps = False, True
        self._saved = (0, 0, False)
        self._is_alternate = False
        self._primary: tuple[int, int] | None = None
        self._last = ""
        self._stops = set(range(8, self._columns, 8))

    def _text(self, run: str) -> None:
        self._last = run[-1]
        widths = None if run.isascii() else _widths(run)
        if widths is None and self.column + len(run) <= self._columns:
            self.column += len(run)
            return
        for width in widths or [1] * len(run):
            if self.column + width > self._columns and width:
                if not self._wraps:
                    self.column = self._columns - width
                else:
                    self.column = 0
                    self._line_feed()
            self.column += width

    def _line_feed(self) -> None:
        if self.row != self._bottom:
            self.row = min(self.row + 1, self._rows - 1)

    def _reverse_feed(self) -> None:
        if self.row != self._top:
            self.row = max(self.row - 1, 0)

    def _control(self, letter: str) -> None:
        if letter == "\r":
            self.column = 0
        elif letter in "\n\v\f":
            self._line_feed()
        elif letter == "\b":
            self.column = max(min(self.column, self._columns - 1) - 1, 0)
        elif letter == "\t" and self.column < self._columns:
            self._tab(1)

    def _escape(self, letter: str) -> None:
        if letter == "D":
            self._line_feed()
        elif letter == "E":
            self.column = 0
            self._line_feed()
        elif letter == "M":
            self._reverse_feed()
        elif letter == "7":
            self._save()
        elif letter == "8":
            self._restore()
        elif letter == "H":
            self._stops.add(self.column)
        elif letter == "c":
            self._reset()
        elif letter == "#8":
            self._top, self._bottom = 0, self._rows - 1
            self.row = self.column = 0

    def _sequence(self, private: str, numbers: str, final: str) -> None:
        values = [int(part[-_LONGEST_NUMBER:]) if part.isdigit() else 0 for part in numbers.split(";")]
        first = values[0]
        if private == "?":
            if final in "hl":
                for value in values:
                    self._mode(value, final == "h")
            return
        if private:
            return
        count = max(first, 1)
        if final == "A":
            self._up(count)
        elif final in "Be":
            self._down(count)
        elif final in "Ca":
            self.column = min(self.column + count, self._columns - 1)
        elif final == "D":
            self.column = max(min(self.column, self._columns - 1) - count, 0)
        elif final == "E":
            self.column = 0
            self._down(count)
        elif final == "F":
            self.column = 0
            self._up(count)
        elif final in "G`":
            self.column = min(count, self._columns) - 1
        elif final == "d":
            self._to_row(count)
        elif final in "Hf":
            self._to_row(count)
            self.column = min(max(values[1] if len(values) > 1 else 1, 1), self._columns) - 1
        elif final == "r":
            self._margins(first, values[1] if len(values) > 1 else 0)
        elif final == "b":
            self._text(self._last * min(count, self._columns * self._rows))
        elif final == "s":
            self._save()
        elif final == "u":
            self._restore()
        elif final == "I":
            self._tab(count)
        elif final == "Z":
            self._tab(-count)
        elif final == "g":
            self._stops = set() if first == 3 else self._stops - {self.column}

    def _tab(self, count: int) -> None:
        """Forward, or back, by so many stops; behind the last one is the last column."""
        if count > 0:
            ahead = [stop for stop in sorted(self._stops) if stop > self.column]
            self.column = ahead[count - 1] if len(ahead) >= count else self._columns - 1
        else:
            behind = [stop for stop in sorted(self._stops, reverse=True) if stop < self.column]
            self.column = behind[-count - 1] if len(behind) >= -count else 0

    def _up(self, count: int) -> None:
        self.row = max(self.row - count, self._top if self.row >= self._top else 0)

    def _down(self, count: int) -> None:
        self.row = min(self.row + count, self._bottom if self.row <= self._bottom else self._rows - 1)

    def _to_row(self, row: int) -> None:
        if self._is_origin:
            self.row = min(self._top + row - 1, self._bottom)
        else:
            self.row = min(row, self._rows) - 1

    def _margins(self, first: int, last: int) -> None:
        top, bottom = max(first, 1) - 1, min(last or self._rows, self._rows) - 1
        if top < bottom:
            self._top, self._bottom = top, bottom
            self.row = self.column = 0

    def _mode(self, mode: int, is_on: bool) -> None:
        if mode == 6:
            self._is_origin = is_on
            self.row, self.column = self._top if is_on else 0, 0
        elif mode == 7:
            self._wraps = is_on
        elif mode == 1048:
            (self._save if is_on else self._restore)()
        elif mode in (47, 1047, 1049):
            if mode == 1049 and is_on and not self._is_alternate:
                self._primary = (self.row, self.column)
            self._is_alternate = is_on
            if mode == 1049 and not is_on and self._primary is not None:
                self.row, self.column = self._primary

    def _save(self) -> None:
        self._saved = (self.row, self.column, self._is_origin)

    def _restore(self) -> None:
        self.row, self.column, self._is_origin = self._saved
        self.row, self.column = min(self.row, self._rows - 1), min(self.column, self._columns)


class Followed:
    """The cursor of one Session's terminal, brought up to date from its output when it is asked for.

    Of more than `MAX_BYTES` only the end is followed, from the lower left: where a terminal stands that has scrolled.
    """

    MAX_BYTES = 128 << 10

    def __init__(self) -> None:
        self._cursor: Cursor | None = None
        self._at = 0

    def place(self, raw: "Callable[[int, int], bytes]", at: int, rows: int, columns: int) -> tuple[int, int]:
        """Row and column at this offset of the output; `raw(start, end)` gives its bytes, as far as they are kept."""
        start = max(self._at, at - self.MAX_BYTES)
        if self._cursor is None or start > self._at:
            self._cursor = Cursor(rows, columns)
            self._cursor.row = rows - 1 if start > 0 else 0
        self._cursor.resize(rows, columns)
        if at > start:
            self._cursor.feed(raw(start, at).decode("utf-8", "ignore"))
            self._at = at
        return self._cursor.place()


def _widths(run: str) -> "list[int]":
    """Cells of each character; one that is joined to the one before has none of its own."""
    return [0 if before == "\u200d" else _width(letter) for before, letter in zip(" " + run, run, strict=False)]


def _width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
