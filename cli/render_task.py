"""The text of the task verbs and of recover-inspect: the state, what needs a person, the facts, what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli import render_inspect, render_review
from coordinate_agents.cli.layout import cell, cut, short, span, table, width
from coordinate_agents.cli.render_status import attention
from coordinate_agents.graph.text import counted, visible_lines

MAX_LINES: Final = 10


def task(data: Mapping[str, Any]) -> list[str]:
    """One Task, and what the verb advises."""
    found = data["task"]
    if "changed" in data:
        return _brief(data)
    lines = [cut(f"{found['id']}: {found['state']}  {cell(found['title'])}", width())]
    if data.get("attention"):
        lines += ["", *attention(data["attention"]), ""]
    lines += table(list(_facts(found)), indent="  ")
    lines += _words("summary, in its agent's words", found["summary"])
    if found["review"] is not None:
        lines += list(_review(found["review"]))
    if found["failure"] is not None:
        lines += _words("failure", found["failure"]["message"])
    advice = data.get("advice") or [f"Next: {found['next']}"]
    return [*lines, "", *(cell(line) for line in advice)]


def inspect(data: Mapping[str, Any]) -> list[str]:
    """As graph-inspect of the one subtask, below the Task's state."""
    found = data["task"]
    head = f"{found['id']}: {found['state']}  {cell(found['title'])}"
    return [cut(head, width()), *render_inspect.inspect({**data, "task": data.get("document")})]


def review(data: Mapping[str, Any]) -> list[str]:
    """What is to be decided about, when nothing was decided by this call; always where it stands."""
    shown = [] if data["decided"]["decision"] else [*render_review.material(data["material"]), ""]
    return [*shown, *task(data)]


def recovery(data: Mapping[str, Any]) -> list[str]:
    """Graph by graph, what is there now beside what is recorded."""
    lines: list[str] = []
    for graph in data["graphs"]:
        driver = f", driven by pid {graph['driver']}" if graph["driver"] else ""
        lines.append(f"{graph['id']}: {_OUTLOOKS[graph['outlook']]}{driver}")
        lines += table([_row(each) for each in graph["subtasks"]], titles=_TITLES, indent="  ")
        for each in graph["subtasks"]:
            lines += [cut(f"  {each['subtask']}: {cell(problem)}", width()) for problem in each["problems"]]
        lines.append(f"  Next: {cell(graph['next'])}")
    if data["left"]:
        lines.append(f"… and {counted(data['left'], 'more graph')}; name one")
    return lines or ["Nothing is unfinished."]


_OUTLOOKS: Final[Mapping[str, str]] = {
    "due": "something ended, and nobody recorded it yet",
    "alive": "something runs",
    "nothing": "what is recorded is what is there",
}
_TITLES: Final = ("SUBTASK", "RECORDED", "SESSION", "IS", "EXIT", "WORKTREE", "BRANCH AT", "NOTE")


def _row(each: Mapping[str, Any]) -> Sequence[object]:
    session = each["session"] or {}
    ended = session.get("exitCode") if session.get("signal") is None else f"signal {session['signal']}"
    return (
        each["subtask"],
        each["state"],
        session.get("id"),
        session.get("state") if session.get("liveness") == "live" else session.get("liveness"),
        ended,
        each["worktree"],
        short(each["branchAt"]),
        each["reason"],
    )


def _brief(data: Mapping[str, Any]) -> list[str]:
    found = data["task"]
    lines = [f"{found['id']}: {found['state']}, cursor {data['cursor']}{'' if data['changed'] else ', no change'}"]
    return [*lines, *(attention(data["attention"]) if data.get("attention") else [])]


def _facts(found: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    session = found["session"]
    rows: list[tuple[str, object]] = [
        ("phase", found["phase"]),
        ("reason", found["reason"]),
        ("agent", f"{found['agent']}, attempt {found['attempt']}" if found["attempt"] else found["agent"]),
        ("session", f"{session['id']} ({session['state']})" if session else None),
        ("time", span(found["elapsedS"]) or None),
        ("branch", found["branch"]),
        ("worktree", found["worktree"]),
        ("verified", found["verifiedCommit"]),
        ("driver", f"pid {found['driver']['pid']}" if found["driver"] else None),
    ]
    yield from (row for row in rows if row[1] is not None)


def _review(made: Mapping[str, Any]) -> Iterator[str]:
    earlier = "" if made["current"] else " (of earlier work)"
    yield f"  {made['decision']}{earlier} of {short(made['commit'])} by {cell(made['who'] or 'user')}"
    yield from _words("feedback", made["feedback"])


def _words(title: str, text: str | None) -> list[str]:
    if not text:
        return []
    lines = visible_lines(text.rstrip(), max_lines=MAX_LINES, limit=max(20, width() - 4))
    return [f"  {title}:", *(f"    {line}" for line in lines)]
