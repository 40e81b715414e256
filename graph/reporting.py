"""What a report of a graph says: from its status and its log to values that only have to be laid out. Pure.

Every text that somebody else could have written passes `visible` here, once; whoever lays it out escapes it for their
own form and nothing more. It names no folder, log or process of this machine, but for what is quoted in a message.
The same log gives the same report.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.graph.model import SubtaskId, TaskGraph
from coordinate_agents.graph.report_model import (
    Attention,
    Bar,
    Change,
    Check,
    Decision,
    Evidence,
    Failure,
    Integration,
    Line,
    Report,
    Step,
    Usage,
    Wait,
)
from coordinate_agents.graph.store.rows import EventRow
from coordinate_agents.graph.text import listed, visible, visible_lines
from coordinate_agents.graph.timeline import INTEGRATION, Span, Stretch, Timeline, timeline
from coordinate_agents.graph.view import iso
from coordinate_agents.graph.ways_out import Way
from coordinate_agents.worktrees.values import value_class

# A report is read by people; what is beyond is counted.
MAX_WAITS: Final = 100
MAX_DECISIONS: Final = 100
MAX_TAIL_LINES: Final = 30
MAX_FACTS: Final = 40
MAX_PATHS: Final = 8
_TITLE: Final = 200
_LINE: Final = 400
# Shorter waits are the program's own work between two events.
_NOTICED_S: Final = 0.05

PHASES: Final[Mapping[str, str]] = {
    "preparing": "preparing the worktree",
    "working": "agent at work",
    "verifying": "verifying",
    "awaiting-input": "waiting for a person",
    "throttled": "waiting for its service",
    "held": "held by a person",
}


@value_class
class Known:
    """`status`: the data of graph-status; `changes` and `ways` by subtask, of the integration by its reserved name."""

    status: Mapping[str, Any]
    graph: TaskGraph
    events: Sequence[EventRow]
    changes: Mapping[str, Change]
    ways: Mapping[str, Sequence[Way]]


def report(known: Known) -> Report:
    status, events = known.status, known.events
    told = timeline(known.graph, events)
    on_path = {told.stretches[number].subtask for number in told.path}
    facts = {row.subtask_id: row.data.get("facts", ()) for row in events if row.type == "FactsRecorded"}
    of_subtask: dict[str, list[Stretch]] = {}
    for stretch in told.stretches:
        of_subtask.setdefault(stretch.subtask, []).append(stretch)
    lines = tuple(
        _line(known, each, told.begin, of_subtask.get(each["id"], ()), facts.get(each["id"], ()), on_path)
        for each in status["subtasks"]
    )
    steps = tuple(_steps(told))
    waits = sorted(_waits(known.graph, told), key=lambda wait: (-wait.length_s, wait.subtask))
    decisions = [found for row in events if (found := _decision(row)) is not None]
    graph = status["graph"]
    return Report(
        graph=graph["id"],
        title=visible(graph["title"] or graph["id"], limit=_TITLE),
        state=graph["state"],
        revision=graph["revision"],
        base=graph["baseCommit"],
        as_of=iso(told.end),
        seq=events[-1].seq if events else 0,
        begin=iso(told.begin),
        length_s=told.end - told.begin,
        max_concurrency=graph["maxConcurrency"],
        counts=tuple((place, count) for place, count in status["frontier"].items() if count),
        attention=tuple(_attention(each) for each in status["attention"]),
        lines=lines,
        edges=tuple((needed, each["id"]) for each in status["subtasks"] for needed in each["dependsOn"]),
        path=steps,
        path_phases=_summed(step.phases for step in steps),
        waits=tuple(waits[:MAX_WAITS]),
        waits_left_out=max(0, len(waits) - MAX_WAITS),
        decisions=tuple(decisions[-MAX_DECISIONS:]),
        decisions_left_out=max(0, len(decisions) - MAX_DECISIONS),
        integration=_integration(status["integration"], known.ways.get(INTEGRATION, ())),
        review=_review(status["review"]),
        deliveries=tuple(_delivery(each) for each in status["deliveries"]),
        usage=total_usage([line.usage for line in lines]),
    )


def total_usage(parts: Sequence[Usage | None]) -> Usage | None:
    """The sum of what was said; None when nothing was."""
    said = [each for each in parts if each is not None]
    if not said:
        return None
    return Usage(
        sum(each.turns for each in said),
        _sum([each.input_tokens for each in said]),
        _sum([each.cached_tokens for each in said]),
        _sum([each.output_tokens for each in said]),
        _sum([each.total_tokens for each in said]),
        _sum([each.cost_usd for each in said]),
    )


def _sum(parts: Sequence[Any]) -> Any:
    known = [each for each in parts if each is not None]
    return sum(known) if known else None


def _line(
    known: Known,
    subtask: Mapping[str, Any],
    begin: float,
    stretches: Sequence[Stretch],
    facts: Sequence[str],
    on_path: set[SubtaskId],
) -> Line:
    bars = [
        Bar(span.phase, span.begin - begin, span.end - begin, stretch.attempt, visible(span.note, limit=_LINE))
        for stretch in stretches
        for span in stretch.spans
    ]
    return Line(
        id=subtask["id"],
        title=visible(subtask["title"] or subtask["id"], limit=_TITLE),
        state=subtask["state"],
        phase=subtask["phase"] or "",
        reason=visible(subtask["reason"] or "", limit=_LINE),
        agent=visible(subtask["agent"] or "", limit=_TITLE),
        attempt=subtask["attempt"],
        depends_on=tuple(subtask["dependsOn"]),
        branch=subtask["branch"] or "",
        commit=subtask["verifiedCommit"] or subtask["head"] or "",
        is_verified=subtask["verifiedCommit"] is not None,
        elapsed_s=sum(each.end - each.begin for each in stretches),
        bars=tuple(bars),
        summary=visible(subtask["summary"] or "", limit=_LINE),
        change=known.changes.get(subtask["id"]),
        usage=_usage(subtask["usage"]),
        evidence=_evidence(subtask["evidence"], facts),
        failure=_failure(subtask["failure"], known.ways.get(subtask["id"], ())),
        is_on_path=subtask["id"] in on_path,
    )


def _usage(usage: Mapping[str, Any] | None) -> Usage | None:
    if usage is None:
        return None
    keys = ("turns", "inputTokens", "cachedTokens", "outputTokens", "totalTokens", "costUsd")
    return Usage(*(usage[key] for key in keys))


def _evidence(evidence: Mapping[str, Any] | None, facts: Sequence[str]) -> Evidence | None:
    if evidence is None and not facts:
        return None
    seen = evidence or {}
    outside = seen.get("outsideScope", ())
    return Evidence(
        facts=tuple(visible(fact, limit=_LINE) for fact in facts[:MAX_FACTS]),
        checks=_checks(seen.get("checks", ())),
        outside_scope=(listed(outside, first=MAX_PATHS),) if outside else (),
        warnings=tuple(visible(each, limit=_LINE) for each in seen.get("warnings", ())),
        waivers=tuple(
            visible(f"{each['what']}, by {each['who']}: {each['reason']}", limit=_LINE)
            for each in seen.get("waivers", ())
        ),
    )


def _checks(checks: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    return tuple(
        Check(visible(each["name"], limit=_TITLE), each["outcome"], each["exitCode"], (each["durationMs"] or 0) / 1000)
        for each in checks
    )


def _failure(failure: Mapping[str, Any] | None, ways: Sequence[Way]) -> Failure | None:
    if failure is None:
        return None
    shown = ways or ((Way("next", failure["next"]),) if failure["next"] else ())
    return Failure(
        code=failure["code"],
        message=visible(failure["message"], limit=_LINE),
        tail=visible_lines(failure["tail"] or "", max_lines=MAX_TAIL_LINES, limit=_LINE),
        ways=tuple(Way(way.when, visible(way.command, limit=_LINE)) for way in shown),
    )


def _attention(item: Mapping[str, Any]) -> Attention:
    question = visible(item["question"] or "", limit=_LINE)
    return Attention(item["subtask"] or "", item["kind"], question, visible(item["next"], limit=_LINE))


def _integration(integration: Mapping[str, Any] | None, ways: Sequence[Way]) -> Integration | None:
    if integration is None:
        return None
    state = integration["state"] if integration["current"] else f"{integration['state']}, of earlier commits"
    return Integration(
        state,
        integration["commit"] or "",
        _checks(integration["checks"]),
        _failure(integration["failure"], ways),
    )


def _review(review: Mapping[str, Any] | None) -> str:
    if review is None:
        return ""
    words = f"{review['state']} of {(review['commit'] or '')[:12]} by {review['who'] or 'nobody yet'}"
    return visible(f"{words}: {review['feedback']}" if review["feedback"] else words, limit=_LINE)


def _delivery(delivery: Mapping[str, Any]) -> str:
    how = "squashed" if delivery["isSquashed"] else "as it is"
    return visible(f"{delivery['branch']} at {delivery['commit'][:12]}, {how}, by {delivery['who']}", limit=_LINE)


def _steps(told: Timeline) -> Iterator[Step]:
    for number in told.path:
        each = told.stretches[number]
        before = told.stretches[each.before] if each.before is not None else None
        since = min(before.end, each.begin) if before is not None else told.begin
        yield Step(
            subtask=each.subtask,
            attempt=each.attempt,
            why=_why(each),
            waited_s=max(0.0, each.begin - since),
            begin_s=each.begin - told.begin,
            length_s=each.end - each.begin,
            phases=_summed([[(span.phase, span.length_s) for span in each.spans]]),
        )


def _why(stretch: Stretch) -> str:
    match stretch.why:
        case "start":
            return "began with the run"
        case "needs":
            return f"after {stretch.other} was verified"
        case "slots":
            return f"when {stretch.other} gave its slot back"
        case "conflict":
            return f"after {stretch.other}, which may write the same paths"
        case "resource":
            return f"after {stretch.other}, which had a token that it needs"
        case "again":
            return "its next attempt"
        case "drive":
            return "when somebody drove the graph again"
        case "person":
            return f"when {stretch.words}"


def _waits(graph: TaskGraph, told: Timeline) -> Iterator[Wait]:
    needed = {task.id: len(task.depends_on) for task in graph.tasks}
    begun: set[SubtaskId] = set()
    for each in told.stretches:
        if each.subtask != INTEGRATION:
            if each.subtask not in begun and each.needed is not None:
                count = needed.get(each.subtask, 0)
                last = f"for {each.needed}" + (f", the last of its {count} prerequisites" if count > 1 else "")
                yield from _wait(each.subtask, each.ready_at - told.begin, last)
            if each.why in ("slots", "conflict", "resource"):
                yield from _wait(each.subtask, each.begin - each.ready_at, f"ready; it began {_why(each)}")
            for span in each.spans:
                yield from _inside(each.subtask, span)
        begun.add(each.subtask)


def _inside(subtask: str, span: Span) -> Iterator[Wait]:
    if span.phase in ("awaiting-input", "throttled", "held"):
        words = PHASES[span.phase]
        yield from _wait(subtask, span.length_s, f"{words}: {span.note}" if span.note else words)


def _wait(subtask: str, length_s: float, what: str) -> Iterator[Wait]:
    if length_s >= _NOTICED_S:
        yield Wait(subtask, length_s, visible(what, limit=_LINE))


def _decision(row: EventRow) -> Decision | None:
    data, who = row.data, str(row.data.get("who") or "")
    match row.type:
        case "TaskReset" if who:
            said = f"; said: {data['say']}" if data.get("say") else ""
            what = f"made ready again: {data.get('reason', '')}{said}"
        case "TaskTold":
            what = f"told its agent: {data.get('text', '')}"
        case "TaskHeld" | "TaskReleased":
            what = "held it" if row.type == "TaskHeld" else "released it"
        case "ReviewDecided":
            what = f"{data['decision']} of {str(data['commit'])[:12]}: {data.get('feedback', '')}".rstrip(": ")
        case "SharedAccepted":
            what = f"accepted the shared git state {str(data['fingerprint'])[:12]}"
        case "ResolutionRecorded":
            what = f"merged {str(data['ours'])[:12]} and {str(data['theirs'])[:12]} as {str(data['commit'])[:12]}"
        case "GraphAmended":
            what = f"amended the graph to revision {data['revision']}"
        case "BranchDelivered":
            what = f"delivered {str(data['commit'])[:12]} as {data['branch']}"
        case "VerificationStarted" if data.get("waivers"):
            waived = ", ".join(f"{each['what']} ({each['reason']})" for each in data["waivers"])
            what = f"asked for a verdict that accepts {waived}"
        case "TaskStopped":
            what, who = f"stopped: {data.get('reason', '')}", who or "the run"
        case _:
            return None
    # An event leaves out a field at its default; of `who` that is the user.
    by = visible(who or "user", limit=_TITLE)
    return Decision(iso(row.time), by, visible(what, limit=_LINE), row.subtask_id or "")


def _summed(
    parts: "Iterator[Sequence[tuple[str, float]]] | Sequence[Sequence[tuple[str, float]]]",
) -> tuple[tuple[str, float], ...]:
    """The phases with the sum of their lengths, in the order of PHASES."""
    sums = dict.fromkeys(PHASES, 0.0)
    for part in parts:
        for phase, length in part:
            sums[phase] = sums.get(phase, 0.0) + length
    return tuple((phase, length) for phase, length in sums.items() if length > 0)
