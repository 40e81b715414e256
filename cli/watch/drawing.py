"""The whole screen of the view as lines of styled text, for any size of terminal. Pure: a `View` in, lines out.

Foreign text passes `visible` and is put into the lines as text, never as markup: there is no markup here at all.
Nothing is said by colour alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from rich.text import Text

from coordinate_agents.cli.layout import cells, cut, span
from coordinate_agents.cli.render_status import following
from coordinate_agents.cli.watch.reader import Look
from coordinate_agents.cli.watch.tree import Node
from coordinate_agents.graph.text import counted, joined_lines, visible

MAX_CELLS: Final = 500
HINTS: Final = "a attach  r answer  t tell  s stop  d diff  i inspect  n next  f filter  ? help  q quit"
_STYLES: Final = {
    "FAILED": "bold red", "STOPPED": "red", "BLOCKED": "red", "SUCCEEDED": "green", "READY": "cyan",
    "WAITING": "dim", "working": "cyan", "verifying": "magenta", "preparing": "dim", "held": "bold",
    "awaiting-input": "bold yellow", "throttled": "yellow",
}  # fmt: skip
# What to press for each kind of attention.
_KEYS: Final = {
    "input": "r answers, a attaches",
    "auth": "a attaches: log in there",
    "unreachable": "i: the way on",
    "failed": "i: why, and the ways on",
    "conflict": "i: why, and the ways on",
    "quota": "goes on by itself",
}
# The widest mark of a state: awaiting-input.
_STATE_CELLS: Final = 14


@dataclass(slots=True)
class View:
    """What is drawn. `shown`: the lines of the list after the filter; `top`: the first of them on the screen.

    `last`: Session to its last line; `terminal`: the selected one's screen; `message`: what an act answered.
    """

    look: Look = field(default_factory=Look)
    shown: Sequence[Node] = ()
    by_id: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cursor: int = 0
    top: int = 0
    filter: str = ""
    last: Mapping[str, str] = field(default_factory=dict)
    terminal: Sequence[str] = ()
    message: Sequence[str] = ()
    now: float = 0.0

    @property
    def selected(self) -> str | None:
        return self.shown[self.cursor].id if self.shown else None


class Heights(NamedTuple):
    """Lines of each part; their sum is the screen's."""

    header: int
    attention: int
    rows: int
    detail: int
    events: int
    message: int
    footer: int


