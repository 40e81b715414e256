"""drive(): move one graph forward until nothing runs and nothing can start. Joins store, machine, planner, perform.

The order for every event is fixed: the machine completes and folds it, the store appends event and cache row under
the lease's generation, and only then do its effects start and the freed slots get planned again. Nothing polls.
Everything here runs in one thread of one event loop; only git runs in worker threads.

A driver that must leave (a signal, a deadline) stops planning, cancels what may be cancelled (waiting for agents, who
live on in their hosts; checks, which are run again) and lets the rest reach its next event within a bound.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from coordinate_agents.graph import machine, recovery
from coordinate_agents.graph.bell import Bell
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.context import Context, Leaving, checks_at_a_time
from coordinate_agents.graph.effects import AwaitRetry, AwaitTurn, CheckIntegration, Effect, ExplainExit, Verify
from coordinate_agents.graph.events import (
    DURABLE,
    Event,
    GraphAmended,
    IntegrationStarted,
    PhaseChanged,
    SessionStarted,
    TaskClaimed,
    TaskHeld,
    TaskReleased,
    TaskStopped,
    event_type,
    subtask_of,
    to_data,
)
from coordinate_agents.graph.integration import heads_to_merge, merge_order
from coordinate_agents.graph.model import CommitId, SubtaskId, TaskGraph
from coordinate_agents.graph.perform import perform
from coordinate_agents.graph.planner import Planner
from coordinate_agents.graph.schedule import Deferred
from coordinate_agents.graph.slots import PortsTakenError
from coordinate_agents.graph.snapshot import GraphSummary, Snapshot, TaskRun, run_to_row, summary_to_row
from coordinate_agents.graph.store.rows import NewDocument, NewEvent, RequestResult, RunRow
from coordinate_agents.worktrees.model import Head
from coordinate_agents.worktrees.values import value_class

# A git step or a start in progress gets this long to reach its event when the driver leaves; then it is cancelled
# and the next driver finds its recorded intent.
LEAVE_BOUND_S: Final = 15.0
# Effects that may be cut short at any moment: they only wait, or are simply done again.
_CANCELLABLE: Final = (AwaitTurn, AwaitRetry, Verify, CheckIntegration)
# What finds out how something ended; nothing of it starts an agent.
_LOOKS: Final = (AwaitTurn, Verify, ExplainExit)


@value_class
class DriveOptions:
    """`until`: only this subtask and what it needs. `max_starts`: at most so many new attempts in this drive.

    `onto`: what an integration begins with, None: what the last one did; `onto_name` is how the person named it.
    `only_start`: nothing but one attempt of this subtask, and leave when its Session started. `only_look`: start no
    agent; see how what runs ended, and verify it.
    """

    integrate: bool = False
    onto: CommitId | None = None
    onto_name: str = ""
    until: SubtaskId | None = None
    max_starts: int | None = None
    only_start: SubtaskId | None = None
    only_look: bool = False

    @property
    def is_short(self) -> bool:
        return self.only_look or self.only_start is not None


class Engine:
    """One drive of one graph, by the holder of its lease."""

    def __init__(self, context: Context, options: DriveOptions) -> None:
        self.context = context
        self._options = options
        self._planner = Planner(
            context.snapshot,
            until=options.until,
            max_starts=options.max_starts,
            agent_of=context.agent_of,
        )
        self._scopes: dict[int, tuple[Effect, anyio.CancelScope]] = {}
        self._count = 0
        self._is_leaving = False
        self._is_planning = False
        self._may_plan = False
        self._has_integrated = False
        self._is_undone = False
        self._kept_open = 0
        self._changed = Bell()
        self._happened = Bell()
        self._group: TaskGroup | None = None
        self._found_ended: set[SubtaskId] = set()
        context.record = self.apply
        context.tokens = self.tokens
        context.next_change = self._changed.wait
        context.notify = self._changed.ring
        context.is_leaving = lambda: self._is_leaving

    async def run(self, begin: Callable[["Engine"], Awaitable[None]]) -> None:
        """Drive to the end. `begin` records and starts what recovery decided. Raises what a broken store raises."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                await begin(self)
                # Only now: before, what an earlier driver left is being looked at, and a claim would look like it.
                self._may_plan = not self._options.is_short
                self._plan()
                self._integrate_when_done()
                while (self._scopes or self._kept_open) and not self._is_leaving:
                    await self._changed.wait()
                if self._is_leaving:
                    await self._finish_steps()
                group.cancel_scope.cancel()
        finally:
            self._group = None

    def leave(self) -> None:
        """Start nothing more; let `run` return soon, with agents left running in their hosts."""
        self._is_leaving = True
        self._happened.ring()
        self._changed.ring()

    def drain(self) -> None:
        """Start nothing new; what runs is driven to its end."""
        self._may_plan = False

    @contextlib.contextmanager
    def kept_open(self) -> Iterator[None]:
        """Inside the block the drive does not end, although nothing runs: what is being done may make more ready."""
        self._kept_open += 1
        try:
            yield
        finally:
            self._kept_open -= 1
            self._changed.ring()

    def beside(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do this, too, as long as the drive lasts; the drive does not wait for it. Nothing when it is over."""
        if self._group is not None:
            self._group.start_soon(work)

    def is_at_work(self, subtask: SubtaskId) -> bool:
        """Whether a step of the subtask is being carried out in this drive."""
        return any(getattr(effect, "subtask", None) == subtask for effect, _ in self._scopes.values())

    async def halt(self, subtask: SubtaskId) -> None:
        """Cut the subtask's effects short and wait until they are gone; what it records afterwards is the caller's."""
        while effects := [each for each in self._scopes.values() if getattr(each[0], "subtask", None) == subtask]:
            for _, scope in effects:
                scope.cancel()
            await self._changed.wait()

    def apply(self, event: Event, *, results: Sequence[RequestResult] = ()) -> None:
        """Fold, append, start effects, plan. Raises: GraphError (STALE_CLAIM ends the drive)."""
        self.apply_all((event,), results=results)

    def apply_all(self, events: Sequence[Event], *, results: Sequence[RequestResult] = ()) -> None:
        """The same for events of which none may be recorded without the others; the request that asked is answered.

        Planned is only after the last one: a subtask that is ready after the first may not be after the second.
        """
        context = self.context
        now = context.clock.now()
        folded: list[tuple[Event, TaskRun | GraphSummary]] = []
        effects: list[Effect] = []
        for event in events:
            event = machine.decide(context.snapshot, event)
            changed, following = machine.step(context.snapshot, event, time=now)
            folded.append((event, changed))
            effects += following
        self._append(folded, now, results)
        has_moved = False
        for event, _ in folded:
            context.progress.event(context.snapshot, event, now)
            context.told(event)
            subtask = subtask_of(event)
            has_moved |= (
                subtask not in context.snapshot.runs
                or self._planner.sync(subtask)
                or isinstance(event, TaskHeld | TaskReleased)
            )
            if isinstance(event, SessionStarted) and event.subtask == self._options.only_start:
                self.leave()
        for effect in machine.still_due(effects, events):
            self.start(effect)
        self._happened.ring()
        if has_moved:
            context.slots.settle()
            self._plan()
            self._changed.ring()  # tokens may be free

    def amend(
        self,
        event: GraphAmended,
        graph: TaskGraph,
        document: NewDocument,
        config: Config,
        *,
        results: Sequence[RequestResult] = (),
    ) -> None:
        """Go over to a new revision without stopping: fold, record, plan anew. `amending` found it possible.

        What runs goes on, from now on within the new limits; it meets the configuration where it next asks for it.
        """
        context, now = self.context, self.context.clock.now()
        runs = machine.amend(context.snapshot, event, graph)
        context.store.update_document(
            context.graph_id,
            context.generation,
            document,
            revision=event.revision,
            event=_row(event),
            runs=[RunRow(run.id, run_to_row(run)) for run in runs],
            dropped=event.dropped,
            summary=summary_to_row(context.snapshot.summary),
            results=results,
            now=now,
        )
        context.config, context.revision = config, event.revision
        context.slots.change(config)
        context.amended.ring()
        context.resolved.clear()
        context.checks.total_tokens = checks_at_a_time(graph)
        # What is asked of this drive holds for what it became.
        self._has_integrated = False
        self._planner.rebuild()
        context.progress.event(context.snapshot, event, now)
        self._happened.ring()
        self._plan()
        self._changed.ring()

    @property
    def until(self) -> SubtaskId | None:
        """The subtask at which this drive ends; None: at the end of the graph."""
        return self._options.until

    @contextlib.asynccontextmanager
    async def tokens(self, key: str, needs: Sequence[str], subtask: SubtaskId | None = None) -> AsyncIterator[None]:
        """Hold these tokens meanwhile; waits, without the subtask's slot, until all of them are free.

        `key` is unique among holders.
        """
        while not self._planner.hold(key, needs, subtask=subtask):
            self._plan()
            await self._changed.wait()
        try:
            yield
        finally:
            self._planner.give_back(key)
            self._plan()
            self._changed.ring()

    def start(self, effect: Effect) -> None:
        """Begin an effect; its outcome is applied when it ends. A leaving driver begins nothing: the next one does."""
        if self._group is None or self._is_leaving or not self._admits(effect):
            return
        self._count += 1
        scope = anyio.CancelScope()
        self._scopes[self._count] = (effect, scope)
        self._group.start_soon(self._perform, effect, self._count, scope)

    def _admits(self, effect: Effect) -> bool:
        if self._options.only_look:
            # What lives may go on for hours: only an end that came already is looked at.
            is_due = not isinstance(effect, AwaitTurn) or effect.subtask in self._found_ended
            return isinstance(effect, _LOOKS) and is_due
        only = self._options.only_start
        return only is None or getattr(effect, "subtask", None) == only

    @property
    def starts_agents(self) -> bool:
        """Whether this drive starts what is ready."""
        return not self._options.is_short and not self._is_leaving

    @property
    def starts_anew(self) -> bool:
        """Whether this drive may begin attempts at all."""
        return self._options.max_starts != 0

    def why_not(self, subtask: SubtaskId) -> Deferred | None:
        """Why a ready subtask cannot start now; None when it can."""
        return self._planner.why_not(subtask, closed=self.context.hold_starts())

    def claim(self, subtask: SubtaskId) -> None:
        """Start a ready subtask now, whatever else would come first. Raises: GraphError when it is not ready."""
        self.apply(self._claim(subtask))

    async def _perform(self, effect: Effect, key: int, scope: anyio.CancelScope) -> None:
        outcome: tuple[Event, ...] = ()
        with scope, contextlib.suppress(Leaving):
            outcome = await perform(self.context, effect)
        if outcome:
            self.apply_all(outcome)
            self._resume_found(outcome[-1])
        self._scopes.pop(key, None)
        self._integrate_when_done()
        self._changed.ring()

    def found_undone(self) -> None:
        """The integration's branch or worktree is not as recorded any more: it is made again when one was asked for."""
        self._is_undone = True

    def found_ended(self, subtask: SubtaskId) -> None:
        """Its Session ended or was lost before this drive: should that prove an interruption, it is resumed, once."""
        self._found_ended.add(subtask)

    def _resume_found(self, outcome: Event) -> None:
        if self._options.is_short or not self.starts_anew:
            return
        if isinstance(outcome, TaskStopped) and outcome.subtask in self._found_ended:
            self._found_ended.remove(outcome.subtask)
            reset = recovery.reset_if_interrupted(self.context.run(outcome.subtask))
            if reset is not None:
                self.apply(reset)

    async def next_event(self) -> None:
        """Wait until any event was applied."""
        await self._happened.wait()

    async def _finish_steps(self) -> None:
        for effect, scope in list(self._scopes.values()):
            if isinstance(effect, _CANCELLABLE):
                scope.cancel()
        with anyio.move_on_after(LEAVE_BOUND_S):
            while self._scopes or self._kept_open:
                await self._changed.wait()

    def _append(
        self, folded: Sequence[tuple[Event, TaskRun | GraphSummary]], now: float, results: Sequence[RequestResult]
    ) -> None:
        rows = [_row(event) for event, _ in folded]
        # Of a subtask that several events changed the last row counts.
        runs = {changed.id: changed for _, changed in folded if isinstance(changed, TaskRun)}
        summary = next((changed for _, changed in reversed(folded) if isinstance(changed, GraphSummary)), None)
        self.context.store.append(
            self.context.graph_id,
            self.context.generation,
            rows,
            runs=[RunRow(run.id, run_to_row(run)) for run in runs.values()],
            summary=summary_to_row(summary) if summary is not None else None,
            results=results,
            now=now,
        )

    def _plan(self) -> None:
        """Resume and claim what may start now, one at a time: each changes the slots before the next look."""
        if self._is_leaving or self._group is None or self._is_planning or self._options.only_start is not None:
            return
        self._is_planning = True
        try:
            if self._options.only_look:
                self._go_on_looking()
                return
            while (subtask := self._planner.next_resume()) is not None:
                self.apply(self._resume(subtask))
            while self._may_plan and (subtask := self._planner.next_start(closed=self.context.hold_starts())):
                self.apply(self._claim(subtask))
        except PortsTakenError:
            return  # another graph was quicker; the next event looks again
        finally:
            self._is_planning = False

    def _go_on_looking(self) -> None:
        """Who ended has no use for a slot but to be verified, and the agents that have them all may go on for hours."""
        for subtask in [effect.subtask for effect, _ in self._scopes.values() if isinstance(effect, _LOOKS)]:
            if self.context.run(subtask).can_go_on:
                self.apply(self._resume(subtask))

    def _resume(self, subtask: SubtaskId) -> PhaseChanged:
        """The slot it gave back: a refused turn is opened again, a waiting agent simply goes on."""
        run = self.context.run(subtask)
        return PhaseChanged(subtask, "preparing" if run.phase == "throttled" else "working")

    def _claim(self, subtask: SubtaskId) -> TaskClaimed:
        context = self.context
        run, agent = context.run(subtask), context.agent_of(context.task(subtask))
        # A rework goes on with its attempt; another agent begins one of its own.
        goes_on = run.is_rework and run.agent == agent
        attempt = run.attempt if goes_on else run.attempt + 1
        # The process that stayed was told its number when it began.
        lives = goes_on and run.open_session is not None
        slot = context.slots.take(wanted=run.slot if goes_on else None, lives=lives)
        return TaskClaimed(subtask, attempt, agent, context.new_nonce(), slot)

    def _integrate_when_done(self) -> None:
        snapshot = self.context.snapshot
        if not self._options.integrate or self._is_leaving or self._scopes:
            return
        if snapshot.frontier.counts()["succeeded"] != len(snapshot.tasks):
            return
        heads = verified_heads(snapshot)
        if not heads:
            return  # nothing to integrate is not the same as integrated
        integration = snapshot.summary.integration
        onto, name = integration.onto, integration.onto_name
        if self._options.onto is not None:
            onto, name = self._options.onto, self._options.onto_name
        is_same = (integration.heads, integration.onto) == (heads, onto)
        is_done = integration.state == "integrated" and is_same and not self._is_undone
        # Of other commits than those that a person is merging: that merge is finished or given up first.
        is_in_the_way = integration.is_aborting or (integration.state == "conflict" and not is_same)
        if not is_done and not is_in_the_way and not self._has_integrated:
            # Once in a drive: a conflict or a failing check would only come out the same.
            self._has_integrated = True
            self.apply(IntegrationStarted(heads, onto, name))


def _row(event: Event) -> NewEvent:
    name = event_type(event)
    return NewEvent(
        type=name,
        data=to_data(event),
        subtask_id=subtask_of(event),
        session_id=getattr(event, "session", None),
        durable=name in DURABLE,
    )


def verified_heads(snapshot: Snapshot) -> tuple[Head, ...]:
    """The verified commits that bring something, in merge order."""
    verified = {run.id: run.verified_commit for run in snapshot.runs.values() if run.verified_commit is not None}
    return heads_to_merge(merge_order(snapshot.graph), verified, base=snapshot.summary.base or "")
