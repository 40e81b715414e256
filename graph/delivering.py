"""What a delivery consists of, from the record alone: the commit, the squashed message, the body of a pull request.

Pure. In the body everything that an agent could have written stands in code spans: there no mention, link, markup or
HTML of theirs acts. Titles are the graph file's and are escaped.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.model import CommitId
from coordinate_agents.graph.reviewing import integrated_commit
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.text import clipped, counted, visible
from coordinate_agents.worktrees.values import value_class

MAX_COMMITS: Final = 200
MAX_SUBTASKS: Final = 500
# Forges refuse longer ones (65,536 characters); the last lines then say that something was left out.
MAX_BODY_BYTES: Final = 60_000
_SUBJECT: Final = 72
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@])")


@value_class
class Delivery:
    """The integrated commit, and what it was built on."""

    commit: CommitId
    base: CommitId


def delivery(snapshot: Snapshot) -> Delivery:
    """Raises: TASK_STATE_CONFLICT when nothing whole is integrated."""
    commit = integrated_commit(snapshot, "deliver")
    return Delivery(commit, snapshot.summary.integration.onto or snapshot.summary.base or "")


def title_of(snapshot: Snapshot) -> str:
    """One line for a commit or a pull request."""
    graph = snapshot.graph
    return visible(graph.title or graph.id, limit=_SUBJECT)


def squash_message(snapshot: Snapshot, found: Delivery) -> str:
    """Title, what each subtask is, and trailers that lead back to the record."""
    lines = [f"- {run.id}: {visible(snapshot.tasks[run.id].title, limit=_SUBJECT)}" for run in _parts(snapshot)]
    if len(lines) > MAX_SUBTASKS:
        lines = [*lines[:MAX_SUBTASKS], f"- and {counted(len(lines) - MAX_SUBTASKS, 'more subtask')}"]
    trailers = [f"Coordinate-Agents-Graph: {snapshot.graph.id}", f"Coordinate-Agents-Commit: {found.commit}"]
    return "\n".join([title_of(snapshot), "", *lines, "", *trailers]) + "\n"


def body(snapshot: Snapshot, found: Delivery, commits: Sequence[tuple[CommitId, str]]) -> str:
    """The text of a pull request as Markdown: subtasks, commits, checks, warnings. Bounded."""
    lines = [
        *_head(snapshot, found),
        *_subtasks(snapshot),
        *_checks(snapshot),
        *_warnings(snapshot),
        *_commits(commits),
    ]
    text = "\n".join(lines) + "\n"
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BODY_BYTES:
        whole = f"coordinate-agents graph-export {snapshot.graph.id}"
        text = f"{clipped(text, MAX_BODY_BYTES)}\n\n(cut here; `{whole}` has all)\n"
    return text


def _head(snapshot: Snapshot, found: Delivery) -> Iterator[str]:
    yield f"# {_escaped(title_of(snapshot))}"
    yield ""
    yield f"Graph `{snapshot.graph.id}`: {counted(len(snapshot.tasks), 'subtask')}, integrated as `{found.commit}` on"
    yield f"base `{found.base}`."
    review = snapshot.summary.review
    if review.state == "approved" and review.commit == found.commit:
        yield f"Reviewed: approved by {_code(review.who)}."
    else:
        yield "Reviewed: no decision was recorded for this commit."


def _subtasks(snapshot: Snapshot) -> Iterator[str]:
    yield from ("", "## Subtasks", "", "| subtask | title | agent | commit | checks |", "|---|---|---|---|---|")
    parts = _parts(snapshot)
    for run in parts[:MAX_SUBTASKS]:
        checks = run.evidence.checks if run.evidence else ()
        title = _escaped(visible(snapshot.tasks[run.id].title, limit=_SUBJECT))
        yield f"| `{run.id}` | {title} | {_code(run.agent or '')} | {_short(run.verified_commit)} | {_passed(checks)} |"
    if len(parts) > MAX_SUBTASKS:
        yield ""
        yield f"and {counted(len(parts) - MAX_SUBTASKS, 'more subtask')}"


def _checks(snapshot: Snapshot) -> Iterator[str]:
    checks = snapshot.summary.integration.checks
    yield from ("", "## Checks on the integrated commit", "")
    if not checks:
        yield "None are configured."
    for check in checks:
        yield f"- {_code(check.name)}: {check.outcome} ({_code(' '.join(check.run))})"


def _warnings(snapshot: Snapshot) -> Iterator[str]:
    found = [line for run in _parts(snapshot) for line in _notes(run)]
    if found:
        yield from ("", "## Look at these", "", *found)


def _notes(run: TaskRun) -> Iterator[str]:
    evidence = run.evidence
    if evidence is None:
        return
    for warning in evidence.warnings:
        yield f"- `{run.id}`: {_code(warning)}"
    if evidence.outside_scope and not evidence.warnings:
        yield f"- `{run.id}` changed paths outside its scope: {_code(', '.join(evidence.outside_scope[:20]))}"
    for waiver in evidence.waivers:
        yield f"- `{run.id}`: {_code(waiver.what)} was accepted by {_code(waiver.who)}: {_code(waiver.reason)}"


def _commits(commits: Sequence[tuple[CommitId, str]]) -> Iterator[str]:
    yield from ("", "## Commits", "")
    for commit, subject in commits[:MAX_COMMITS]:
        yield f"- {_short(commit)} {_code(visible(subject, limit=_SUBJECT))}"
    if len(commits) > MAX_COMMITS:
        yield f"- and more; the first {MAX_COMMITS} are shown"


def _parts(snapshot: Snapshot) -> list[TaskRun]:
    return [snapshot.runs[task.id] for task in snapshot.graph.tasks]


def _passed(checks: Sequence[CheckOutcome]) -> str:
    if not checks:
        return "none"
    return f"{sum(check.outcome == 'passed' for check in checks)} of {len(checks)} passed"


def _short(commit: CommitId | None) -> str:
    return f"`{commit[:12]}`" if commit else ""


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def _code(text: str) -> str:
    """A code span that the text cannot end: its fence is longer than any run of backquotes inside."""
    shown = visible(text, limit=400).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
