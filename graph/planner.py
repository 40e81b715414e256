"""Which subtask starts next: keeps the ready queue and the taken slots in line with the snapshot. Pure.

The incremental side of `schedule`: after each folded event `sync` moves only the subtasks whose place changed, so a
transition costs the same in a large graph. Decides; starts nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from coordinate_agents.graph import order, schedule
from coordinate_agents.graph.breaker import Breaker
from coordinate_agents.graph.frontier import Place
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.snapshot import Snapshot

# Phases in which a running subtask gives its slot back; its write intent and its tokens stay taken.
WITHOUT_SLOT = frozenset({"awaiting-input", "throttled", "held"})


class Planner:
    """`until`: only this subtask and what it needs may start. `max_starts`: at most so many starts in all.

    `agent_of` names the agent of a task that leaves it open; without it such a task is held with nobody's agent.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        until: SubtaskId | None = None,
        max_starts: int | None = None,
        agent_of: Callable[[Task], str] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._until = until
        self._agent_of = agent_of
        self._breaker = Breaker()
        self._held: dict[str, tuple[str, ...]] = {}
        # Running subtasks that wait for tokens, without a slot meanwhile.
        self._waiting: dict[SubtaskId, tuple[str, ...]] = {}
        self._starts_left = max_starts
        self.rebuild()

    def rebuild(self) -> None:
        """Take everything from the snapshot anew, whose graph was amended; who holds or waits for tokens stays. Linear.

        Invariant: `until`, where it was given, is still a subtask.
        """
        snapshot, agent_of = self._snapshot, self._agent_of
        self._tasks = {
            name: task if task.agent is not None or agent_of is None else replace(task, agent=agent_of(task))
            for name, task in snapshot.tasks.items()
        }
        for subtask in snapshot.tasks:
            self._follow_agent(subtask)
        # Running subtasks that gave their slot back and want one again.
        self._resuming: set[SubtaskId] = set()
        self._eligible = None if self._until is None else _with_ancestors(snapshot.tasks, self._until)
        longest = order.longest_remaining(order.prerequisites(snapshot.graph))
        self._ready = schedule.ReadyQueue(snapshot.tasks, longest)
        self._running: dict[SubtaskId, schedule.Running] = {}
        snapshot.take_changed()
        for subtask in snapshot.tasks:
            self._put(subtask, snapshot.frontier.place(subtask))
            self._breaker.see(snapshot.runs[subtask])

    def sync(self, subtask: SubtaskId) -> bool:
        """Take over what an event about this subtask changed, for it and for those that it unlocked or blocked.

        Returns whether a place or a slot changed; where none did, the next plan is the last one.
        """
        frontier, before = self._snapshot.frontier, self._running.get(subtask)
        was_ready = subtask in self._ready
        self._follow_agent(subtask)
        was_resuming = subtask in self._resuming
        self._put(subtask, frontier.place(subtask))
        moved = self._snapshot.take_changed()
        for changed in moved:
            self._put(changed, frontier.place(changed))
        is_held_otherwise = self._breaker.see(self._snapshot.runs[subtask])
        has_turned = was_resuming != (subtask in self._resuming) or was_ready != (subtask in self._ready)
        return bool(moved) or has_turned or is_held_otherwise or before != self._running.get(subtask)

    def hold(self, key: str, needs: Sequence[str], *, subtask: SubtaskId | None = None) -> bool:
        """Take tokens beside the running subtasks', all or none; False when they are not free now.

        For checks, and for a further turn after them. Rule: nobody holds tokens while waiting for others; a subtask
        gives its own back for its verification. The problem this causes: it would wait with a slot for tokens of
        somebody who waits for a slot. Next rule: while it waits, `subtask` has no slot, and gets one again with its
        tokens, before any new start.
        """
        was_waiting = subtask is not None and subtask in self._waiting
        if self._are_free(needs) and (not was_waiting or self._has_free_slot()):
            self._held[key] = tuple(needs)
            if subtask is not None and was_waiting:
                del self._waiting[subtask]
                self._put(subtask, self._snapshot.frontier.place(subtask))
            return True
        if subtask is not None and not was_waiting:
            self._waiting[subtask] = tuple(needs)
            self._put(subtask, self._snapshot.frontier.place(subtask))
        return False

    @property
    def waiting(self) -> Collection[SubtaskId]:
        """The running subtasks that wait for tokens; they have no slot, and nothing of them is at work."""
        return self._waiting.keys()

    def _follow_agent(self, subtask: SubtaskId) -> None:
        """Plan with the agent that a person chose instead of the document's."""
        chosen = self._snapshot.runs[subtask].chosen_agent
        if chosen is not None and self._tasks[subtask].agent != chosen:
            self._tasks[subtask] = replace(self._tasks[subtask], agent=chosen)

    def _are_free(self, needs: Sequence[str]) -> bool:
        taken = Counter(token for each in self._running.values() for token in each.needs)
        taken.update(token for tokens in self._held.values() for token in tokens)
        total = self._snapshot.graph.resources
        return all(taken[token] + count <= total.get(token, 0) for token, count in Counter(needs).items())

    def _has_free_slot(self) -> bool:
        return sum(each.holds_slot for each in self._running.values()) < self._snapshot.graph.max_concurrency

    def give_back(self, key: str) -> None:
        """End a `hold`; nothing when there is none."""
        self._held.pop(key, None)

    def next_resume(self) -> SubtaskId | None:
        """The waiting subtask that gets its slot back now, before any new start; None when there is none, or no slot.

        Who has waited longest goes first. A paused agent holds back who would start a turn; one that was answered lives
        and goes on, and may be the very one that tries whether its service takes more.
        """
        if not self._resuming or not self._has_free_slot():
            return None
        runs, paused = self._snapshot.runs, self._breaker.paused()
        order = sorted(self._resuming, key=lambda subtask: (runs[subtask].phase_since or 0.0, subtask))
        may_go_on = (each for each in order if runs[each].phase != "throttled" or runs[each].agent not in paused)
        return next(may_go_on, None)

    def next_start(self, *, closed: str = "") -> SubtaskId | None:
        """The subtask to claim now; None when there is no slot, nothing ready, or starts are `closed` (the reason).

        Counts against `max_starts` when it returns one: the caller claims it.
        """
        plan = self.plan(closed=closed)
        if not plan.start:
            return None
        if self._starts_left is not None:
            self._starts_left -= 1
        return plan.start[0].subtask

    def plan(self, *, closed: str = "", limit: int | None = 1) -> schedule.Plan:
        """What would start now. `limit` bounds the starts looked for; None explains every ready subtask."""
        left = [bound for bound in (self._starts_left, limit) if bound is not None]
        # A slot is kept for each who waits for tokens that are free by now.
        kept = sum(self._are_free(needs) for needs in self._waiting.values())
        limits = self._limits(max_starts=min(left, default=None), closed=closed, kept=kept)
        tasks = self._tasks
        running = [*self._running.values(), *self._holders()]
        if limit is None:
            return schedule.plan(self._ready.candidates(()), running, tasks, limits, explain="all")
        plan = schedule.plan(self._ready.candidates(self._running), running, tasks, limits)
        # Those in the way of somebody running are not looked at again before that one has ended.
        self._ready.park(plan.deferred)
        return plan

    def why_not(self, subtask: SubtaskId, *, closed: str = "") -> schedule.Deferred | None:
        """Why this ready subtask would not start now, were it the first in the order; None when it would."""
        kept = sum(self._are_free(needs) for needs in self._waiting.values())
        running = [*self._running.values(), *self._holders()]
        limits = self._limits(closed=closed, kept=kept)
        plan = schedule.plan([subtask], running, self._tasks, limits, explain="all")
        return plan.deferred[0] if plan.deferred else None

    def _limits(self, *, max_starts: int | None = None, closed: str = "", kept: int = 0) -> schedule.Limits:
        graph = self._snapshot.graph
        return schedule.Limits(
            max_concurrency=graph.max_concurrency - kept,
            resources=graph.resources,
            paused_agents=self._breaker.paused(),
            max_starts=max_starts,
            closed=closed,
        )

    def _holders(self) -> Iterator[schedule.Running]:
        """Who holds tokens beside the running subtasks, in the form that a plan counts."""
        for key, needs in self._held.items():
            yield schedule.Running(SubtaskId(key), (), needs, holds_slot=False)

    def _put(self, subtask: SubtaskId, place: Place) -> None:
        task = self._snapshot.tasks[subtask]
        is_held = self._snapshot.runs[subtask].is_held
        if place == "ready" and not is_held and (self._eligible is None or subtask in self._eligible):
            self._ready.add(subtask)
        else:
            self._ready.discard(subtask)
        if place == "running":
            run = self._snapshot.runs[subtask]
            needs = () if run.phase == "verifying" else task.needs
            holds = run.phase not in WITHOUT_SLOT and subtask not in self._waiting
            self._running[subtask] = schedule.Running(subtask, task.writes, needs, run.agent, holds_slot=holds)
            if run.can_go_on and not holds:
                self._resuming.add(subtask)
            else:
                self._resuming.discard(subtask)
        else:
            self._running.pop(subtask, None)
            self._resuming.discard(subtask)
            self._waiting.pop(subtask, None)


def _with_ancestors(tasks: Mapping[SubtaskId, Task], subtask: SubtaskId) -> frozenset[SubtaskId]:
    found, queue = {subtask}, [subtask]
    while queue:
        needed: Sequence[SubtaskId] = tasks[queue.pop()].depends_on
        queue.extend(other for other in needed if other not in found)
        found.update(needed)
    return frozenset(found)
