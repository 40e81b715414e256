"""What a terminal of a given size shows after a program wrote these bytes: pure, and made when somebody asks.

`render` takes what a Session's output buffer holds. It decides which part of it can still be seen, turns sequences
into operations of `screen_layer`, and bounds the work: at most `MAX_BYTES` are drawn, whatever is given. Never loaded
in a host.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from pyte import modes

from coordinate_agents.sessions.screen_layer import Layer
from coordinate_agents.sessions.sequences import Control, Csi, Escape, Splitter, Text
from coordinate_agents.worktrees.values import value_class

# What a host keeps by default. Of more than this only the end is drawn: a quarter of a second for 1 MiB of text.
MAX_BYTES: Final = 1 << 20
# Far more than any terminal; bounds the memory of a screen.
MAX_SIDE: Final = 1000

_RESET: Final = b"\x1bc"
_ALTERNATE_MODES: Final = frozenset((47, 1047, 1049))
_SWITCHES: Final = tuple(
    (f"\x1b[?{mode}{letter}".encode(), letter == "h") for mode in sorted(_ALTERNATE_MODES) for letter in "hl"
)
_BOUNDARY: Final = re.compile(rb"[\x1b\n]")
_MAX_COUNT: Final = 9999


@value_class
class Screen:
    """One look. `lines` are all rows from the top, without spaces at their end; the cursor counts from 0.

    The text is the program's own: it passes `graph.text.visible` before it is shown to anybody.
    """

    lines: tuple[str, ...]
    cursor_row: int
    cursor_column: int
    is_alternate: bool = False

    @property
    def text(self) -> str:
        """The lines joined, without the empty ones at the end."""
        return "\n".join(self.lines).rstrip("\n")


def render(data: bytes, columns: int, rows: int) -> Screen:
    """The screen of `columns` by `rows` after `data`; sizes beyond 1..1000 are brought within.

    Of more than `MAX_BYTES` the end is drawn: what was printed before it and never again is not seen, as if the
    screen had been empty there.
    """
    layer = Layer(min(max(columns, 1), MAX_SIDE), min(max(rows, 1), MAX_SIDE))
    start = max(0, data.rfind(_RESET))
    if len(data) - start > MAX_BYTES:
        cut = len(data) - MAX_BYTES
        if _was_alternate(data, start, cut):
            layer.switch_to_alternate()
        boundary = _BOUNDARY.search(data, cut)
        start = boundary.start() if boundary else cut
    draw(layer, data[start:])
    return Screen(
        lines=layer.texts(),
        cursor_row=layer.cursor.y,
        cursor_column=min(layer.cursor.x, layer.columns - 1),
        is_alternate=layer.is_alternate,
    )


def draw(layer: Layer, data: bytes) -> None:
    """Carry out everything that stands in the bytes."""
    for part in Splitter().feed(data):
        if isinstance(part, Text):
            layer.draw(part.text)
            continue
        if isinstance(part, Csi):
            _csi(layer, part)
        elif isinstance(part, Control):
            if operation := _CONTROLS.get(part.char):
                operation(layer)
        else:
            _escape(layer, part)
        layer.forget_last()


def _was_alternate(data: bytes, start: int, end: int) -> bool:
    """Whether the last switch in this part of the data was to the alternate screen."""
    last, is_on = max((data.rfind(switch, start, end), is_on) for switch, is_on in _SWITCHES)
    return last >= 0 and is_on


def _escape(layer: Layer, part: Escape) -> None:
    if part.intermediates in ("(", ")"):
        layer.define_charset(part.final, mode=part.intermediates)
    elif operation := _ESCAPES.get(part.intermediates + part.final):
        operation(layer)


def _csi(layer: Layer, part: Csi) -> None:
    """Only SGR has parameters with colons, and nothing but modes a prefix; everything else is not for us."""
    if ":" in part.parameters or part.final == "m":
        return
    numbers = tuple(min(number, _MAX_COUNT) if number is not None else None for number in part.numbers())
    if part.intermediates:
        if part.intermediates + part.final == "!p":
            layer.soft_reset()
    elif part.final in ("h", "l"):
        for number in numbers:
            _mode(layer, part.prefix, number, is_on=part.final == "h")
    elif not part.prefix and (operation := _CSIS.get(part.final)):
        first = numbers[0] if numbers and numbers[0] is not None else None
        second = numbers[1] if len(numbers) > 1 else None
        operation(layer, first, second)


def _mode(layer: Layer, prefix: str, number: int | None, *, is_on: bool) -> None:
    if prefix == "" and number in (modes.IRM, modes.LNM):
        (layer.mode.add if is_on else layer.mode.discard)(number)
    elif prefix != "?":
        return
    elif number in _ALTERNATE_MODES:
        _alternate(layer, is_on=is_on, with_cursor=number == 1049)
    elif number == 1048:
        (layer.save_cursor if is_on else layer.restore_cursor)()
    elif number == 7:
        (layer.mode.add if is_on else layer.mode.discard)(modes.DECAWM)
    elif number == 6:
        (layer.mode.add if is_on else layer.mode.discard)(modes.DECOM)
        _move_to(layer, 1, 1)
    elif number == 3:  # 80 or 132 columns: the size stays, the rest happens
        _move_to(layer, 1, 1)
        layer.erase_in_display(2)


def _alternate(layer: Layer, *, is_on: bool, with_cursor: bool) -> None:
    if is_on:
        if with_cursor:
            layer.remember_cursor()
        layer.switch_to_alternate()
        return
    if with_cursor:
        layer.recall_cursor()
    layer.switch_to_primary()


def _move_to(layer: Layer, line: int | None, column: int | None) -> None:
    layer.move_to_line((line or 1) - 1)
    layer.move_to_column((column or 1) - 1)


def _next_line(layer: Layer) -> None:
    layer.carriage_return()
    layer.linefeed()


def _lines_down(layer: Layer, count: int | None) -> None:
    layer.carriage_return()
    layer.move_down(count or 1)


def _lines_up(layer: Layer, count: int | None) -> None:
    layer.carriage_return()
    layer.move_up(count or 1)


def _tabs(layer: Layer, count: int | None) -> None:
    for _ in range(min(count or 1, layer.columns)):
        layer.tab()


_CONTROLS: Final[Mapping[str, Callable[[Layer], None]]] = {
    "\b": lambda layer: layer.move_left(1),
    "\t": Layer.tab,
    "\n": Layer.linefeed,
    "\v": Layer.linefeed,
    "\f": Layer.linefeed,
    "\r": Layer.carriage_return,
    "\x0e": Layer.shift_out,
    "\x0f": Layer.shift_in,
}
_ESCAPES: Final[Mapping[str, Callable[[Layer], None]]] = {
    "c": Layer.reset,
    "D": Layer.linefeed,
    "E": _next_line,
    "H": Layer.set_tab_stop,
    "M": Layer.reverse_index,
    "7": Layer.save_cursor,
    "8": Layer.restore_cursor,
    "#8": Layer.alignment_display,
}
# Final → what it does with the first two parameters, each None when left out.
_CSIS: Final[Mapping[str, Callable[[Layer, int | None, int | None], None]]] = {
    "@": lambda layer, n, _: layer.insert_characters(n),
    "A": lambda layer, n, _: layer.move_up(n or 1),
    "B": lambda layer, n, _: layer.move_down(n or 1),
    "C": lambda layer, n, _: layer.move_right(n or 1),
    "D": lambda layer, n, _: layer.move_left(n or 1),
    "E": lambda layer, n, _: _lines_down(layer, n),
    "F": lambda layer, n, _: _lines_up(layer, n),
    "G": lambda layer, n, _: layer.move_to_column((n or 1) - 1),
    "H": _move_to,
    "I": lambda layer, n, _: _tabs(layer, n),
    "J": lambda layer, n, _: layer.erase_in_display(n or 0),
    "K": lambda layer, n, _: layer.erase_in_line(n or 0),
    "L": lambda layer, n, _: layer.insert_lines(n),
    "M": lambda layer, n, _: layer.delete_lines(n),
    "P": lambda layer, n, _: layer.delete_characters(n),
    "S": lambda layer, n, _: layer.scroll_up(n or 1),
    "T": lambda layer, n, _: layer.scroll_down(n or 1),
    "X": lambda layer, n, _: layer.erase_characters(n),
    "Z": lambda layer, n, _: layer.back_tab(n or 1),
    "`": lambda layer, n, _: layer.move_to_column((n or 1) - 1),
    "a": lambda layer, n, _: layer.move_right(n or 1),
    "b": lambda layer, n, _: layer.repeat(n or 1),
    "d": lambda layer, n, _: layer.move_to_line((n or 1) - 1),
    "e": lambda layer, n, _: layer.move_down(n or 1),
    "f": _move_to,
    "g": lambda layer, n, _: layer.clear_tab_stop(n or 0),
    "r": lambda layer, top, bottom: layer.set_region((top or 1) - 1, (bottom or layer.lines) - 1),
    "s": lambda layer, *_: layer.save_cursor(),
    "u": lambda layer, *_: layer.restore_cursor(),
}
