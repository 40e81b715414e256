"""Logs of graphs that never ran: event rows in a chosen order of time, and the report of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinate_agents.graph.events import (
    CheckEnded,
    DriveStarted,
    Event,
    EvidenceSummary,
    FactsRecorded,
    Failure,
    IntegrationJudged,
    IntegrationStarted,
    PhaseChanged,
    TaskClaimed,
    TaskJudged,
    TaskReset,
    TurnEnded,
    event_type,
    subtask_of,
    to_data,
)
from coordinate_agents.graph.evidence import CheckOutcome, Waiver
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph, to_json
from coordinate_agents.graph.report_model import Change, Report
from coordinate_agents.graph.reporting import Known, report
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.store.rows import EventRow, GraphRow
from coordinate_agents.graph.view import status_data
from coordinate_agents.graph.ways_out import Way

BASE = CommitId("1" * 40)
START = 1_700_000_000.0
DONE = CommitId("2" * 40)
# What a title, a name, an output or a person's words may hold: tags, markup, templates, mentions, control characters.
HOSTILE = (
    "<script>alert(1)</script> \"'><img src=http://x.invalid/p onerror=alert(2)> {{ 7 * 7 }} {% raw %} &lt; "
    "[l](javascript:alert(3)) ![i](http://x.invalid/q) @everyone #1 `code` | cell www.x.invalid <!-- --> ]]> "
    "\x1b[2J\u202e"
)


def rows_of(told: Sequence[tuple[float, Event]]) -> tuple[EventRow, ...]:
    """Each event at so many seconds after START."""
    return tuple(
        EventRow(
            number, START + at, 1, "g", str(subtask) if (subtask := subtask_of(event)) else None, None,
            event_type(event), to_data(event), "",
        )
        for number, (at, event) in enumerate(told, 1)
    )  # fmt: skip


def report_on(
    graph: TaskGraph,
    told: Sequence[tuple[float, Event]],
    *,
    changes: Mapping[str, Change] | None = None,
    ways: Mapping[str, Sequence[Way]] | None = None,
) -> Report:
    """The report of the fold of the events."""
    snapshot = Snapshot(graph)
    for at, event in told:
        snapshot.fold(event, time=START + at)
    row = GraphRow("g", graph.title, 1, BASE, to_json(graph), "", "{}", START, 1, len(told), "")
    status: dict[str, Any] = status_data(row, snapshot, driver=None, now=START + told[-1][0] if told else START)
    return report(Known(status, graph, rows_of(told), changes or {}, ways or {}))


def hostile_report() -> Report:
    """Every text that somebody else may write is HOSTILE, in every place of a report."""
    A, B = SubtaskId("a"), SubtaskId("b")
    check = CheckOutcome(HOSTILE[:150], ("sh",), "failed", 1, tail=HOSTILE)
    failure = Failure("CHECK_FAILED", HOSTILE, tail=f"{HOSTILE}\n```\n~~~\n</pre>{HOSTILE}", next=HOSTILE)
    evidence = EvidenceSummary(
        DONE, BASE, checks=(check,), outside_scope=(HOSTILE,), warnings=(HOSTILE,),
        waivers=(Waiver(HOSTILE, HOSTILE, HOSTILE),),
    )  # fmt: skip
    log: list[tuple[float, Event]] = [
        (0, DriveStarted(1)),
        (0, TaskClaimed(A, 1, HOSTILE, "n")),
        (2, PhaseChanged(A, "awaiting-input", HOSTILE)),
        (4, PhaseChanged(A, "working")),
        (5, TurnEnded(A, "s", "exit", 0, summary=HOSTILE)),
        (6, FactsRecorded(A, DONE, (HOSTILE,))),
        (6, CheckEnded(A, DONE, check)),
        (7, TaskJudged(A, False, DONE, evidence, failure=failure)),
        (8, TaskReset(B, HOSTILE, say=HOSTILE, who=HOSTILE)),
        (9, IntegrationStarted(())),
        (10, IntegrationJudged(DONE, False, (check,), failure)),
    ]
    graph = TaskGraph(GraphId("g"), HOSTILE, (Task(A, HOSTILE), Task(B, HOSTILE, depends_on=(A,))))
    ways = {"a": (Way("first", HOSTILE),), "integration": (Way("first", HOSTILE),)}
    return report_on(graph, log, changes={"a": Change(1, 2, 3)}, ways=ways)
