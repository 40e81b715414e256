"""Lines for people: columns, widths, spans of time. Foreign text goes through `visible` here, before it is laid out."""

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import Final

from coordinate_agents.graph.text import visible

# Where nobody looks at a terminal, lines may be as long as what they say, within reason.
WIDE: Final = 300


def width() -> int:
    """Columns to use: the terminal's, else `WIDE`."""
    if sys.stdout is not None and sys.stdout.isatty():
        return max(20, shutil.get_terminal_size((80, 24)).columns)
    return WIDE


def table(rows: Sequence[Sequence[object]], *, titles: Sequence[str] = (), indent: str = "") -> list[str]:
    """The rows as aligned columns, two spaces between, below their titles; nothing without a row.

    The last column is cut at the width; columns that are empty in every row vanish with their title.
    """
    texts = [[cell(value) for value in row] for row in rows]
    if not texts:
        return []
    used = [index for index in range(len(texts[0])) if any(row[index] for row in texts)]
    lines = [list(titles), *texts] if titles else texts
    sizes = [max(cells(row[index]) for row in lines) for index in range(len(texts[0]))]
    room = width()
    return [_line(row, sizes, used, indent, room) for row in lines]


def cell(value: object) -> str:
    """One value as text that is safe for a terminal; None is empty."""
    return "" if value is None else visible(str(value))


def cells(text: str) -> int:
    """Terminal columns that the text takes. Source: Unicode TR11, wide and fullwidth characters take two."""
    if text.isascii():
        return len(text)
    return sum(_char_cells(char) for char in text)


def cut(text: str, columns: int) -> str:
    """The text within so many columns; a cut one ends in ``…``."""
    if cells(text) <= columns:
        return text
    kept, used = [], 1
    for char in text:
        used += _char_cells(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + "…" if columns > 0 else ""


def span(seconds: float | None) -> str:
    """A length of time as ``8s``, ``3m02s``, ``2h05m``, ``3d04h``; empty for None."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def size(count: int) -> str:
    """Bytes as ``512 B``, ``3.4 MiB``."""
    number = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def short(commit: str | None) -> str:
    return commit[:10] if commit else ""


def _char_cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _line(row: Sequence[str], sizes: Sequence[int], used: Sequence[int], indent: str, room: int) -> str:
    parts = []
    for index in used[:-1]:
        parts.append(row[index] + " " * (sizes[index] - cells(row[index])))
    line = indent + "".join(f"{part}  " for part in parts)
    if used:
        line += cut(row[used[-1]], max(8, room - cells(line)))
    return line.rstrip()
