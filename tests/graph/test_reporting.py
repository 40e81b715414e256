"""A report: when things happened, why each began only then, what set the end; no form of it can be made to act."""

import base64
import hashlib
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Final

import pytest
from logs import BASE, hostile_report, report_on, rows_of

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import (
    DriveStarted,
    Event,
    EvidenceSummary,
    Failure,
    IntegrationFailed,
    IntegrationStarted,
    PhaseChanged,
    SessionStarted,
    SessionStarting,
    TaskClaimed,
    TaskJudged,
    TaskReset,
    TurnEnded,
    VerificationStarted,
)
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.report_drawing import chart, picture, reduced_edges
from coordinate_agents.graph.report_html import html
from coordinate_agents.graph.report_markdown import markdown
from coordinate_agents.graph.report_model import Report
from coordinate_agents.graph.report_words import length, tick
from coordinate_agents.graph.timeline import timeline
from coordinate_agents.worktrees.model import Head

A, B, C, D = (SubtaskId(name) for name in "abcd")
DONE: Final = CommitId("2" * 40)


def graph_of(*tasks: Task, most: int = 4, title: str = "A graph") -> TaskGraph:
    return TaskGraph(GraphId("g"), title, tasks, max_concurrency=most)


def worked(subtask: SubtaskId, begin: float, end: float, *, accepted: bool = True) -> list[tuple[float, Event]]:
    """One attempt: prepared for a second, at work until a second before its end, then verified."""
    failure = None if accepted else Failure("CHECK_FAILED", "check tests failed", check="tests", tail="last words\n")
    return [
        (begin, TaskClaimed(subtask, 1, "coder", "n")),
        (begin + 0.5, SessionStarting(subtask, "s", 0, "m")),
        (begin + 1, SessionStarted(subtask, "s")),
        (end - 1, TurnEnded(subtask, "s", "exit", 0)),
        (end - 1, VerificationStarted(subtask)),
        (end, TaskJudged(subtask, accepted, DONE, EvidenceSummary(DONE, BASE), failure=failure)),
    ]


def in_order(*parts: list[tuple[float, Event]]) -> list[tuple[float, Event]]:
    return sorted((each for part in parts for each in part), key=lambda each: each[0])


def test_phases_of_a_run_are_bars_and_what_each_waited_for_is_named() -> None:
    graph = graph_of(Task(A, "A"), Task(B, "B"), Task(C, "C", depends_on=(A, B)), Task(D, "D"), most=2)
    log = in_order(
        [(0, DriveStarted(1))], worked(A, 0, 10), worked(B, 0, 6), worked(D, 6, 20), worked(C, 10.5, 30),
        [(20.5, PhaseChanged(C, "awaiting-input", "Overwrite? [y/n]")), (24.5, PhaseChanged(C, "working"))],
        [(31, IntegrationStarted((Head("c", DONE),))), (33, IntegrationFailed(Failure("INTEGRATION_CONFLICT", "no")))],
    )  # fmt: skip
    found = report_on(graph, log)
    bars = [(bar.phase, bar.begin_s, bar.end_s, bar.note) for bar in found.lines[2].bars]
    assert bars == [
        ("preparing", 10.5, 11.5, ""),
        ("working", 11.5, 20.5, ""),
        ("awaiting-input", 20.5, 24.5, "Overwrite? [y/n]"),
        ("working", 24.5, 29.0, ""),
        ("verifying", 29.0, 30.0, ""),
    ]
    waits = [(wait.subtask, wait.length_s, wait.what) for wait in found.waits]
    assert waits == [
        ("c", 10.0, "for a, the last of its 2 prerequisites"),
        ("d", 6.0, "ready; it began when b gave its slot back"),
        ("c", 4.0, "waiting for a person: Overwrite? [y/n]"),
    ]
    steps = [(step.subtask, step.why, step.waited_s, step.length_s) for step in found.path]
    assert steps == [
        ("a", "began with the run", 0.0, 10.0),
        ("c", "after a was verified", 0.5, 19.5),
        ("integration", "after c was verified", 1.0, 2.0),
    ]
    assert dict(found.path_phases)["awaiting-input"] == 4.0
    assert found.length_s == 33.0


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (Task(A, "A", writes=("src/**",)), Task(B, "B", writes=("src/x",)), "after a, which may write the same paths"),
        (Task(A, "A", needs=("db",)), Task(B, "B", needs=("db",)), "after a, which had a token that it needs"),
    ],
)
def test_one_that_waited_for_what_another_took_stands_behind_it_on_the_path(
    first: Task, second: Task, why: str
) -> None:
    log = in_order([(0, DriveStarted(1))], worked(A, 0, 10), worked(B, 10, 15))
    found = report_on(graph_of(first, second), log)
    assert [(step.subtask, step.why) for step in found.path] == [("a", "began with the run"), ("b", why)]


def test_one_that_merely_began_when_another_ended_is_not_said_to_have_waited_for_it() -> None:
    log = in_order([(0, DriveStarted(1))], worked(A, 0, 10), worked(B, 10, 15))
    found = report_on(graph_of(Task(A, "A"), Task(B, "B")), log)
    assert [step.why for step in found.path] == ["began with the run"]
    assert found.waits == ()


def test_a_further_attempt_follows_the_one_before_with_the_person_who_asked_for_it() -> None:
    again = [replace_attempt(event, 2) for event in worked(A, 60, 70)]
    reset = TaskReset(A, "graph-resume", say="use the table", who="user")
    log = in_order([(0, DriveStarted(1))], worked(A, 0, 10, accepted=False), [(50, reset)], again)
    found = report_on(graph_of(Task(A, "A")), log)
    assert [(step.attempt, step.why, step.waited_s) for step in found.path] == [
        (1, "began with the run", 0.0),
        (2, "when it was made ready again", 50.0),
    ]
    assert [(each.who, each.what) for each in found.decisions] == [
        ("user", "made ready again: graph-resume; said: use the table")
    ]


