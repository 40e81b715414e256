"""What lies over the view for a moment: a question, a line to type, an answer to an agent, pages of text."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from coordinate_agents.cli.watch.drawing import wrapped
from coordinate_agents.cli.watch.lines import Lines

MAX_INPUT: Final = 8000
_MARGIN: Final = 4


def _texts(lines: Sequence[str], width: int) -> list[Text]:
    return [Text(line) for line in wrapped(lines, max(8, width))]


class Box(ModalScreen[Any]):
    """A box of lines, with a line to type below them where one is wanted. Escape leaves it with None."""

    DEFAULT_CSS: ClassVar[str] = """
    Box { align: center middle; background: transparent; }
    Box > Vertical { width: 90%; max-width: 110; height: auto; max-height: 100%; border: solid ansi_bright_blue;
                     background: ansi_default; padding: 0 1; }
    Box Lines { height: auto; }
    Box Input { border: none; height: 1; background: ansi_default; padding: 0; }
    """

    def __init__(self, lines: Sequence[str], *, types: bool = False) -> None:
        super().__init__()
        self._given = list(lines)
        self._types = types

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines()
            if self._types:
                yield Input(max_length=MAX_INPUT, compact=True)

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        room = max(8, min(width * 9 // 10, 110) - _MARGIN)
        shown = _texts(self._given, room)[: max(1, height - 2 - (1 if self._types else 0))]
        lines = self.query_one(Lines)
        lines.styles.height = len(shown)
        lines.put(shown)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)

    def on_key(self, event: events.Key) -> None:
        # A key that goes on is looked up among the bindings: Enter is one of the line's. What was taken here must not
        # be taken once more by the view below.
        if not self._types or event.key == "escape":
            event.stop()
            self.pressed(event.key)

    def pressed(self, key: str) -> None:
        """(A handler of events is called for every class; this is overridden.)"""
        if key == "escape":
            self.dismiss(None)


class Confirm(Box):
    """True for y; everything else is no."""

    def __init__(self, question: str, command: str) -> None:
        super().__init__([question, "", f"  {command}", "", "y: do it    any other key: no"])

    def pressed(self, key: str) -> None:
        self.dismiss(key == "y")


class Given(NamedTuple):
    """An answer to a Session's question: the field of session-answer, and its value."""

    field: str
    value: Any


class Answer(Box):
    """How to answer the question that is shown; None leaves it unanswered."""

    def __init__(self, question: Mapping[str, Any]) -> None:
        self._known = question["answers"]
        self._options = [str(option["id"]) for option in question["options"][:9]]
        ways = [
            *(["y: allow"] if "allow" in self._known else []),
            *(["n: deny"] if "deny" in self._known else []),
            *([] if self._options else ["1-9: choose that option", "t: type an answer"]),
            "escape: leave it",
        ]
        asked = [f"  {line}" for line in question["text"].splitlines() if line.strip()]
        offered = [f"  {at}: {option['name']}" for at, option in enumerate(question["options"][:9], 1)]
        super().__init__([f"It asks ({question['kind']}):", *asked, *offered, "", "    ".join(ways)])

    def pressed(self, key: str) -> None:
        if key == "y" and "allow" in self._known:
            self.dismiss(Given("allow", True))
        elif key == "n" and "deny" in self._known:
            self.dismiss(Given("deny", True))
        elif key == "t" and not self._options:
            self.dismiss(Given("text", None))
        elif key.isdigit() and key != "0":
            self._choose(int(key))
        else:
            super().pressed(key)

    def _choose(self, number: int) -> None:
        """Of what the agent offers by its id; a dialog on a screen takes the number itself."""
        if not self._options:
            self.dismiss(Given("option", str(number)))
        elif number <= len(self._options):
            self.dismiss(Given("option", self._options[number - 1]))


class Pages(Screen[None]):
    """Text that may be longer than the screen."""

    DEFAULT_CSS: ClassVar[str] = "Pages Lines { height: 100%; }"
    _STEPS: ClassVar[Mapping[str, int]] = {"down": 1, "j": 1, "enter": 1, "up": -1, "k": -1}

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._given = list(lines)
        self._all: list[Text] = []
        self._top = 0

    def compose(self) -> ComposeResult:
        yield Lines()

    def on_resize(self, event: events.Resize) -> None:
        self._all = _texts(self._given, event.size.width)
        self._draw(event.size.height)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        page = max(1, self.size.height - 2)
        key = event.key
        if key in ("q", "escape"):
            self.dismiss(None)
            return
        if key in ("home", "end"):
            self._top = 0 if key == "home" else len(self._all)
        self._top += self._STEPS.get(key, 0) + page * ((key in ("pagedown", "space")) - (key in ("pageup", "b")))
        self._draw(self.size.height)

    def _draw(self, height: int) -> None:
        room = max(1, height - 1)
        self._top = max(0, min(self._top, len(self._all) - room))
        shown = self._all[self._top : self._top + room]
        foot = f"{self._title}  lines {self._top + 1}-{self._top + len(shown)} of {len(self._all)}  (q: back)"
        self.query_one(Lines).put([*shown, *[Text()] * (room - len(shown)), Text(foot, style="reverse")])
