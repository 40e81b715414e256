"""The text of graph-inspect, graph-events and graph-diff."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.layout import cell, cut, short, span, table, width
from coordinate_agents.cli.render_status import attention
from coordinate_agents.graph.durations import spell
from coordinate_agents.graph.text import counted, listed, visible_lines

MAX_OUTPUT_LINES: Final = 40
MAX_LINE: Final = 400


def inspect(data: Mapping[str, Any]) -> list[str]:
    """Everything of a graph or subtask, what needs a person first; or the one part that was asked for."""
    if data["part"] in ("diff", "screen", "events"):
        return list(_part(data))
    shown = list(_subtask(data) if data["subtask"] else _graph(data))
    if data["part"] == "failure" or not data.get("attention"):
        return shown
    return [*attention(data["attention"]), "", *shown]


def why(data: Mapping[str, Any]) -> list[str]:
    """One line per fact, indented below what rests on it, with the event that recorded it and a command."""
    lines = []
    for each in data["chain"]:
        recorded = f"  [event {each['seq']}, {each['type']}]" if each["seq"] is not None else ""
        indent = "  " * each["depth"]
        lines.append(
            f"{indent}{'because ' if each['depth'] else ''}{cell(each['subtask'])} {cell(each['fact'])}{recorded}"
        )
        lines.append(f"{indent}    {cell(each['next'])}")
    return lines


def events(data: Mapping[str, Any]) -> list[str]:
    """One line per event; also for one event of a stream."""
    found = [data] if "seq" in data else data["events"]
    return [_event(each) for each in found] or ["No events."]


def diff(data: Mapping[str, Any]) -> list[str]:
    """One line per subtask, or one subtask's diff."""
    if "diff" in data:
        return _safe(data["diff"])
    return _changes(data["subtasks"]) or ["No subtask has a commit yet."]


def _part(data: Mapping[str, Any]) -> Iterator[str]:
    if data["part"] == "events":
        yield from events(data)
    elif data["part"] == "diff":
        yield from _safe(data["diff"] or "No commit yet.") if "diff" in data else _changes(data["subtasks"])
    elif data.get("screen") is None:
        yield "No Session yet." if data["subtask"] else "Name a subtask to see its agent's screen."
    else:
        screen = data["screen"]
        text = (screen.get("log") or {}).get("text") or screen["tail"] or "(no output)"
        yield from visible_lines(text, max_lines=MAX_OUTPUT_LINES, limit=MAX_LINE)
        if data.get("ways"):
            yield ""
        yield from _ways(data, None)


def _graph(data: Mapping[str, Any]) -> Iterator[str]:
    graph = data["graph"]
    yield f"{graph['id']}: {graph['state']}  {cell(graph.get('title'))}"
    rows: list[Sequence[object]] = [("base", graph["baseCommit"]), ("revision", graph["revision"])]
    if graph["driver"]:
        rows.append(("driver", f"pid {graph['driver']['pid']} since {graph['driver']['since']}"))
    if data["part"] is None:
        rows.append(("state folder", data["stateDir"]))
        rows.append(("ended", data["endedReason"]))
    if data.get("sharedChanges"):
        rows.append(("shared git state", listed(data["sharedChanges"], first=20)))
    yield from table([row for row in rows if row[1] is not None], indent="  ")
    integration = data.get("integration")
    if integration:
        yield f"integration: {integration['state']} {short(integration['commit'])}".rstrip()
        yield from _checks(integration["checks"])
        yield from _failure(integration["failure"], with_next=False)
    for failure in data.get("failures", ()):
        yield f"{cell(failure['subtask'])}:"
        yield from _failure(failure)
    yield from _ways(data, integration["failure"] if integration else None)


def _subtask(data: Mapping[str, Any]) -> Iterator[str]:
    subtask = data["subtask"]
    phase = f" ({subtask['phase']})" if subtask["phase"] else ""
    yield cut(f"{data['graph']['id']}/{subtask['id']}: {subtask['state']}{phase}  {cell(subtask['title'])}", width())
    session = data.get("session") or subtask["session"]
    rows = [
        ("reason", subtask["reason"]),
        ("agent", subtask["agent"]),
        ("attempt", subtask["attempt"] or None),
        ("time", span(subtask["elapsedS"]) or None),
        ("limits", _limits(data) if subtask["state"] == "RUNNING" else None),
        ("needs", ", ".join(subtask["dependsOn"]) or None),
        ("needed by", ", ".join(data.get("dependents", ())) or None),
        ("branch", subtask["branch"]),
        ("worktree", subtask["worktree"]),
        ("merge by hand", subtask["conflictWorktree"]),
        ("base", subtask["base"]),
        ("head", subtask["head"]),
        ("verified", subtask["verifiedCommit"]),
        ("certificate", data.get("certificate")),
        ("used", _used(subtask["usage"])),
        ("session", _session(session)),
    ]
    if data["part"] is None:
        yield from table([row for row in rows if row[1] is not None], indent="  ")
    log = data.get("log") or {}
    # The same last lines stand in the log, the failure and the check: they are shown once, from the fullest.
    failure = subtask["failure"]
    yield from _failure(failure, with_tail=not log.get("text"), with_next=False)
    yield from _evidence(subtask["evidence"], data, told=failure["check"] if failure else None)
    if log.get("text"):
        yield f"end of {cell(log['path'])}:"
        yield from _indented(visible_lines(log["text"], max_lines=MAX_OUTPUT_LINES, limit=MAX_LINE))
    refs = data.get("refs") or {}
    if refs:
        yield "kept in git:"
        yield from table([(short(commit), name) for name, commit in refs.items()], indent="  ")
    yield from _ways(data, failure)


