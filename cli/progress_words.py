"""What one event of a drive is worth to somebody who watches: one line, or nothing. Pure."""

from typing import Final

from coordinate_agents.cli.layout import short
from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseConflicted,
    ConflictClosed,
    ConflictOpened,
    Event,
    GraphAmended,
    IntegrationAborted,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    IntegrationMerged,
    IntegrationStarted,
    PhaseChanged,
    SharedChanged,
    TaskClaimed,
    TaskJudged,
    TaskReset,
    TaskStopped,
    TurnStalled,
    TurnWentOn,
    VerificationStarted,
)
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import counted, joined_lines, listed, visible

MAX_MESSAGE: Final = 300
# Lines that only say that something goes on; a live view shows that anyway.
PASSING: Final = (TaskClaimed, VerificationStarted)


def describe(snapshot: Snapshot | None, event: Event) -> str | None:
    """The line about this event, which was folded already; None when it is not worth one.

    Without the snapshot it is not said how many subtasks a failure blocks.
    """
    match event:
        case TaskClaimed(subtask=subtask, attempt=attempt, agent=agent):
            again = f", attempt {attempt}" if attempt > 1 else ""
            return f"{subtask}: started with {visible(agent)}{again}"
        case VerificationStarted(subtask=subtask):
            return f"{subtask}: verifying"
        case BaseConflicted(subtask=subtask, pair=pair, paths=paths):
            return f"{subtask}: BLOCKED: {pair[0]} and {pair[1]} do not merge in {listed(paths)}"
        case PhaseChanged(subtask=subtask, phase="awaiting-input", note=note) if note:
            return f"{subtask}: WAITS FOR A PERSON: {_said(note)}"
        case PhaseChanged(subtask=subtask, phase="throttled", note=note) if note:
            return f"{subtask}: throttled: {_said(note)}"
        case TurnStalled(subtask=subtask):
            return f"{subtask}: stalled: its agent has said nothing new"
        case TurnWentOn(subtask=subtask):
            return f"{subtask}: its agent goes on"
        case TaskJudged() | AttemptFailed():
            return _ended(snapshot, event)
        case TaskStopped(subtask=subtask, reason=reason):
            return f"{subtask}: STOPPED: {_said(reason)}"
        case TaskReset(subtask=subtask, reason=reason):
            return f"{subtask}: ready again: {_said(reason)}"
        case ConflictOpened(subtask=subtask):
            return f"{subtask}: its merge waits for a person"
        case ConflictClosed(subtask=subtask, outcome=outcome):
            return f"{subtask}: conflict {outcome}"
        case GraphAmended(revision=revision, lines=lines):
            return f"amended to revision {revision}: {_said('; '.join(lines) or 'another base')}"
        case SharedChanged(changes=()):
            return "the shared git state is again as it was"
        case SharedChanged(changes=changes):
            return f"SHARED GIT STATE CHANGED: {listed(changes)}"
        case _:
            return _integration(event)


def _ended(snapshot: Snapshot | None, event: TaskJudged | AttemptFailed) -> str:
    if isinstance(event, TaskJudged) and event.accepted:
        warnings = "; ".join(event.evidence.warnings)
        return f"{event.subtask}: verified {short(event.commit)}{f' ({_said(warnings)})' if warnings else ''}"
    message = event.failure.message if event.failure else "refused"
    if event.then == "fix-turn":
        return f"{event.subtask}: refused, the facts go back to the agent: {_said(message)}"
    if event.then == "retry":
        return f"{event.subtask}: this attempt failed, another one follows: {_said(message)}"
    blocked = snapshot.frontier.counts()["blocked"] if snapshot is not None else 0
    behind = f" ({counted(blocked, 'subtask')} blocked)" if blocked else ""
    return f"{event.subtask}: FAILED: {_said(message)}{behind}"


def _integration(event: Event) -> str | None:
    match event:
        case IntegrationStarted(heads=heads):
            return f"integration: merging {counted(len(heads), 'head')}"
        case IntegrationConflicted(pair=pair, paths=paths):
            return f"integration: CONFLICT: {pair[0]} and {pair[1]} do not merge in {listed(paths)}"
        case IntegrationAborted():
            return "integration: given up"
        case IntegrationMerged(commit=commit):
            return f"integration: merged as {short(commit)}, checking"
        case IntegrationJudged(accepted=True, commit=commit):
            return f"integration: verified {short(commit)}"
        case IntegrationJudged(failure=failure) | IntegrationFailed(failure=failure):
            return f"integration: FAILED: {_said(failure.message if failure else 'refused')}"
        case _:
            return None


def _said(text: str) -> str:
    return visible(joined_lines(text), limit=MAX_MESSAGE) if text else "no reason was given"
