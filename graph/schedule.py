"""Which ready subtasks start now, in which order, and why the others do not. Decides only; starts nothing.

Order: priority (high first), longest remaining path (long first), id. The same input gives the same plan.

A subtask that gave its slot back (it waits for a person, a rate limit, or is held) still stands among the running
ones: its write intent and its tokens stay taken. When it can go on it is named in `resuming` and takes the next free
slot before any new start.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal

from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.scope import ScopeIndex, parse_pattern
from coordinate_agents.worktrees.values import value_class

Reason = Literal["CLOSED", "MAX_STARTS", "SLOTS", "PRECEDENCE", "AGENT_PAUSED", "RESOURCE", "WRITE_INTENT_CONFLICT"]


@value_class
class Running:
    """A subtask that was started and has not ended. `holds_slot` is False while it waits, throttled or held."""

    subtask: SubtaskId
    writes: tuple[str, ...] | None = None
    needs: tuple[str, ...] = ()
    agent: str | None = None
    holds_slot: bool = True


@value_class
class Limits:
    """What bounds the starts. `resources`: tokens in all. `paused_agents`: agent to reason.

    `max_starts`: new starts still allowed; None: no such bound. `closed`: why nothing at all starts now (drain, low
    disk); empty: open. What resumes is bounded by slots and paused agents only.
    """

    max_concurrency: int
    resources: Mapping[str, int] = field(default_factory=dict)
    paused_agents: Mapping[str, str] = field(default_factory=dict)
    max_starts: int | None = None
    closed: str = ""


@value_class
class Start:
    """Start this subtask now, or give it its slot back."""

    subtask: SubtaskId
    is_resumed: bool = False


@value_class
class Deferred:
    """Why a subtask that could run does not start now. `other` is who is in the way, where that is one subtask.

    `patterns`: of a write conflict, its own and the other's.
    """

    subtask: SubtaskId
    reason: Reason
    detail: str
    other: SubtaskId | None = None
    patterns: tuple[str, str] | None = None


@value_class
class Plan:
    """`start` in starting order. `deferred` in planning order: all that was looked at and does not start."""

    start: tuple[Start, ...]
    deferred: tuple[Deferred, ...] = ()


class ReadyQueue:
    """The ready subtasks in starting order. Adding and removing cost O(log n); reading the first k, O(k log k).

    A removed entry stays in the heap until it reaches the top or the dead are the majority.

    Those in conflict with a running subtask can be parked behind it, so that a plan does not look at thousands of
    them again and again. Nobody has to remember to bring them back: `candidates` is told who runs, and whoever is
    parked behind somebody else comes back by itself.
    """

    def __init__(self, tasks: Mapping[SubtaskId, Task], longest: Mapping[SubtaskId, int]) -> None:
        """Empty. `longest` is what `longest_remaining` says; both are only read."""
        self._tasks = tasks
        self._longest = longest
        self._heap: list[tuple[int, int, SubtaskId]] = []
        self._entries: dict[SubtaskId, tuple[int, int, SubtaskId]] = {}
        self._parked: dict[SubtaskId, list[SubtaskId]] = {}
        self._is_parked: set[SubtaskId] = set()

    def add(self, subtask: SubtaskId) -> None:
        """Put it in its place; nothing when it is there already. Raises: KeyError for an unknown id."""
        if subtask in self:
            return
        entry = (-self._tasks[subtask].priority, -self._longest[subtask], subtask)
        self._entries[subtask] = entry
        heapq.heappush(self._heap, entry)
        self._sweep()

    def discard(self, subtask: SubtaskId) -> None:
        """Take it out; nothing when it is not there."""
        self._is_parked.discard(subtask)
        if self._entries.pop(subtask, None) is not None:
            self._sweep()

    def park(self, deferred: Iterable[Deferred]) -> None:
        """Set those aside that are in write conflict with one other subtask, until that one does not run any more."""
        for each in deferred:
            if each.reason == "WRITE_INTENT_CONFLICT" and each.other is not None and each.subtask in self._entries:
                self.discard(each.subtask)
                self._is_parked.add(each.subtask)
                self._parked.setdefault(each.other, []).append(each.subtask)

    def candidates(self, running: Container[SubtaskId]) -> Iterator[SubtaskId]:
        """First to start first, without those parked behind one of `running`. Lazy; see `__iter__`."""
        for other in [other for other in self._parked if other not in running]:
            for subtask in self._parked.pop(other):
                # It may have been taken out meanwhile, and even put in again.
                if subtask in self._is_parked:
                    self._is_parked.discard(subtask)
                    self.add(subtask)
        return iter(self)

    def __len__(self) -> int:
        return len(self._entries) + len(self._is_parked)

    def __contains__(self, subtask: object) -> bool:
        return subtask in self._entries or subtask in self._is_parked

    def __iter__(self) -> Iterator[SubtaskId]:
        """First to start first, without the parked. Lazy; the queue must not change meanwhile."""
        heap = self._heap
        # The next in order is always a child of one already given: a heap of positions finds it without popping.
        open_positions = [(heap[0], 0)] if heap else []
        last = None
        while open_positions:
            entry, position = heapq.heappop(open_positions)
            for child in (2 * position + 1, 2 * position + 2):
                if child < len(heap):
                    heapq.heappush(open_positions, (heap[child], child))
            # An entry may stand in the heap twice: taken out and put back before it was swept.
            if entry != last and self._entries.get(entry[2]) == entry:
                last = entry
                yield entry[2]

    def _sweep(self) -> None:
        heap = self._heap
        while heap and self._entries.get(heap[0][2]) != heap[0]:
            heapq.heappop(heap)
        if len(heap) > 2 * len(self._entries) + 16:
            heap[:] = self._entries.values()
            heapq.heapify(heap)


def plan(
    ready: Iterable[SubtaskId],
    running: Collection[Running],
    tasks: Mapping[SubtaskId, Task],
    limits: Limits,
    *,
    resuming: Sequence[SubtaskId] = (),
    explain: Literal["starts", "all"] = "starts",
) -> Plan:
    """Decide what starts now. `ready` is in starting order (`ReadyQueue`), and only read as far as needed.

    `resuming`: running subtasks without a slot that can go on, first to go on first. `explain="all"` reads all of
    `ready` and gives each that does not start a reason; otherwise reading ends when no slot is left.
    """
    admission = _Admission(running, tasks, limits)
    for subtask in resuming:
        admission.resume(subtask)
    if explain == "all" or not admission.is_full:
        for subtask in ready:
            admission.consider(subtask)
            if explain == "starts" and admission.is_full:
                break
    return Plan(tuple(admission.started), tuple(admission.deferred))


class _Admission:
    """One plan in the making: what is taken so far, by those that run and by those this plan starts."""

    def __init__(self, running: Collection[Running], tasks: Mapping[SubtaskId, Task], limits: Limits) -> None:
        self._tasks = tasks
        self._limits = limits
        self._running = {each.subtask: each for each in running}
        self._free_slots = limits.max_concurrency - sum(each.holds_slot for each in running)
        self._free_starts = limits.max_starts
        self._tokens = Counter(limits.resources)
        self._tokens.subtract(token for each in running for token in each.needs)
        self._intents = ScopeIndex()
        for each in sorted(running, key=lambda each: each.subtask):
            self._intents.add(each.subtask, each.writes)
        # Slots that would have been free for new starts, had nobody resumed; each shows one PRECEDENCE.
        self._preceded: list[SubtaskId] = []
        self.started: list[Start] = []
        self.deferred: list[Deferred] = []

    @property
    def is_full(self) -> bool:
        return bool(self._limits.closed) or self._free_slots <= 0 or self._free_starts == 0

    def resume(self, subtask: SubtaskId) -> None:
        """Give a running subtask its slot back, if there is one."""
        running = self._running[subtask]
        assert not running.holds_slot, subtask
        paused = self._paused(subtask, running.agent)
        if paused is not None:
            self.deferred.append(paused)
        elif self._free_slots <= 0:
            self.deferred.append(self._no_slot(subtask))
        else:
            self._free_slots -= 1
            self._preceded.append(subtask)
            self.started.append(Start(subtask, is_resumed=True))

    def consider(self, subtask: SubtaskId) -> None:
        """Start it, or note why not. What the subtask itself meets is named before what everybody meets."""
        task = self._tasks[subtask]
        refusal = (
            self._closed(subtask)
            or self._paused(subtask, task.agent)
            or self._lacking_token(task)
            or self._conflict(task)
            or self._bounded(subtask)
        )
        if refusal is not None:
            self.deferred.append(refusal)
            return
        self._free_slots -= 1
        if self._free_starts is not None:
            self._free_starts -= 1
        self._tokens.subtract(task.needs)
        self._intents.add(subtask, task.writes)
        self.started.append(Start(subtask))

    def _closed(self, subtask: SubtaskId) -> Deferred | None:
        return Deferred(subtask, "CLOSED", self._limits.closed) if self._limits.closed else None

    def _paused(self, subtask: SubtaskId, agent: str | None) -> Deferred | None:
        reason = self._limits.paused_agents.get(agent) if agent is not None else None
        return None if reason is None else Deferred(subtask, "AGENT_PAUSED", f"agent {agent} is paused: {reason}")

    def _lacking_token(self, task: Task) -> Deferred | None:
        if not task.needs:
            return None
        for token, wanted in sorted(Counter(task.needs).items()):
            total, free = self._limits.resources.get(token, 0), self._tokens[token]
            if wanted > free:
                return Deferred(task.id, "RESOURCE", f"needs {wanted} of {token}; {max(free, 0)} of {total} free")
        return None

    def _conflict(self, task: Task) -> Deferred | None:
        found = self._intents.find(task.writes)
        if found is None:
            return None
        own, claim = found
        detail = f"writes {own}, and {claim.owner} writes {claim.pattern}"
        floating = sorted({text for text in (own, claim.pattern) if parse_pattern(text).is_floating})
        if floating:
            detail += f' ("{floating[0]}" is any depth; "./{floating[0]}" is the root only)'
        return Deferred(task.id, "WRITE_INTENT_CONFLICT", detail, SubtaskId(claim.owner), (own, claim.pattern))

    def _bounded(self, subtask: SubtaskId) -> Deferred | None:
        if self._free_starts == 0:
            return Deferred(subtask, "MAX_STARTS", "as many as --max-starts allows were started")
        return self._no_slot(subtask) if self._free_slots <= 0 else None

    def _no_slot(self, subtask: SubtaskId) -> Deferred:
        if self._preceded and subtask not in self._running:
            other = self._preceded.pop(0)
            return Deferred(subtask, "PRECEDENCE", f"{other} was started before and takes the free slot", other)
        return Deferred(subtask, "SLOTS", f"all {self._limits.max_concurrency} slots are taken")