def _limits(data: Mapping[str, Any]) -> str | None:
    """How long its turn may take and be silent, and how to give it more while it runs."""
    limits = data.get("limits")
    if limits is None:
        return None
    said = ", ".join(f"{name[:-1]} {spell(value)}" for name, value in limits.items())
    return f"{said}; others: coordinate-agents graph-amend {data['graph']['id']} FILE"


def _used(usage: Mapping[str, Any] | None) -> str | None:
    """What its agents said that they used."""
    if usage is None:
        return None
    names = (
        ("inputTokens", "in"),
        ("cachedTokens", "of them cached"),
        ("outputTokens", "out"),
        ("totalTokens", "in all"),
    )
    parts = [f"{usage[key]:,} {name}" for key, name in names if usage[key] is not None]
    if parts:
        parts[-1] += " (tokens)"
    if usage["costUsd"] is not None:
        parts.append(f"${usage['costUsd']:,.4f}")
    return f"{', '.join(parts)}, in {counted(usage['turns'], 'turn')}, as its agent says"


def _session(session: Mapping[str, Any] | None) -> str | None:
    """Its id, state, program and process, as far as they are known."""
    if session is None:
        return None
    source = f" (named by {session['commandSource']})" if session.get("commandSource") else ""
    program = f", {session['resolvedCommand']}{source}" if session.get("resolvedCommand") else ""
    process = f", process {session['pid']}" if session["pid"] else ""
    return f"{session['id']} {session['state']}{program}{process}"


def _evidence(evidence: Mapping[str, Any] | None, data: Mapping[str, Any], *, told: str | None) -> Iterator[str]:
    facts = data.get("facts", ())
    if facts:
        yield "facts:"
        yield from (f"  {cell(fact)}" for fact in facts)
    if evidence:
        paths = evidence["paths"]
        if paths["count"]:
            yield f"changed: {listed(paths['first'], total=paths['count'], first=8)}"
        if evidence["outsideScope"]:
            yield f"outside its write intent: {listed(evidence['outsideScope'], first=8)}"
        yield from (f"warning: {cell(each)}" for each in evidence.get("warnings", ()))
    yield from _checks(data.get("checks") or (evidence or {}).get("checks", ()), told=told)


def _checks(checks: Sequence[Mapping[str, Any]], *, told: str | None = None) -> Iterator[str]:
    """`told`: the check whose output is shown elsewhere."""
    for check in checks:
        code = f", exit code {check['exitCode']}" if check["exitCode"] else ""
        yield f"check {cell(check['name'])}: {check['outcome']}{code}, {span(check['durationMs'] / 1000)}"
        if check["outcome"] != "passed" and check["name"] != told:
            if check["logPath"]:
                yield f"  log: {cell(check['logPath'])}"
            yield from _indented(visible_lines(check.get("tail", ""), max_lines=MAX_OUTPUT_LINES, limit=MAX_LINE))


def _ways(data: Mapping[str, Any], failure: Mapping[str, Any] | None) -> Iterator[str]:
    """What leads on, each with when it is right; else the failure's own command."""
    ways = data.get("ways") or ()
    if ways:
        yield "Next, whichever fits:"
    for way in ways:
        yield f"  {cell(way['when'])}"
        yield f"    {cell(way['command'])}"
    if not ways and failure and failure["next"]:
        yield f"Next: {cell(failure['next'])}"


def _failure(failure: Mapping[str, Any] | None, *, with_tail: bool = True, with_next: bool = True) -> Iterator[str]:
    if not failure:
        return
    yield f"{failure['code']}: {cell(failure['message'])}"
    if failure["logPath"]:
        yield f"  log: {cell(failure['logPath'])}"
    if with_tail:
        yield from _indented(visible_lines(failure["tail"], max_lines=MAX_OUTPUT_LINES, limit=MAX_LINE))
    if failure.get("kept"):
        yield f"Kept: {cell(failure['kept'])}"
    if with_next and failure["next"]:
        yield f"Next: {cell(failure['next'])}"


def _event(event: Mapping[str, Any]) -> str:
    when = event["time"][:19].replace("T", " ")
    who = event["subtaskId"] or ""
    data = json.dumps(event["data"], ensure_ascii=False, separators=(", ", ": "))
    text = "" if data == "{}" else data.strip("{}")
    return cut(f"{event['seq']:>6}  {when}  {event['type']:<20}  {cell(who)}  {cell(text)}".rstrip(), width())


def _changes(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            each["id"],
            short(each["commit"]),
            "" if each["verified"] else "not verified",
            counted(each["files"], "file"),
            f"+{each['insertions']}",
            f"-{each['deletions']}",
        )
        for each in changes
    ]
    return table(rows)


def _safe(text: str) -> list[str]:
    """A diff line by line: tabs stay readable, everything else that would act on the terminal is shown.

    A line ends where git ends it: a CR or U+2028 inside one would begin a line that looks like none of the diff's.
    """
    return [cell(line.replace("\t", "    ")) for line in text.removesuffix("\n").split("\n")]


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"  | {line}" for line in lines)
