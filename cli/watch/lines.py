"""A widget that shows given lines, and nothing else: what is drawn is decided elsewhere.

The lines are rich `Text`: their words are never read as markup. Only lines that changed are drawn again.
"""

from collections.abc import Sequence

from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Lines(Widget):
    """Fills its place; what lies beyond the lines is empty."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Text] = []

    def put(self, lines: Sequence[Text]) -> None:
        """Show these from the top."""
        before, self._lines = self._lines, list(lines)
        changed = [
            Region(0, at, self.size.width, 1)
            for at in range(max(len(before), len(lines)))
            if (before[at : at + 1] != self._lines[at : at + 1]) or _differ(before, self._lines, at)
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width)
        segments = self._lines[y].render(self.app.console, end="")
        return Strip(segments).adjust_cell_length(self.size.width)


def _differ(before: Sequence[Text], after: Sequence[Text], at: int) -> bool:
    """Equal texts may still be styled differently: `Text` compares its spans, not its own style."""
    return at < len(before) and at < len(after) and before[at].style != after[at].style
