"""What happened when: the log as stretches of work and their phases, why each began only then, and what set the end.

Pure. The states and phases are those of the fold itself, looked at after every event. A subtask runs in one stretch
from the moment it took a slot to the moment it was over, or ready again; a further attempt is a further stretch.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from coordinate_agents.graph.events import (
    Event,
    GraphAmended,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    IntegrationStarted,
    from_row,
)
from coordinate_agents.graph.model import SubtaskId, Task, TaskGraph
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.scope import conflict
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.store.rows import EventRow
from coordinate_agents.worktrees.model import INTEGRATION_SLUG
from coordinate_agents.worktrees.values import value_class

INTEGRATION: Final = SubtaskId(INTEGRATION_SLUG)

# Why a stretch began only when it did. start: with the run; needs: a prerequisite was verified; slots, conflict,
# resource: another gave back what it took; again: a further attempt; person: somebody decided; drive: nobody had
# driven the graph.
Why = Literal["start", "needs", "slots", "conflict", "resource", "again", "person", "drive"]

_PERSON: Final[Mapping[str, str]] = {
    "TaskReset": "it was made ready again",
    "ReworkRequested": "a review asked for changes",
    "TaskReleased": "a hold ended",
    "ConflictClosed": "its base was merged by hand",
}


@value_class
class Span:
    """A phase from `begin` to `end`, seconds since the epoch. `note`: the question, or what a service said."""

    phase: str
    begin: float
    end: float
    note: str = ""

    @property
    def length_s(self) -> float:
        return self.end - self.begin


@value_class
class Stretch:
    """`outcome`: the state afterwards; "idle": ready again, "running": it is not over, and `end` is the log's end.

    `ready_at`: when nothing but slots, tokens and write conflicts stood in the way; `why` and `other` say what did
    until `begin`. `before`: the number of the stretch that the beginning waited for, in the list of all. `needed`: of
    its prerequisites the one that was verified last.
    """

    subtask: SubtaskId
    attempt: int
    begin: float
    end: float
    spans: tuple[Span, ...] = ()
    outcome: str = "running"
    ready_at: float = 0.0
    why: Why = "start"
    other: SubtaskId | None = None
    words: str = ""
    before: int | None = None
    needed: SubtaskId | None = None


@value_class
class Timeline:
    """`stretches` in the order in which they began; `path`: numbers of those that set the end, first to last.

    `begin` and `end` are the times of the log's first start and last event; equal when nothing was started.
    """

    begin: float
    end: float
    stretches: tuple[Stretch, ...]
    path: tuple[int, ...]


def timeline(graph: TaskGraph, events: Sequence[EventRow]) -> Timeline:
    """Of the whole log of a graph, `graph` being its present revision."""
    found = _Reader(graph, events)
    for row in events:
        found.read(row)
    found.close(events[-1].time if events else 0.0)
    stretches = _with_causes(graph, found)
    begin = found.drives[0] if found.drives else (events[0].time if events else 0.0)
    end = events[-1].time if events else 0.0
    return Timeline(begin, end, stretches, _path(stretches))


@dataclass(slots=True)
class _Open:
    subtask: SubtaskId
    attempt: int
    begin: float
    spans: list[Span] = field(default_factory=list)
    phase: str = ""
    since: float = 0.0
    note: str = ""


class _Reader:
    """Folds the log and notes what began and ended. Subtasks that an amendment dropped are still known to it."""

    def __init__(self, graph: TaskGraph, events: Iterable[EventRow]) -> None:
        known = {task.id for task in graph.tasks}
        named = dict.fromkeys(SubtaskId(row.subtask_id) for row in events if row.subtask_id)
        dropped = [Task(each, str(each)) for each in named if each not in known and each != INTEGRATION]
        self.snapshot = Snapshot(replace(graph, tasks=(*graph.tasks, *dropped)))
        self.done: list[Stretch] = []
        self.drives: list[float] = []
        self.last_driven: list[float] = []
        self.verified: dict[SubtaskId, list[float]] = {}
        self.opened: dict[SubtaskId, list[tuple[float, str]]] = {}
        self._running: dict[SubtaskId, _Open] = {}
        self._integrating: float | None = None
        self._before = 0.0

    def read(self, row: EventRow) -> None:
        event = from_row(row.type, row.subtask_id, row.data)
        if row.type == "DriveStarted":
            self.drives.append(row.time)
            self.last_driven.append(self._before or row.time)
        self._before = row.time
        if isinstance(event, GraphAmended):
            return
        self._integration(event, row.time)
        subtask = SubtaskId(row.subtask_id) if row.subtask_id else None
        before = self.snapshot.runs.get(subtask) if subtask is not None else None
        self.snapshot.fold(event, time=row.time)
        if subtask is None or before is None:
            return
        after = self.snapshot.runs[subtask]
        if row.type in _PERSON:
            self.opened.setdefault(subtask, []).append((row.time, _PERSON[row.type]))
        if after.state == "succeeded" and before.state != "succeeded":
            self.verified.setdefault(subtask, []).append(row.time)
        self._note(before, after, row.time)

    def close(self, end: float) -> None:
        """Whatever still runs ends with the log."""
        for each in tuple(self._running):
            self._end(each, end, "running")
        if self._integrating is not None:
            self._integrated(end, "running")
        self.done.sort(key=lambda each: (each.begin, each.subtask))

    def _note(self, before: TaskRun, after: TaskRun, time: float) -> None:
        subtask = after.id
        if after.state != "running":
            if subtask in self._running:
                self._end(subtask, time, after.state)
            return
        at_work = self._running.get(subtask)
        if at_work is not None and before.attempt != after.attempt:
            self._end(subtask, time, "idle")
            at_work = None
        if at_work is None:
            at_work = self._running[subtask] = _Open(subtask, after.attempt, time, since=time)
        phase = after.phase or "preparing"
        if phase != at_work.phase:
            _close_span(at_work, time)
            at_work.phase, at_work.since = phase, time
        at_work.note = after.reason or "" if phase in WITHOUT_SLOT else ""

    def _end(self, subtask: SubtaskId, time: float, outcome: str) -> None:
        ended = self._running.pop(subtask)
        _close_span(ended, time)
        self.done.append(Stretch(subtask, ended.attempt, ended.begin, time, tuple(ended.spans), outcome))

    def _integration(self, event: Event, time: float) -> None:
        match event:
            case IntegrationStarted():
                self._integrating = self._integrating or time
            case IntegrationJudged(accepted=accepted):
                self._integrated(time, "succeeded" if accepted else "failed")
            case IntegrationFailed() | IntegrationConflicted():
                self._integrated(time, "failed")
            case _:
                pass

    def _integrated(self, time: float, outcome: str) -> None:
        if self._integrating is None:  # a finished merge was taken over
            return
        begin, self._integrating = self._integrating, None
        self.done.append(Stretch(INTEGRATION, 1, begin, time, (Span("verifying", begin, time),), outcome))


def _close_span(at_work: _Open, time: float) -> None:
    if at_work.phase and time > at_work.since:
        at_work.spans.append(Span(at_work.phase, at_work.since, time, at_work.note))


def _with_causes(graph: TaskGraph, found: _Reader) -> tuple[Stretch, ...]:
    """Each stretch with what it waited for."""
    numbered = list(enumerate(found.done))
    ends: dict[SubtaskId, list[tuple[float, int]]] = {}
    for number, each in numbered:
        ends.setdefault(each.subtask, []).append((each.end, number))
    ready = [_readiness(graph, found, number, ends) for number, _ in numbered]
    freed = sorted((end, number) for number, each in numbered for _, end in _slots(each))
    freeing = [_last_freed(ready, each, freed) for each in ready]
    holders = _holders_before(found.done, freeing)
    tasks = {task.id: task for task in graph.tasks}
    made = []
    for each, last, held in zip(ready, freeing, holders, strict=True):
        why = _why_not(graph, tasks, each.subtask, ready[last[1]].subtask, len(held)) if last is not None else None
        late = replace(each, why=why, other=ready[last[1]].subtask, before=last[1]) if last and why else each
        made.append(late)
    return tuple(made)


def _readiness(
    graph: TaskGraph, found: _Reader, number: int, ends: Mapping[SubtaskId, Sequence[tuple[float, int]]]
) -> Stretch:
    """The stretch with when it was ready, and with what was last in making it so."""
    stretch = found.done[number]
    needed: Sequence[SubtaskId] = [task.id for task in graph.tasks] if stretch.subtask == INTEGRATION else ()
    if stretch.subtask in found.snapshot.tasks:
        needed = found.snapshot.tasks[stretch.subtask].depends_on
    # (when, which came last wins) -> why, whose, in what words, which stretch.
    causes: list[tuple[float, int, Why, SubtaskId | None, str, int | None]] = []
    for each in needed:
        last = _last_before(found.verified.get(each, ()), stretch.begin)
        if last is not None:
            causes.append((last, 2, "needs", each, "", _ended_at(ends.get(each, ()), last)))
    last_needed = max(causes, default=None, key=lambda cause: cause[0])
    stretch = replace(stretch, needed=last_needed[3] if last_needed else None)
    own = [each for each in ends.get(stretch.subtask, ()) if each[0] <= stretch.begin and each[1] != number]
    if own and stretch.subtask != INTEGRATION:
        causes.append((own[-1][0], 1, "again", stretch.subtask, "", own[-1][1]))
    behind = max(causes, default=None, key=lambda cause: cause[:2])
    for time, words in found.opened.get(stretch.subtask, ()):
        if time <= stretch.begin:
            causes.append((time, 3, "person", None, words, behind[5] if behind else None))
    drive = _last_before(found.drives, stretch.begin)
    if drive is not None:
        is_first = drive == found.drives[0]
        causes.append((drive, 0, "start" if is_first else "drive", None, "", behind[5] if behind else None))
    if not causes:
        return replace(stretch, ready_at=stretch.begin)
    ready_at, _, why, other, words, before = max(causes, key=lambda cause: cause[:2])
    return replace(stretch, ready_at=ready_at, why=why, other=other, words=words, before=before)


def _last_freed(
    stretches: Sequence[Stretch], stretch: Stretch, freed: Sequence[tuple[float, int]]
) -> tuple[float, int] | None:
    """The last time at which another stretch gave its slot back while this one was ready, and which did."""
    index = bisect_right(freed, (stretch.begin, len(stretches))) - 1
    while index >= 0 and freed[index][0] > stretch.ready_at:
        if stretches[freed[index][1]].subtask != stretch.subtask:
            return freed[index]
        index -= 1
    return None


def _why_not(
    graph: TaskGraph, tasks: Mapping[SubtaskId, Task], subtask: SubtaskId, other: SubtaskId, held: int
) -> Why | None:
    """What kept a subtask from starting beside the other, `held` slots being taken; None when nothing is known."""
    own, one = tasks.get(subtask), tasks.get(other)
    if own is None:
        return None
    if one is not None and conflict(own.writes, one.writes):
        return "conflict"
    if one is not None and not set(own.needs).isdisjoint(one.needs):
        return "resource"
    return "slots" if held >= graph.max_concurrency else None


def _slots(stretch: Stretch) -> list[tuple[float, float]]:
    """From when to when it held a slot."""
    found: list[tuple[float, float]] = []
    for span in () if stretch.subtask == INTEGRATION else stretch.spans:
        if span.phase in WITHOUT_SLOT:
            continue
        if found and found[-1][1] == span.begin:
            found[-1] = (found[-1][0], span.end)
        else:
            found.append((span.begin, span.end))
    return found


def _holders_before(stretches: Sequence[Stretch], moments: Sequence[tuple[float, int] | None]) -> list[frozenset[int]]:
    """For each moment the stretches that held a slot just before it. One pass over everything in order of time."""
    moves: list[tuple[float, int, int]] = []
    for number, stretch in enumerate(stretches):
        for begin, end in _slots(stretch):
            moves += [(end, 1, number), (begin, 2, number)]
    moves += [(moment[0], 0, number) for number, moment in enumerate(moments) if moment is not None]
    held: set[int] = set()
    found: list[frozenset[int]] = [frozenset()] * len(moments)
    for _, kind, number in sorted(moves):
        if kind == 0:
            found[number] = frozenset(held)
        elif kind == 1:
            held.discard(number)
        else:
            held.add(number)
    return found


def _path(stretches: Sequence[Stretch]) -> tuple[int, ...]:
    """Back from the stretch that ended last, each time to what its beginning waited for."""
    at: int | None = max(range(len(stretches)), key=lambda each: (stretches[each].end, each), default=None)
    found: list[int] = []
    while at is not None and at not in found:
        found.append(at)
        at = stretches[at].before
    return tuple(reversed(found))


def _last_before(times: Sequence[float], until: float) -> float | None:
    index = bisect_right(times, until)
    return times[index - 1] if index else None


def _ended_at(ends: Sequence[tuple[float, int]], time: float) -> int | None:
    return next((number for end, number in ends if end == time), None)
