"""The live view of a drive: what needs a person, one line per running subtask, the rest counted; within the terminal.

Lines worth keeping (verified, failed, conflicts) are printed above and scroll away as in a build log; the view below
is drawn again a few times a second by rich's own thread. That thread reads only `_View`, under its lock.
"""

import heapq
import threading
import time as clock
from dataclasses import dataclass, field
from typing import Final, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from coordinate_agents.cli.layout import span
from coordinate_agents.cli.progress import quiet
from coordinate_agents.cli.progress_words import PASSING, describe
from coordinate_agents.graph.events import Event
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import visible

REFRESH_PER_S: Final = 4
MAX_ATTENTION: Final = 3
# Besides the view: the line where the cursor stands, and one to see that something is above.
_SPARE_LINES: Final = 2
_STYLES: Final = {"working": "cyan", "verifying": "magenta", "preparing": "dim", "awaiting-input": "bold yellow"}


@dataclass(slots=True)
class _Running:
    phase: str
    since: float
    last_line: str = ""


@dataclass(slots=True)
class _View:
    """What is drawn. Invariant: read and changed only under `lock`."""

    title: str = ""
    started: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    running: dict[SubtaskId, _Running] = field(default_factory=dict)
    attention: list[str] = field(default_factory=list)
    integration: str = "none"
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self.lock:
            lines = self._lines(max(3, console.height - _SPARE_LINES))
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
            line.truncate(options.max_width, overflow="ellipsis")
            yield line

    def _lines(self, room: int) -> list[Text]:
        lines = [Text(f"! {text}", style="bold yellow") for text in self.attention]
        left = room - len(lines) - 1
        running = sorted(self.running.items(), key=lambda item: (item[1].since, item[0]))
        shown = running if len(running) <= left else running[: max(0, left - 1)]
        size = max((len(subtask) for subtask, _ in shown), default=0)
        lines += [_running_line(subtask, each, size) for subtask, each in shown]
        if len(shown) < len(running):
            lines.append(Text(f"… and {len(running) - len(shown)} more running", style="dim"))
        return [*lines, self._summary()]

    def _summary(self) -> Text:
        parts = [f"{count} {place}" for place, count in self.counts.items() if count]
        if self.integration != "none":
            parts.append(f"integration {self.integration}")
        return Text(f"{self.title}  {span(clock.time() - self.started)}  {', '.join(parts)}", style="bold")


def _running_line(subtask: SubtaskId, each: _Running, size: int) -> Text:
    line = Text(f"  {subtask:<{size}}  ")
    line.append(f"{each.phase:<14}", style=_STYLES.get(each.phase, ""))
    line.append(f"  {span(clock.time() - each.since):>7}  ")
    line.append(each.last_line, style="dim")
    return line


class LiveProgress:
    """Implements the port `Progress` on a terminal."""

    wants_output = True

    def __init__(self, stream: TextIO) -> None:
        self.is_broken = False
        self._view = _View()
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(
            self._view,
            console=self._console,
            refresh_per_second=REFRESH_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    @quiet
    def begin(self, snapshot: Snapshot) -> None:
        with self._view.lock:
            self._view.title = str(snapshot.graph.id)
            self._view.started = clock.time()
        self._take(snapshot)
        self._live.start()

    @quiet
    def event(self, snapshot: Snapshot, event: Event, time: float) -> None:
        self._take(snapshot)
        line = describe(snapshot, event)
        if line is not None and not isinstance(event, PASSING):
            self._console.print(Text(f"{clock.strftime('%H:%M:%S', clock.localtime(time))} {line}"), soft_wrap=True)

    @quiet
    def output(self, subtask: SubtaskId, last_line: str) -> None:
        with self._view.lock:
            if subtask in self._view.running:
                self._view.running[subtask].last_line = visible(last_line, limit=200)

    @quiet
    def notice(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def end(self, snapshot: Snapshot) -> None:
        """Leave the terminal as it was, also after something broke: the cursor must come back."""
        try:
            self._live.stop()
            self._console.print()
        except Exception:
            self.is_broken = True

    def _take(self, snapshot: Snapshot) -> None:
        """Copy what is drawn out of the snapshot, which belongs to the event loop's thread. Costs the running ones."""
        now = clock.time()
        running: dict[SubtaskId, _Running] = {}
        with self._view.lock:
            for subtask in snapshot.frontier.members("running"):
                run = snapshot.runs[subtask]
                before = self._view.running.get(subtask)
                phase, since = run.phase or "preparing", run.started_at or now
                running[subtask] = _Running(phase, since, before.last_line if before else "")
            self._view.running = running
            self._view.counts = {str(place): count for place, count in snapshot.frontier.counts().items()}
            self._view.integration = snapshot.summary.integration.state
            self._view.attention = _attention(snapshot)


def _attention(snapshot: Snapshot) -> list[str]:
    """The most urgent of what needs a person: the graph itself, who waits, what failed; of each the first by id."""
    found = ["the shared git state was changed"] if snapshot.summary.shared_changes else []
    waiting = [each for each in snapshot.frontier.members("running") if snapshot.runs[each].phase == "awaiting-input"]
    found += [f"{each} waits for a person" for each in heapq.nsmallest(MAX_ATTENTION, waiting)]
    for each in heapq.nsmallest(MAX_ATTENTION, snapshot.frontier.members("failed")):
        found.append(f"{each} failed: {visible(snapshot.runs[each].reason or '', limit=200)}")
    return found[:MAX_ATTENTION]