def heights(view: View, height: int) -> Heights:
    """The list gets what is left, at least one line; what helps least goes first on a small screen."""
    items = view.look.status["attention"] if view.look.status else ()
    header = 2 if height >= 10 else 1
    message = min(len(view.message), max(1, height // 4))
    attention = min(2 * len(items), max(2, height // 4)) if height >= 8 else min(len(items), height // 5)
    events = 0 if height < 26 else min(len(view.look.events), 3 if height < 34 else 6) + 1
    detail = 0 if height < 14 else max(4, height // 4)
    rows = height - header - message - attention - events - detail - 1
    if rows < 1:
        detail, rows = 0, max(1, rows + detail)
    return Heights(header, attention, rows, detail, events, message, 1)


def screen(view: View, width: int, height: int) -> list[Text]:
    """Exactly `height` lines of at most `width` cells. `view.top` is moved so that the cursor is seen."""
    sizes = heights(view, height)
    lines = _header(view)[: sizes.header]
    lines += _attention(view, sizes.attention)
    lines += _filled(_rows(view, width, sizes.rows), sizes.rows)
    lines += _filled(_detail(view, width, sizes.detail), sizes.detail)
    if sizes.events:
        told = view.look.events[1 - sizes.events :]
        lines += _filled([_rule("events", width), *(_event(each.time, each.line) for each in told)], sizes.events)
    lines += [Text(visible(line), style="bold") for line in view.message[: sizes.message]]
    lines.append(_footer(view))
    lines = _filled(lines, height)
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """The lines made visible, each cut into pieces of at most `width` cells: nothing of them is left out."""
    found = []
    for line in lines:
        rest = visible(line.replace("\t", "    "), limit=1 << 16)
        while cells(rest) > width > 1:
            piece = cut(rest, width + 1).removesuffix("…") if cells(rest) > width + 1 else rest[:-1]
            piece = piece or rest[0]
            found.append(piece)
            rest = rest[len(piece) :]
        found.append(rest)
    return found


def _header(view: View) -> list[Text]:
    look = view.look
    if look.status is None:
        return [Text(visible(look.problem) if look.problem else "reading the record …", style="bold"), Text()]
    graph = look.status["graph"]
    first = Text(f"{graph['id']}: ", style="bold").append(graph["state"], style=_STYLES.get(graph["state"], ""))
    first.append(f"  {visible(graph['title'])}")
    if look.problem:
        return [first, Text(f"! not up to date: {visible(look.problem)}", style="bold red")]
    second = Text(", ".join(_counts(look.status)))
    second.append(f"  {_driver(view)}", style="" if graph["driver"] else "bold")
    return [first, second]


def _counts(status: Mapping[str, Any]) -> list[str]:
    parts = [f"{count} {place}" for place, count in status["frontier"].items() if count]
    integration = status["integration"]
    if integration:
        parts.append(f"integration {integration['state']}{'' if integration['current'] else ' (of earlier commits)'}")
    if status["review"] and status["review"]["current"]:
        parts.append(f"review {status['review']['state']}")
    return parts


def _driver(view: View) -> str:
    assert view.look.status is not None
    driver = view.look.status["graph"]["driver"]
    if driver is not None:
        stopped = f" IS STOPPED: kill -CONT {driver['pid']}" if driver["life"] == "stopped" else ""
        return f"driven by pid {driver['pid']}{stopped}"
    if view.look.lives:
        return "nobody drives it; what ends is verified, nothing new starts (g drives on)"
    words = [line for line in following(view.look.status) if line]
    return f"nobody drives it. {visible(words[0])}" if words else "nobody drives it"


def _attention(view: View, room: int) -> list[Text]:
    """Two lines each: what it asks, and how to go on. What has no room is counted."""
    items = view.look.status["attention"] if view.look.status else ()
    lines = []
    for item in items:
        who = f" {item['subtask']}" if item["subtask"] else ""
        line = Text(f"! {item['kind']}{who}: ", style="bold yellow")
        lines.append(line.append(visible(joined_lines(item["question"] or "no reason was given"), limit=MAX_CELLS)))
        keys = _KEYS.get(item["kind"]) if item["subtask"] else None
        lines.append(Text(f"    {visible(item['next'] or '')}").append(f"  [{keys}]" if keys else "", style="dim"))
    if len(lines) > room > 1:
        shown = room // 2
        lines[room - 1 :] = [
            Text(f"! … and {len(items) - shown} more need a person; f shows them", style="bold yellow")
        ]
    return lines[:room]


def _rows(view: View, width: int, room: int) -> list[Text]:
    view.cursor = max(0, min(view.cursor, len(view.shown) - 1))
    view.top = max(0, min(view.top, view.cursor, len(view.shown) - room), view.cursor - room + 1)
    if not view.shown:
        words = f"no subtask fits the filter {view.filter}" if view.filter else ""
        return [Text(f"  {visible(words)}", style="dim")]
    window = view.shown[view.top : view.top + room]
    size = min(max(cells(each.guide) + len(each.id) for each in window), max(10, width * 2 // 5))
    return [_row(view, each, size, is_selected=view.top + at == view.cursor) for at, each in enumerate(window)]


def _row(view: View, node: Node, size: int, *, is_selected: bool) -> Text:
    subtask = view.by_id[node.id]
    name = cut(f"{node.guide}{node.id}", size)
    mark = subtask["phase"] if subtask["state"] == "RUNNING" and subtask["phase"] else subtask["state"]
    line = Text("> " if is_selected else "  ")
    line.append(name + " " * (size - cells(name)), style="bold reverse" if is_selected else "")
    line.append(f"  {mark:<{_STATE_CELLS}}", style=_STYLES.get(mark, ""))
    line.append(f" {span(_elapsed(view, subtask)):>7}  ")
    line.append(_words(view, node, subtask), style="dim")
    return line


def _words(view: View, node: Node, subtask: Mapping[str, Any]) -> str:
    """The last thing worth saying of it: what its agent prints, why it stands there, else its title."""
    session = (subtask["session"] or {}).get("id")
    said = view.last.get(session, "") if session and subtask["state"] == "RUNNING" else ""
    words = said or subtask["reason"] or subtask["summary"] or subtask["title"]
    held = "[held by a person] " if subtask["held"] else ""
    also = f"[also after {', '.join(node.also[:3])}{' …' if len(node.also) > 3 else ''}] " if node.also else ""
    return held + also + visible(joined_lines(words), limit=MAX_CELLS)


def _elapsed(view: View, subtask: Mapping[str, Any]) -> float | None:
    """As of now: the record says it as of when it was read."""
    elapsed: float | None = subtask["elapsedS"]
    if elapsed is None or subtask["state"] != "RUNNING":
        return elapsed
    return elapsed + max(0.0, view.now - view.look.at)


def _detail(view: View, width: int, room: int) -> list[Text]:
    """The selected subtask: who works on it and why it stands there; then its terminal, or how it ended."""
    if not view.selected or not room:
        return []
    subtask = view.by_id[view.selected]
    lines = [_rule(f"{subtask['id']}: {visible(subtask['title'], limit=MAX_CELLS)}", width), _facts(subtask)]
    failure = subtask["failure"]
    if subtask["state"] == "RUNNING" and view.terminal:
        inside = [Text(f"  {visible(line, limit=MAX_CELLS)}", style="dim") for line in view.terminal]
        return lines + inside[-max(0, room - len(lines)) :] if room > len(lines) else lines
    if subtask["reason"]:
        lines.append(Text(f"  {visible(subtask['reason'], limit=MAX_CELLS)}"))
    if failure:
        told = [each for each in failure["tail"].splitlines() if each.strip()][-max(1, room - len(lines)) :]
        lines += [Text(f"  | {visible(each, limit=MAX_CELLS)}", style="dim") for each in told]
    elif subtask["summary"]:
        lines.append(Text(f"  {visible(subtask['summary'], limit=MAX_CELLS)}", style="dim"))
    return lines


def _facts(subtask: Mapping[str, Any]) -> Text:
    parts = [f"agent {subtask['agent']}"] if subtask["agent"] else []
    parts.append(f"try {subtask['attempt']}" if subtask["attempt"] else "never started")
    if subtask["dependsOn"]:
        parts.append(f"after {', '.join(subtask['dependsOn'][:6])}{' …' if len(subtask['dependsOn']) > 6 else ''}")
    evidence = subtask["evidence"]
    if subtask["verifiedCommit"]:
        parts.append(f"verified {subtask['verifiedCommit'][:10]}")
    if evidence and evidence["paths"]["count"]:
        parts.append(counted(evidence["paths"]["count"], "path"))
    parts += [f"{check['name']} {check['outcome']}" for check in (evidence or {}).get("checks", ())[:4]]
    if subtask["retryAt"]:
        parts.append(f"tried again at {subtask['retryAt'][:19].replace('T', ' ')} UTC")
    return Text(f"  {visible(', '.join(parts), limit=MAX_CELLS)}")


def _event(time: float, line: str) -> Text:
    return Text(f"{datetime.fromtimestamp(time):%H:%M:%S} {visible(line, limit=MAX_CELLS)}", style="dim")


def _rule(title: str, width: int) -> Text:
    left = f"── {title} "
    return Text(left + "─" * max(0, width - cells(left)))


def _footer(view: View) -> Text:
    shown = f"[{visible(view.filter, limit=40)}: {len(view.shown)} of {len(view.by_id)}] " if view.filter else ""
    return Text(f"{shown}{HINTS}", style="reverse")


def _filled(lines: list[Text], room: int) -> list[Text]:
    return lines[:room] + [Text()] * max(0, room - len(lines))
