"""A terminal's screen that draws as tmux does: pyte's `Screen` with what it lacks or does otherwise replaced.

From pyte come the cursor, modes, tab stops and the table of line drawing characters. Replaced are drawing
(pyte stops at the first character without a width and so drops all that follows a ZWJ or VS16), everything that moves
cells, the one saved cursor (pyte keeps a stack) and movement at margins and at the right edge. Added is the alternate
screen. Colours are not kept: nobody asks for them, and they would take most of the time.

Cells are strings in lists, so that a run of text, a scroll or an erase is one slice: thirty times pyte's speed, and no
sequence costs more than the lines and columns it names. Invariant: the cell right of a wide character is "".
Source: tmux 3.3a, screen-write.c and input.c; where they part from terminals at large, the page terminal.md says so.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from pyte import charsets, modes
from pyte.screens import Margins, Screen
from wcwidth import wcwidth

# A family of four with skin tones needs 41 bytes; what stacks marks without end is cut there.
MAX_CELL_BYTES: Final = 64
ZWJ: Final = "\u200d"
_GRAPHICS: Final = {code: charsets.VT100_MAP[code] for code in range(0x5F, 0x7F)}
# A flag is two of these and two cells wide.
_FLAG_LETTERS: Final = frozenset(map(chr, range(0x1F1E6, 0x1F200)))

# Shared rows are tuples and are copied when first written to.
Row: TypeAlias = list[str] | tuple[str, ...]


class _Saved(NamedTuple):
    """What DECSC keeps."""

    x: int
    y: int
    is_origin: bool
    charset: int
    is_graphics_0: bool
    is_graphics_1: bool


_NOTHING_SAVED: Final = _Saved(0, 0, False, 0, False, False)


class Layer(Screen):
    """One terminal of `columns` by `lines` cells, both at least 1. Rows and columns count from 0 here."""

    buffer: list[Row]  # type: ignore[assignment]

    def __init__(self, columns: int, lines: int) -> None:
        self._blank: tuple[str, ...] = (" ",) * columns
        self._primary: list[Row] | None = None
        self._primary_cursor: tuple[int, int] | None = None
        self._region = Margins(0, lines - 1)
        self._saved = _NOTHING_SAVED
        self._is_joining = False
        self._last = ""
        super().__init__(columns, lines)

    @property
    def is_alternate(self) -> bool:
        return self._primary is not None

    def texts(self) -> tuple[str, ...]:
        """Every line from the top, without spaces at its end."""
        return tuple("".join(row).rstrip(" ") for row in self.buffer)

    def reset(self) -> None:
        """Everything as at the start, the primary screen shown and empty."""
        self.buffer = []
        super().reset()
        self.buffer = [self._blank] * self.lines
        self._primary = None
        self._saved = _NOTHING_SAVED
        self.soft_reset()
        self.cursor.x = self.cursor.y = 0

    def soft_reset(self) -> None:
        """DECSTR: margins, modes and character sets as at the start; what is drawn stays."""
        self.set_region(0, self.lines - 1)
        self.mode = {modes.DECAWM, modes.DECTCEM}
        self.charset = 0
        self._graphics = [False, False]

    def draw(self, data: str) -> None:
        """Characters at the cursor, which wraps at the right edge when the mode says so."""
        # Only these are repeated: a mark alone would be added to the character that has it.
        self._last = data[-1:] if data[-1:].isascii() else ""
        if self._graphics[self.charset]:
            data = data.translate(_GRAPHICS)
        if data.isascii() and modes.IRM not in self.mode and modes.DECAWM in self.mode:
            self._is_joining = False
            self._draw_run(data)
            return
        for char in data:
            self._draw_character(char)

    def repeat(self, count: int) -> None:
        """REP: the character that was drawn just before, as often, within this line."""
        self.draw(self._last * min(count, self.columns - self.cursor.x))

    def forget_last(self) -> None:
        """What comes between a character and REP makes REP do nothing."""
        self._last = ""

    def switch_to_alternate(self) -> None:
        """An empty screen of its own; the primary one waits. The cursor stays."""
        if self._primary is None:
            self._primary, self.buffer = self.buffer, [self._blank] * self.lines

    def remember_cursor(self) -> None:
        """For `recall_cursor`; only while the primary screen is shown."""
        if self._primary is None:
            self._primary_cursor = (self.cursor.x, self.cursor.y)

    def switch_to_primary(self) -> None:
        """The primary screen as it was left."""
        if self._primary is not None:
            self.buffer, self._primary = self._primary, None
        self._clamp()

    def recall_cursor(self) -> None:
        if self._primary_cursor is not None:
            self.cursor.x, self.cursor.y = self._primary_cursor

    def save_cursor(self) -> None:
        is_origin = modes.DECOM in self.mode
        self._saved = _Saved(self.cursor.x, self.cursor.y, is_origin, self.charset, *self._graphics)

    def restore_cursor(self) -> None:
        """To the one saved place, or to the top left without origin mode when none was saved."""
        saved = self._saved
        self.cursor.x, self.cursor.y, self.charset = saved.x, saved.y, saved.charset
        self._graphics = [saved.is_graphics_0, saved.is_graphics_1]
        (self.mode.add if saved.is_origin else self.mode.discard)(modes.DECOM)
        self._clamp()

    def define_charset(self, code: str, mode: str) -> None:
        """Line drawing (`0`) or not, for G0 (`(`) or G1 (`)`)."""
        self._graphics["()".index(mode)] = code == "0"

    def set_region(self, top: int, bottom: int) -> None:
        """The lines that scroll, both included; the cursor goes to the top left. Less than two lines: no change."""
        top, bottom = min(top, self.lines - 1), min(bottom, self.lines - 1)
        if top < bottom or self.lines == 1:
            self._region = Margins(top, bottom)
            self.cursor.x = self.cursor.y = 0

    def linefeed(self) -> None:
        cursor, region = self.cursor, self._region
        if cursor.y == region.bottom:
            # The one operation that output is full of: two moves of pointers instead of a new list.
            del self.buffer[region.top]
            self.buffer.insert(region.bottom, self._blank)
        elif cursor.y < self.lines - 1:
            cursor.y += 1
        if modes.LNM in self.mode:
            self.cursor.x = 0

    def reverse_index(self) -> None:
        if self.cursor.y == self._region.top:
            self.scroll_down(1)
        elif self.cursor.y > 0:
            self.cursor.y -= 1

    def scroll_up(self, count: int) -> None:
        self._take_lines(*self._region, count)

    def scroll_down(self, count: int) -> None:
        self._give_lines(*self._region, count)

    def insert_lines(self, count: int | None = None) -> None:
        self._give_lines(self.cursor.y, self._last_line_moved(), count or 1)

    def delete_lines(self, count: int | None = None) -> None:
        self._take_lines(self.cursor.y, self._last_line_moved(), count or 1)

    def _last_line_moved(self) -> int:
        top, bottom = self._region
        return bottom if top <= self.cursor.y <= bottom else self.lines - 1

    def _take_lines(self, top: int, bottom: int, count: int) -> None:
        count = min(count, bottom + 1 - top)
        self.buffer[top : bottom + 1] = [*self.buffer[top + count : bottom + 1], *[self._blank] * count]

    def _give_lines(self, top: int, bottom: int, count: int) -> None:
        count = min(count, bottom + 1 - top)
        self.buffer[top : bottom + 1] = [*[self._blank] * count, *self.buffer[top : bottom + 1 - count]]

    def insert_characters(self, count: int | None = None) -> None:
        x = self.cursor.x
        count = min(count or 1, self.columns - x)
        if count > 0:
            row = self._row()
            row[x:] = [*" " * count, *row[x : self.columns - count]]

    def delete_characters(self, count: int | None = None) -> None:
        x = self.cursor.x
        count = min(count or 1, self.columns - x)
        if count > 0:
            row = self._row()
            row[x:] = [*row[x + count :], *" " * count]

    def erase_characters(self, count: int | None = None) -> None:
        self._erase(self.cursor.x, self.cursor.x + (count or 1))

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        match how:
            case 0:
                self._erase(self.cursor.x, self.columns)
            case 1:
                self._erase(0, self.cursor.x + 1)
            case 2:
                self.buffer[self.cursor.y] = self._blank

    def erase_in_display(self, how: int = 0, *args: object, **kwargs: object) -> None:
        y = self.cursor.y
        if how == 2:
            self.buffer = [self._blank] * self.lines
        elif how == 0:
            self.buffer[y + 1 :] = [self._blank] * (self.lines - y - 1)
            self.erase_in_line(0)
        elif how == 1:
            self.buffer[:y] = [self._blank] * y
            self.erase_in_line(1)

    def alignment_display(self) -> None:
        self.buffer = [("E",) * self.columns] * self.lines
        self.set_region(0, self.lines - 1)

    def tab(self) -> None:
        x = self.cursor.x
        if x < self.columns - 1:
            self.cursor.x = min((stop for stop in self.tabstops if stop > x), default=self.columns - 1)

    def back_tab(self, count: int) -> None:
        x = min(self.cursor.x, self.columns - 1)
        before = sorted((stop for stop in self.tabstops if stop < x), reverse=True)
        self.cursor.x = before[count - 1] if count <= len(before) else 0

    def move_up(self, count: int) -> None:
        """As far as the top margin from below it, as far as the top from above it."""
        top = self._region.top
        self.cursor.y = max(self.cursor.y - count, top if self.cursor.y >= top else 0)
        self.cursor.x = min(self.cursor.x, self.columns - 1)

    def move_down(self, count: int) -> None:
        bottom = self._region.bottom
        self.cursor.y = min(self.cursor.y + count, bottom if self.cursor.y <= bottom else self.lines - 1)
        self.cursor.x = min(self.cursor.x, self.columns - 1)

    def move_right(self, count: int) -> None:
        self.cursor.x = min(self.cursor.x + count, self.columns - 1)

    def move_left(self, count: int) -> None:
        self.cursor.x = max(0, self.cursor.x - count)

    def move_to_column(self, column: int) -> None:
        self.cursor.x = min(column, self.columns - 1)

    def move_to_line(self, line: int) -> None:
        """Counted from the top margin in origin mode."""
        if modes.DECOM in self.mode:
            top, bottom = self._region
            line = min(line + top, bottom)
        self.cursor.y = min(line, self.lines - 1)

    def _clamp(self) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        self.cursor.y = min(self.cursor.y, self.lines - 1)

    def _row(self) -> list[str]:
        row = self.buffer[self.cursor.y]
        if isinstance(row, tuple):
            row = self.buffer[self.cursor.y] = list(row)
        return row

    def _erase(self, start: int, end: int) -> None:
        end = min(end, self.columns)
        if start < end:
            self._row()[start:end] = self._blank[start:end]

    def _draw_run(self, text: str) -> None:
        """ASCII text, a slice for each line that it takes."""
        position = 0
        while position < len(text):
            if self.cursor.x == self.columns:
                self._wrap()
            piece = text[position : position + self.columns - self.cursor.x]
            self._put(piece, len(piece))
            self.cursor.x += len(piece)
            position += len(piece)

    def _draw_character(self, char: str) -> None:
        if char == ZWJ:
            self._is_joining = True
            return
        width = 1 if char in _FLAG_LETTERS else wcwidth(char)
        is_joining, self._is_joining = self._is_joining and not char.isascii(), False
        if width == 0 or is_joining:
            self._combine(ZWJ + char if is_joining else char)
            return
        is_wrapping = modes.DECAWM in self.mode
        # One that has no width is drawn as one cell: what was printed is shown.
        width = max(width, 1)
        if width > self.columns or (not is_wrapping and self.cursor.x > self.columns - width):
            return
        if modes.IRM in self.mode:
            self.insert_characters(width)
        if is_wrapping and self.cursor.x > self.columns - width:
            self._wrap()
        self._put((char, *[""] * (width - 1)), width)
        self.cursor.x = min(self.cursor.x + width, self.columns if is_wrapping else self.columns - 1)

    def _wrap(self) -> None:
        self.linefeed()
        self.cursor.x = 0

    def _put(self, cells: Sequence[str], count: int) -> None:
        """Write the cells; wide characters that lose one of their two become blanks."""
        row, x = self._row(), self.cursor.x
        start = x
        while start > 0 and row[start] == "":
            row[start] = " "
            start -= 1
        if start < x:
            row[start] = " "
        row[x : x + count] = cells
        for after in range(x + count, self.columns):
            if row[after] != "":
                break
            row[after] = " "

    def _combine(self, marks: str) -> None:
        """Add to the character left of the cursor, if there is one on this line."""
        row, x = self._row(), self.cursor.x - 1
        while x > 0 and row[x] == "":
            x -= 1
        if x >= 0 and row[x] and len((row[x] + marks).encode()) <= MAX_CELL_BYTES:
            row[x] += marks