def replace_attempt(at_event: tuple[float, Event], attempt: int) -> tuple[float, Event]:
    at, event = at_event
    return at, replace(event, attempt=attempt) if isinstance(event, TaskClaimed) else event


def test_a_log_that_ends_in_the_middle_ends_its_phases_there() -> None:
    log = in_order([(0, DriveStarted(1))], worked(A, 0, 100)[:3], [(40, DriveStarted(2))])
    found = timeline(graph_of(Task(A, "A")), rows_of(log))
    [stretch] = found.stretches
    assert (stretch.outcome, [(span.phase, span.length_s) for span in stretch.spans]) == (
        "running",
        [("preparing", 1.0), ("working", 39.0)],
    )


def test_nothing_that_started_is_a_report_too() -> None:
    for tasks in ((), (Task(A, "A"),)):
        found = report_on(graph_of(*tasks), [])
        assert (found.path, found.waits, found.length_s) == ((), (), 0.0)
        assert "Nothing was started yet." in html(found)
        assert next(iter(markdown(found))) == "# A graph"


def test_lengths_read_as_people_write_them() -> None:
    assert [length(seconds) for seconds in (0, 0.44, 9.96, 42, 185, 3720, 97200)] == [
        "0.0s", "0.4s", "10.0s", "42s", "3m 05s", "1h 02m", "1d 3h",
    ]  # fmt: skip
    assert [tick(seconds) for seconds in (0, 30, 300, 5400, 86400)] == ["0", "30s", "5m", "1h30m", "1d"]


def test_an_edge_that_a_longer_way_says_is_not_drawn() -> None:
    assert reduced_edges({"a": (), "b": ("a",), "c": ("a", "b")}) == [("a", "b"), ("b", "c")]


def wide(count: int) -> Report:
    """So many subtasks, every third needing the two before it, all of them run."""
    names = [SubtaskId(f"t{number}") for number in range(count)]
    tasks = [
        Task(name, f"Task {number}", depends_on=tuple(names[number - 2 : number]) if number % 3 == 2 else ())
        for number, name in enumerate(names)
    ]
    logs = [worked(name, 3.0 * number, 3.0 * number + 8) for number, name in enumerate(names)]
    return report_on(graph_of(*tasks, most=9), in_order([(0, DriveStarted(1))], *logs))


@pytest.mark.parametrize("count", [1, 12, 500])
def test_boxes_and_bars_of_any_number_stay_apart_and_inside_their_picture(count: int) -> None:
    found = wide(count)
    drawn, rows = picture(found), chart(found)
    assert len(drawn.boxes) == len(rows.rows) == count
    for column in {box.x for box in drawn.boxes}:
        ys = sorted(box.y for box in drawn.boxes if box.x == column)
        assert all(below - above > drawn.box_height for above, below in pairwise(ys))
    assert all(0 < box.x < drawn.width - drawn.box_width and 0 < box.y < drawn.height for box in drawn.boxes)
    assert all(rect.x + rect.width <= rows.width for row in rows.rows for rect in row.rects)
    assert drawn.height < 2200
    assert drawn.width < 2600
    assert len(html(found)) < 6000 * count + 40_000


class _Tags(HTMLParser):
    """What the page consists of: tags, and every attribute that could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.others: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("href", "src", "action", "xlink:href"):
                self.links.add(value or "")
            elif name == "style" or name.startswith("on"):
                self.others.add(f"{name}={value}")


def test_hostile_texts_are_texts_in_the_page_and_nothing_else() -> None:
    page = html(hostile_report())
    seen = _Tags()
    seen.feed(page)
    assert seen.tags.isdisjoint({"script", "img", "iframe", "object", "embed", "link", "base", "form", "foreignobject"})
    assert seen.links == {"#of-a", "#of-b"}
    assert seen.others == set()
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page) is None
    assert page.count("{{ 7 * 7 }}") > 10


def test_the_policy_names_exactly_the_style_of_the_page() -> None:
    page = html(hostile_report())
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert (
        f'content="default-src &#39;none&#39;; style-src &#39;sha256-{digest}&#39;; base-uri &#39;none&#39;; '
        'form-action &#39;none&#39;"' in page
    )


def test_hostile_texts_act_in_no_way_in_markdown() -> None:
    lines = list(markdown(hostile_report()))
    spans = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
    fence, fences = "", []
    for line in lines:
        if fence and line == fence:
            fence = ""
        elif not fence and line.startswith("```"):
            fence = line.rstrip("abcdefghijklmnopqrstuvwxyz")
            fences.append(line)
        elif not fence:
            text = spans.sub("", line).replace("**CREATED**", "")
            assert re.search(r"<|@|://|(?<!\\)[\[\]!*]|(?<!\\)`|www\.", text) is None, line
            assert "#1" not in text, line
    # The output in the first one holds a fence of its own.
    assert fences == ["```mermaid", "````text", "````text"]
    assert fence == ""
    table = [line for line in lines if line.startswith("| `")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} <= {10, 7, 4}


def test_without_the_extra_html_is_refused_and_markdown_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)  # as where it is not installed
    found = hostile_report()
    with pytest.raises(GraphError) as refused:
        html(found)
    assert refused.value.code == "UNSUPPORTED_CAPABILITY"
    assert refused.value.next == "pip install 'coordinate-agents[report]', or --format markdown"
    assert list(markdown(found))


def test_the_same_log_gives_the_same_page() -> None:
    assert html(hostile_report()) == html(hostile_report())
    assert list(markdown(hostile_report())) == list(markdown(hostile_report()))
