"""A report as Markdown, for a pull request, an issue or a mail. Pure.

Foreign text is escaped so that no markup, link, mention or HTML of it acts; the last output of a failed check stands in
a fence that is longer than any in it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from coordinate_agents.graph.pictures import Picture, mermaid
from coordinate_agents.graph.report_model import Failure, Line, Report
from coordinate_agents.graph.report_words import length, outcome, tokens
from coordinate_agents.graph.reporting import PHASES
from coordinate_agents.graph.text import counted

# A picture of more is no help, and viewers refuse to draw it.
MAX_DRAWN: Final = 60
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]#!|~^$])")
# A mention, a reference to another page, a tag or an entity begins with one of these.
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_TICKS: Final = re.compile("`+")


def markdown(report: Report) -> Iterator[str]:
    """The lines."""
    yield from _head(report)
    yield from _picture(report)
    yield from _subtasks(report)
    yield from _failures(report)
    yield from _path(report)
    yield from _waits(report)
    yield from _evidence(report)
    yield from _decisions(report)


def _head(report: Report) -> Iterator[str]:
    yield f"# {_text(report.title)}"
    yield ""
    base = _code(report.base[:12])
    yield f"Graph {_code(report.graph)} is **{report.state}**, revision {report.revision} on base {base}."
    yield f"It began {report.begin}; this is as of {report.as_of} (event {report.seq}),"
    yield f"{length(report.length_s)} later."
    yield f"At most {counted(report.max_concurrency, 'subtask')} at a time."
    yield ""
    yield ", ".join(f"{count} {place}" for place, count in report.counts) + "."
    if report.usage is not None:
        yield f"Agents said that they used {tokens(report.usage)}."
    if report.review:
        yield f"Review: {_text(report.review)}."
    for each in report.deliveries:
        yield f"Delivered: {_text(each)}."
    if report.attention:
        yield from ("", "## Needs a person", "")
        for item in report.attention:
            who = f" {_code(item.subtask)}" if item.subtask else ""
            yield f"- {item.kind}{who}: {_text(item.question)} → {_code(item.next)}"


def _picture(report: Report) -> Iterator[str]:
    if not 1 < len(report.lines) <= MAX_DRAWN:
        return
    labels = {line.id: (f"{line.id}: {line.title[:60]} ({line.state})",) for line in report.lines}
    on_path = [step.subtask for step in report.path if step.subtask in labels]
    yield from ("", "## Graph", "", "```mermaid")
    yield from mermaid(Picture(report.graph, labels, report.edges, tuple(dict.fromkeys(on_path))))
    yield "```"


def _subtasks(report: Report) -> Iterator[str]:
    yield from ("", "## Subtasks", "")
    yield "| subtask | title | state | agent | try | time | commit | changed | used |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for line in report.lines:
        cells = (
            _code(line.id),
            _text(line.title),
            line.state if line.state == "SUCCEEDED" or not line.reason else f"{line.state}: {_text(line.reason)}",
            _text(line.agent),
            str(line.attempt or ""),
            length(line.elapsed_s) if line.bars else "",
            _code(line.commit[:12]) + ("" if line.is_verified else " (not verified)") if line.commit else "",
            _changed(line),
            tokens(line.usage) if line.usage else "",
        )
        yield f"| {' | '.join(cells)} |"
    found = report.integration
    if found is not None:
        commit = f" as {_code(found.commit[:12])}" if found.commit else ""
        yield from ("", f"Integration: {found.state}{commit}.")
        for check in found.checks:
            yield f"- {_code(check.name)}: {outcome(check)}"


def _changed(line: Line) -> str:
    change = line.change
    if change is None:
        return ""
    return f"{counted(change.files, 'file')}, {change.insertions} added, {change.deletions} removed"


def _failures(report: Report) -> Iterator[str]:
    failed = [(line.id, line.failure) for line in report.lines if line.failure is not None]
    if report.integration is not None and report.integration.failure is not None:
        failed.append(("integration", report.integration.failure))
    if failed:
        yield from ("", "## Failures")
    for name, failure in failed:
        yield from _failure(name, failure)


def _failure(name: str, failure: Failure) -> Iterator[str]:
    yield from ("", f"### {_text(name)}", "", f"{_code(failure.code)}: {_text(failure.message)}")
    if failure.ways:
        yield ""
    for way in failure.ways:
        yield f"- {_text(way.when)}: {_code(way.command)}"
    if failure.tail:
        fence = "`" * max(
            3, 1 + max((len(found) for line in failure.tail for found in _TICKS.findall(line)), default=0)
        )
        yield from ("", f"{fence}text", *(f"  {line}" for line in failure.tail), fence)


def _path(report: Report) -> Iterator[str]:
    if not report.path:
        return
    yield from ("", "## What set the end", "", "| subtask | try | began | after a wait of | took | mostly |")
    yield "|---|---|---|---|---|---|"
    for step in report.path:
        mostly = max(step.phases, key=lambda each: each[1], default=("", 0.0))[0]
        cells = (
            _code(step.subtask),
            str(step.attempt),
            _text(step.why),
            length(step.waited_s),
            length(step.length_s),
            PHASES.get(mostly, mostly),
        )
        yield f"| {' | '.join(cells)} |"


def _waits(report: Report) -> Iterator[str]:
    if not report.waits:
        return
    yield from ("", "## What waited", "", "| subtask | how long | for what |", "|---|---|---|")
    for wait in report.waits:
        yield f"| {_code(wait.subtask)} | {length(wait.length_s)} | {_text(wait.what)} |"
    if report.waits_left_out:
        yield from ("", f"and {counted(report.waits_left_out, 'shorter wait')}")


def _evidence(report: Report) -> Iterator[str]:
    if any(line.evidence for line in report.lines):
        yield from ("", "## Evidence")
    for line in report.lines:
        seen = line.evidence
        if seen is None:
            continue
        yield from ("", f"### {_text(line.id)}", "")
        if line.summary:
            yield f"Its agent says, unverified: {_text(line.summary)}"
            yield ""
        for check in seen.checks:
            yield f"- check {_code(check.name)}: {outcome(check)}"
        for fact in seen.facts:
            yield f"- fact {_text(fact)}"
        yield from _listed("outside its scope", seen.outside_scope)
        yield from _listed("warning", seen.warnings)
        yield from _listed("waived", seen.waivers)


def _listed(what: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield f"- {what}: {_text(text)}"


def _decisions(report: Report) -> Iterator[str]:
    if not report.decisions:
        return
    yield from ("", "## Decisions", "")
    if report.decisions_left_out:
        yield f"{counted(report.decisions_left_out, 'earlier one')} left out."
        yield ""
    for each in report.decisions:
        of = f" {_code(each.subtask)}" if each.subtask else ""
        yield f"- {each.at}{of} by {_text(each.who)}: {_text(each.what)}"


def _text(text: str) -> str:
    escaped = "".join(_ENTITIES.get(char, char) for char in _MARKUP.sub(r"\\\1", text).replace("\\#", "&#35;"))
    # An address alone makes a link in many viewers.
    return re.sub(r"(?i)\b(www)\.", r"\1&#46;", escaped.replace("://", "&#58;//"))


def _code(text: str) -> str:
    """A code span that the text cannot end: its fence is longer than any run of backquotes inside."""
    if not text:
        return ""
    fence = "`" * (1 + max((len(found) for found in _TICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
