"""Where the parts of a report's two pictures stand: the graph as boxes in columns, and the phases as bars over time.

Pure; numbers only, in pixels from the upper left. A column holds subtasks that are equally far from a start; one that
is too high goes on in a column beside it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from coordinate_agents.graph import order
from coordinate_agents.graph.report_model import Bar, Line, Report, Step
from coordinate_agents.worktrees.values import value_class

# Above that a picture says nothing any more.
MAX_BOXES: Final = 2000
# Longest first; the others are counted.
MAX_ROWS: Final = 600
_FEW: Final = 60
_ROWS_OF_FEW: Final = 12
_ROWS_OF_MANY: Final = 40
_GAP_X: Final = 56
_GAP_X_BESIDE: Final = 12
_GAP_Y: Final = 10
_MARGIN: Final = 10
CHART_LEFT: Final = 190
CHART_WIDTH: Final = 860
ROW_HEIGHT: Final = 18
_AXIS_HEIGHT: Final = 24
_MIN_BAR: Final = 1.5
_TICKS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MAX_TICKS: Final = 9
_NUMBERS: Final = re.compile(r"([0-9]+)")


@value_class
class Box:
    """`name` is the id, cut to what fits."""

    line: Line
    name: str
    x: float
    y: float


@value_class
class Edge:
    """`d` is the data of an SVG path."""

    d: str
    is_on_path: bool


@value_class
class Picture:
    """`width` and `height` of the whole and of each box. Without boxes: there were too many."""

    width: float
    height: float
    box_width: float
    box_height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


@value_class
class Rect:
    bar: Bar
    x: float
    width: float


@value_class
class Row:
    line: Line
    y: float
    rects: tuple[Rect, ...]


@value_class
class Chart:
    """`ticks`: (x, seconds since the begin). `left_out`: subtasks that ran and have no row."""

    width: float
    height: float
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, float], ...]
    left_out: int


def picture(report: Report) -> Picture:
    count = len(report.lines)
    is_small = count > _FEW
    width, height = (104.0, 22.0) if is_small else (176.0, 40.0)
    if count > MAX_BOXES:
        return Picture(0, 0, width, height, (), ())
    needed = {line.id: line.depends_on for line in report.lines}
    columns = _columns(_layers(needed), needed, _ROWS_OF_MANY if is_small else _ROWS_OF_FEW)
    letters = int((width - 12) / (6.1 if is_small else 7.4))
    by_id = {line.id: line for line in report.lines}
    at: dict[str, tuple[float, float]] = {}
    x, tallest = float(_MARGIN), max((len(column) for _, column in columns), default=0)
    for is_first, column in columns:
        x += (_GAP_X if is_first else _GAP_X_BESIDE) if at else 0
        y = _MARGIN + (tallest - len(column)) * (height + _GAP_Y) / 2
        for each in column:
            at[each] = (x, y)
            y += height + _GAP_Y
        x += width
    boxes = tuple(Box(by_id[each], _cut(each, letters), *place) for each, place in at.items())
    steps = {(one.subtask, other.subtask) for one, other in zip(report.path, report.path[1:], strict=False)}
    edges = tuple(
        Edge(_curve(at[before], at[after], width, height), (before, after) in steps)
        for before, after in reduced_edges(needed)
    )
    return Picture(x + _MARGIN, 2 * _MARGIN + tallest * (height + _GAP_Y), width, height, boxes, edges)


def chart(report: Report) -> Chart:
    """A row for each subtask that ever began, in the order in which they did."""
    ran = [line for line in report.lines if line.bars]
    shown = sorted(ran, key=lambda line: (-line.elapsed_s, line.id))[:MAX_ROWS]
    shown.sort(key=lambda line: (line.bars[0].begin_s, line.id))
    scale = CHART_WIDTH / report.length_s if report.length_s > 0 else 0.0
    rows = tuple(
        Row(
            line,
            _AXIS_HEIGHT + number * ROW_HEIGHT,
            tuple(
                Rect(bar, CHART_LEFT + bar.begin_s * scale, max(_MIN_BAR, (bar.end_s - bar.begin_s) * scale))
                for bar in line.bars
            ),
        )
        for number, line in enumerate(shown)
    )
    ticks = tuple((CHART_LEFT + second * scale, second) for second in _ticks(report.length_s))
    height = _AXIS_HEIGHT + len(rows) * ROW_HEIGHT + 4
    return Chart(CHART_LEFT + CHART_WIDTH + 40, height, rows, ticks, len(ran) - len(shown))


def longest_phase(step: Step) -> str:
    """What most of the step went to; empty when it took no time."""
    return max(step.phases, key=lambda each: each[1], default=("", 0.0))[0]


def reduced_edges(needed: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The edges (prerequisite, dependent) that no longer way says already, sorted."""
    above: dict[str, set[str]] = {}
    found = []
    for each in order.topological(needed):
        direct = set(needed[each])
        beyond = set().union(*(above[one] for one in direct))
        found += [(one, each) for one in direct - beyond]
        above[each] = direct | beyond
    return sorted(found)


def _layers(needed: Mapping[str, Sequence[str]]) -> list[list[str]]:
    far: dict[str, int] = {}
    for each in order.topological(needed):
        far[each] = max((far[one] + 1 for one in needed[each]), default=0)
    layers: list[list[str]] = [[] for _ in range(max(far.values(), default=-1) + 1)]
    for each, distance in far.items():
        layers[distance].append(each)
    return layers


def _columns(
    layers: Sequence[list[str]], needed: Mapping[str, Sequence[str]], most: int
) -> list[tuple[bool, list[str]]]:
    """The columns from left to right, each with whether it begins a layer."""
    columns = []
    for layer in _ordered(layers, needed):
        for first in range(0, len(layer), most):
            columns.append((first == 0, layer[first : first + most]))
    return columns


def _ordered(layers: Sequence[list[str]], needed: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Each layer so that a subtask stands near what it needs, and that near what needs it: fewer lines cross."""
    following = order.dependents(needed)
    rank: dict[str, float] = {}
    found = [sorted(layer, key=_natural) for layer in layers]
    for near in (needed, following, needed):
        for layer in found if near is needed else reversed(found):
            beside = {each: _mean([rank[one] for one in near[each] if one in rank]) for each in layer}
            layer.sort(key=beside.__getitem__)
            rank.update((each, number / len(layer)) for number, each in enumerate(layer))
    return found


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """t9 before t10."""
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in _NUMBERS.split(name))


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _curve(start: tuple[float, float], end: tuple[float, float], width: float, height: float) -> str:
    x1, y1, x2, y2 = start[0] + width, start[1] + height / 2, end[0], end[1] + height / 2
    bend = max(20.0, (x2 - x1) / 2)
    return f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"


def _ticks(length_s: float) -> list[float]:
    if length_s <= 0:
        return [0.0]
    step = next((each for each in _TICKS if length_s / each <= _MAX_TICKS), None)
    step = step or 86400 * math.ceil(length_s / 86400 / _MAX_TICKS)
    return [float(second) for second in range(0, int(length_s) + 1, step)]


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
