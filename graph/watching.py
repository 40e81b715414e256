"""One running turn, watched: its questions are shown, its prompt is typed where it has to be, its end is awaited.

What is seen here is recorded; nothing here proves that work was done. What it asks is `questioning`, what a program
that stays takes and shows `composing`.
"""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

import anyio

from coordinate_agents.graph.composing import Composer
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import TurnStalled, TurnWentOn
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.overdue import end_overdue
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.questioning import Questions
from coordinate_agents.graph.speaking import cause_of_outcome
from coordinate_agents.graph.watched import Watched
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionEnd, TurnFacts, TurnLimits
from coordinate_agents.sessions.turns.model import TurnId, TurnSpec

# A turn that is tried again after a refusal and works for so long got through.
PROBE_S: Final = 60.0
# A stall is minutes long: where many turns start, nobody looks for one at once.
_STALLED_S: Final = 2.0


def limits_of(task: Task) -> TurnLimits:
    """The deadlines of a turn of the subtask."""
    return TurnLimits(timeout_s=task.timeout_s, idle_timeout_s=task.idle_timeout_s, on_idle=task.on_idle)


class Watch:
    """The turn of one subtask, from all its sides at once."""

    def __init__(self, context: Context, subtask: SubtaskId, agent: ResolvedAgent | None, turn: TurnId) -> None:
        self._watched = Watched(context, subtask, agent, turn)
        self._composer = Composer(self._watched)
        self._questions = Questions(self._watched, self._composer)
        self._context = context
        self._subtask = subtask
        self._session = self._watched.session

    @property
    def cause(self) -> str | None:
        """Why the turn was ended from here; None when it was not."""
        return self._watched.cause

    @property
    def detail(self) -> str:
        """More of the same: what was asked, or what went wrong."""
        return self._watched.detail

    async def until_end(self) -> SessionEnd | TurnFacts:
        """Watch until the agent's process ended, or its turn is over and it stays.

        Raises: SessionError, and GraphError from recording.
        """
        limits = limits_of(self._context.task(self._subtask))
        await self._context.turns.take_over(self._session, self._watched.turn, TurnSpec(limits=limits))
        ended: list[SessionEnd | TurnFacts] = []
        failed: list[SessionError | GraphError] = []

        async def wait() -> None:
            try:
                ended.append(await self._end_of_turn())
            except SessionError as error:
                failed.append(error)
            group.cancel_scope.cancel()

        async def beside(work: Callable[[], Awaitable[None]]) -> None:
            try:
                await work()
            except SessionError:
                return  # the Session is gone or silent, and its end is waited for
            except GraphError as error:
                failed.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            for work in self._works():
                group.start_soon(beside, work)
        if failed:
            raise failed[0]
        return ended[0]

    async def _end_of_turn(self) -> SessionEnd | TurnFacts:
        """How its process ended, or what the turn left of one that stays."""
        outcome = await self._context.turns.wait_for_turn(self._session, self._watched.turn)
        if outcome.end is not None:
            return outcome.end
        if outcome.facts is not None:
            watched = self._watched
            if watched.cause is None:  # the agent itself said that it is over
                watched.cause, watched.detail = cause_of_outcome(outcome)
            crash_point("stay.over")
            return outcome.facts
        return await self._context.sessions.wait(self._session)  # it went as its turn was over, or was ended

    async def take_slot(self) -> None:
        """Wait for the slot that a question gave back, before what follows takes the machine."""
        while self._watched.phase in WITHOUT_SLOT:
            if not self._watched.wants_slot():
                await self._context.next_change()

    # --- side by side

    def _works(self) -> Iterator[Callable[[], Awaitable[None]]]:
        yield self._questions.follow
        yield self._limits
        yield self._stalls
        yield partial(end_overdue, self._watched)
        if self._context.run(self._subtask).limited_since is not None:
            yield self._probe
        agent = self._watched.agent
        if agent is not None and agent.mode == "interactive":
            yield self._composer.converse
            yield self._hear_submission

    async def _hear_submission(self) -> None:
        """One that was written as a file, by who could tell nobody, is looked at as soon as it is there."""
        await self._context.agents.submission(self._session)
        self._context.nudged.ring()

    async def _probe(self) -> None:
        """After a refusal: it works, so its agent's other subtasks may go on."""
        await anyio.sleep(PROBE_S)
        if self._watched.phase == "working":
            self._watched.record("working")

    async def _limits(self) -> None:
        """Let amended limits hold for the turn that runs; a driver that died may have been told of some."""
        told: Task | None = None if self._context.revision > 1 else self._context.task(self._subtask)
        while self.cause is None:
            amended, task = self._context.amended.next, self._context.task(self._subtask)
            if told is None or (limits_of(told), told.input_timeout_s) != (limits_of(task), task.input_timeout_s):
                session, limits, told = self._session, limits_of(task), task
                await self._context.sessions.set_limits(session, limits, input_timeout_s=task.input_timeout_s)
            await amended.wait()

    async def _stalls(self) -> None:
        """Record what its host found: that nothing new comes, and that something does. Waiting for a person is none."""
        await anyio.sleep(_STALLED_S)
        while True:
            is_stalled = self._context.run(self._subtask).stalled_since is not None
            await self._context.sessions.stall_change(self._session, is_stalled=is_stalled)
            changed = TurnWentOn if is_stalled else TurnStalled
            self._context.record(changed(self._subtask, self._session))
