"""One running turn, watched: its prompt is typed, its questions are shown, its end is awaited.

What is seen here is recorded as a phase; nothing here proves that work was done. A question is never answered by the
Runtime: a person answers in the Session, or the deadline ends it. A login screen ends the turn at once, since every
other start of that agent would meet it too. Of a program that stays, the submit file and an idle screen say that the
turn is over. Its process then stays, idle, for a next turn; one that goes on all the same is closed, so that nothing
changes the worktree while it is verified.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Final

import anyio
from anyio.abc import TaskGroup

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import PhaseChanged, TurnStalled, TurnWentOn
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.pace import PACE
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.speaking import asked_words, cause_of_outcome, choices_of
from coordinate_agents.graph.states import Phase
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Question, SessionEnd, SessionId, TurnFacts, TurnLimits
from coordinate_agents.sessions.turns.model import TurnCompleted, TurnId, TurnSpec

# A turn that is tried again after a refusal and works for so long got through.
PROBE_S: Final = 60.0
# A program that stays and neither reads its terminal nor shows anything for so long takes no prompt.
READY_BOUND_S: Final = 60.0
_QUIET_S: Final = 3.0 * PACE
# A question stands for so long at most before it is recorded as one.
_ASKED_S: Final = 2.0
# A stall is minutes long: where many turns start, nobody looks for one at once.
_STALLED_S: Final = 2.0
# One wait for output; the submit file is looked for at least this often, where neither evidence-submit nor the system
# tells that it is there.
_OUTPUT_WAIT_MS: Final = int(5000 * PACE)
# Programs draw a screen anew in less.
_TAIL_BYTES: Final = 64 << 10
_NOTE_CHARACTERS: Final = 1000
# A program that submitted says its last words: it is idle when it was silent for two such looks, and, where that can be
# seen, its screen looks so. One that is still at work after the bound is closed.
_SETTLE_S: Final = 1.0 * PACE
_SETTLE_MS: Final = int(1000 * PACE)
SETTLE_BOUND_S: Final = 60.0


def limits_of(task: Task) -> TurnLimits:
    """The deadlines of a turn of the subtask."""
    return TurnLimits(timeout_s=task.timeout_s, idle_timeout_s=task.idle_timeout_s, on_idle=task.on_idle)


class Watch:
    """The turn of one subtask. `cause` is why it was ended from here, None when it was not; `detail` says more."""

    def __init__(self, context: Context, subtask: SubtaskId, agent: ResolvedAgent | None, turn: TurnId) -> None:
        self._context = context
        self._subtask = subtask
        self._agent = agent
        self._turn = turn
        self._session = SessionId(context.run(subtask).session or "")
        self._reads_terminal = anyio.Event()
        self._asked = ""
        self.cause: str | None = None
        self.detail = ""

    async def until_end(self) -> SessionEnd | TurnFacts:
        """Watch until the agent's process ended, or its turn is over and it stays.

        Raises: SessionError, and GraphError from recording.
        """
        limits = limits_of(self._context.task(self._subtask))
        await self._context.turns.take_over(self._session, self._turn, TurnSpec(limits=limits))
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
        outcome = await self._context.turns.wait_for_turn(self._session, self._turn)
        if outcome.end is not None:
            return outcome.end
        if outcome.facts is not None:
            if self.cause is None:  # the agent itself said that it is over
                self.cause, self.detail = cause_of_outcome(outcome)
            crash_point("stay.over")
            return outcome.facts
        return await self._context.sessions.wait(self._session)  # it went as its turn was over, or was ended

    async def take_slot(self) -> None:
        """Wait for the slot that a question gave back, before what follows takes the machine."""
        while self._phase in WITHOUT_SLOT:
            if not self._wants_slot():
                await self._context.next_change()

    # --- side by side

    def _works(self) -> Iterator[Callable[[], Awaitable[None]]]:
        yield self._questions
        yield self._limits
        yield self._stalls
        if self._context.run(self._subtask).limited_since is not None:
            yield self._probe
        if self._agent is not None and self._agent.mode == "interactive":
            yield self._converse
            yield self._hear_submission

    async def _hear_submission(self) -> None:
        """One that was written as a file, by who could tell nobody, is looked at as soon as it is there."""
        await self._context.agents.submission(self._session)
        self._context.nudged.ring()

    async def _probe(self) -> None:
        """After a refusal: it works, so its agent's other subtasks may go on."""
        await anyio.sleep(PROBE_S)
        if self._phase == "working":
            self._record("working")

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

    # --- questions

    async def _questions(self) -> None:
        asked = await self._left_over()
        while self.cause is None:
            if asked is None:
                asked = await self._context.sessions.question_change(self._session, None)
            if asked is None:
                continue
            if asked.kind == "other" and (self._takes_prompt() or await self._has_submitted_unseen()):
                # It reads its terminal: not a question, but what its prompt waited for, or the end of its turn.
                self._reads_terminal.set()
                asked = await self._context.sessions.question_change(self._session, asked)
                continue
            if self._phase == "held":
                asked = await self._after_hold()
                continue
            await self._show(asked)
            if await self._may_wait(asked):
                asked = await self._answered(asked)
                if asked is None and self.cause is None:
                    asked = await self._go_on()

    async def _left_over(self) -> Question | None:
        """What is still asked of that which an earlier driver recorded."""
        if self._phase != "awaiting-input":
            return None
        return await self._context.sessions.question(self._session) or await self._go_on()

    async def _go_on(self) -> Question | None:
        """Wait for the slot after an answer; None when it is there, else what is asked before it came."""
        while self._phase in WITHOUT_SLOT:
            if self._wants_slot():
                continue
            asked: list[Question | None] = []

            async def ask(group: TaskGroup, asked: list[Question | None]) -> None:
                asked.append(await self._context.sessions.question_change(self._session, None))
                group.cancel_scope.cancel()

            # Neither records anything, so nothing but a cancellation leaves this group.
            async with anyio.create_task_group() as group:
                group.start_soon(ask, group, asked)
                await self._context.next_change()
                group.cancel_scope.cancel()
            if asked and asked[0] is not None:
                return asked[0]
        return None

    def _wants_slot(self) -> bool:
        """Say that it can go on, once. Whoever holds it says that by itself."""
        if self._phase == "held" or self._context.run(self._subtask).can_go_on:
            return False
        self._record(self._phase, can_go_on=True)
        return True

    async def _after_hold(self) -> Question | None:
        """A person sits at the terminal: nothing is shown or ended before they left. What is asked then."""
        while self._phase == "held":
            await self._context.next_change()
        return await self._context.sessions.question(self._session)

    async def _show(self, question: Question) -> None:
        """Record it, in the words of the screen: a dialog is drawn, and its plain output is hard to read."""
        shown = asked_words(question) if question.options else await self._screen()
        self._asked = note = (shown or question.text)[-_NOTE_CHARACTERS:]
        run, choices = self._context.run(self._subtask), choices_of(question)
        # The same words may be asked twice: an answer is to one of them.
        request = question.id if choices else ""
        if run.phase != "awaiting-input" or (run.reason, run.request) != (note, request) or run.can_go_on:
            asked = PhaseChanged(
                self._subtask, "awaiting-input", note, kind=question.kind, request=request, choices=choices
            )
            self._context.record(asked)

    async def _screen(self) -> str:
        tail = await self._context.sessions.read(self._session, max_bytes=_TAIL_BYTES, form="raw")
        columns, rows = await self._size()
        return await self._context.call(self._context.agents.shown, tail.text, columns=columns, rows=rows)

    async def _may_wait(self, question: Question) -> bool:
        """Whether a person is waited for; otherwise the Session is ended."""
        if question.kind == "login":
            await self._end("login", self._asked or question.text)
        elif self._context.on_input == "fail":
            await self._end("input", self._asked or question.text)
        return self.cause is None

    async def _answered(self, question: Question) -> Question | None:
        """The next question, or None when this one is gone, or when nobody answered in time (then `cause` is set)."""
        changed: list[Question | None] = []
        failed: list[SessionError] = []

        async def until_changed() -> None:
            try:
                changed.append(await self._context.sessions.question_change(self._session, question))
            except SessionError as error:
                failed.append(error)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(until_changed)
            while (left_s := self._left_to_answer()) > 0:
                # An amendment may give more time, or less.
                amended = self._context.amended.next
                with anyio.move_on_after(left_s):
                    await amended.wait()
            group.cancel_scope.cancel()
        if failed:
            raise failed[0]
        if changed:
            return changed[0]
        if self._phase == "held":
            return await self._after_hold()
        await self._end("input", self._asked or question.text)
        return None

    def _left_to_answer(self) -> float:
        """Seconds; the time of a driver that is gone counts, too."""
        run, task = self._context.run(self._subtask), self._context.task(self._subtask)
        return task.input_timeout_s - (self._context.clock.now() - (run.phase_since or 0.0))

    # --- a program that stays

    async def _converse(self) -> None:
        if not await self._deliver():
            return
        agents, sessions, agent = self._context.agents, self._context.sessions, self._agent
        assert agent is not None
        last, printed_at, clock = -1, 0.0, self._context.clock
        while self.cause is None:
            # Before the look: a nudge after it is not missed.
            nudged = self._context.nudged.next
            tail = await sessions.read(self._session, max_bytes=_TAIL_BYTES, form="raw")
            is_quiet = clock.monotonic() - printed_at >= agents.idle_s(agent)
            if self._phase == "held":
                await self._context.next_change()
            elif await self._context.call(agents.has_submitted, self._session):
                await self._over("submitted", is_idle=False)
            elif tail.next_cursor != last:
                # Something was printed: it is over only when nothing more comes for a while.
                last, printed_at = tail.next_cursor, clock.monotonic()
                await anyio.sleep(_SETTLE_S)
            elif self._phase == "working" and is_quiet and await self._looks_idle(agent, tail.text):
                await self._over("idle-prompt", is_idle=True)
            else:
                wait_ms = _OUTPUT_WAIT_MS if is_quiet else _SETTLE_MS
                await self._output_or_nudge(tail.next_cursor, wait_ms, nudged)

    async def _output_or_nudge(self, cursor: int, wait_ms: int, nudged: anyio.Event) -> None:
        """Wait for output after the cursor, or until somebody asks to be looked at. Raises: SessionError."""
        failed: list[SessionError] = []

        async def read() -> None:
            try:
                await self._context.sessions.read(self._session, cursor=cursor, max_bytes=1024, wait_ms=wait_ms)
            except SessionError as error:
                failed.append(error)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await nudged.wait()
            group.cancel_scope.cancel()
        if failed:
            raise failed[0]

    async def _size(self) -> tuple[int, int]:
        record = (await self._context.sessions.look(self._session)).record
        return (record.columns, record.rows) if record is not None else (120, 40)

    async def _looks_idle(self, agent: ResolvedAgent, output: str) -> bool:
        columns, rows = await self._size()
        return await self._context.call(self._context.agents.is_idle, agent, output, columns=columns, rows=rows)

    def _is_typed(self) -> bool:
        """Whether this turn's prompt is typed: by the agent's delivery, or because its process is there already."""
        agent = self._agent
        if agent is None or agent.mode != "interactive":
            return False
        return agent.delivery == "paste" or self._context.run(self._subtask).is_reused

    def _takes_prompt(self) -> bool:
        """Whether a prompt is still to be typed into a program of which no screen says that it is ready."""
        agent = self._agent
        return (
            agent is not None
            and self._is_typed()
            and self._context.run(self._subtask).delivered in ("", "false")
            and not self._context.agents.says_ready(agent)
        )

    async def _has_submitted_unseen(self) -> bool:
        """Whether a program of which no screen says what it does has submitted: it waits for its next prompt then."""
        agent, agents = self._agent, self._context.agents
        if agent is None or agent.mode != "interactive" or agents.says_idle(agent):
            return False
        return await self._context.call(agents.has_submitted, self._session)

    async def _over(self, cause: str, *, is_idle: bool) -> None:
        """The turn is over: its process stays when it is idle, or comes to be within the bound; else it is closed."""
        if not is_idle and not await self._until_idle():
            await self._end(cause, f"it went on for {SETTLE_BOUND_S:g} s after its turn was over, and was closed")
            return
        self.cause = cause
        self._context.turns.observe(self._session, TurnCompleted(self._turn, cause))

    async def _until_idle(self) -> bool:
        """Wait until the program is silent and, where that can be seen, its screen looks idle. False at the bound.

        The time of a person who sits at the terminal, or has to answer something, does not count.
        """
        agent, context = self._agent, self._context
        assert agent is not None
        while True:
            if context.run(self._subtask).question == "other" and await self._has_submitted_unseen():
                return True  # what was taken for a question is its prompt
            last = -1
            with anyio.move_on_after(SETTLE_BOUND_S):
                while self._phase not in WITHOUT_SLOT:
                    tail = await context.sessions.read(self._session, max_bytes=_TAIL_BYTES, form="raw")
                    if tail.next_cursor == last and (
                        not context.agents.says_idle(agent) or await self._looks_idle(agent, tail.text)
                    ):
                        return True
                    last = tail.next_cursor
                    await anyio.sleep(_SETTLE_S)
            if self._phase not in WITHOUT_SLOT:
                return False
            while self._phase in WITHOUT_SLOT:
                await context.next_change()

    async def _until_ready(self) -> bool:
        """Wait until it can take a prompt; False when it does not come to that. What is typed earlier may be lost.

        It reads its terminal, or drew something and is quiet. For a first prompt the host itself waits where patterns
        say when; for a further one the screen has to look idle.
        """
        if not self._takes_prompt():
            return not self._context.run(self._subtask).is_reused or await self._until_idle()
        with anyio.move_on_after(READY_BOUND_S):
            last = 0
            while not self._reads_terminal.is_set():
                tail = await self._context.sessions.read(self._session, max_bytes=1024)
                if last and tail.next_cursor == last:
                    return True
                last = tail.next_cursor
                with anyio.move_on_after(_QUIET_S):
                    await self._reads_terminal.wait()
            return True
        return False

    async def _deliver(self) -> bool:
        """Type the prompt, once. "unknown" is recorded before: whoever comes back after a crash types no second one."""
        assert self._agent is not None
        if not self._is_typed():
            return True
        while self._context.run(self._subtask).delivered in ("", "false"):
            while self._phase == "held":  # a person works there: nothing is typed
                await self._context.next_change()
            if not await self._until_ready():
                await self._end("not-ready", f"it was not ready after {READY_BOUND_S:g} s")
                return False
            if await self._was_without_slot():
                continue  # a person answered; what follows may be the next question
            prompt = await self._context.call(self._context.agents.typed, self._session)
            self._record(self._phase, delivered="unknown")
            result = await self._context.turns.write_input(self._session, prompt, submit=True)
            if self.cause is not None:
                return False
            self._record(self._phase, delivered=result.delivered)
            if result.delivered != "false":
                break
            with anyio.move_on_after(_ASKED_S):  # its host sees a question before this process records it
                while self._phase not in WITHOUT_SLOT:
                    await self._context.next_change()
            if not await self._was_without_slot():
                await self._end("not-ready", result.reason)
                return False
        return True

    async def _was_without_slot(self) -> bool:
        """Wait while it asks something, or a person works there; whether there was a wait. No prompt is an answer."""
        has_waited = False
        while self._phase in WITHOUT_SLOT:
            has_waited = True
            await self._context.next_change()
        return has_waited

    # --- records

    @property
    def _phase(self) -> Phase:
        return self._context.run(self._subtask).phase or "working"

    def _record(self, phase: Phase, *, can_go_on: bool = False, delivered: str = "") -> None:
        """A phase that keeps what is asked, where it is the present one."""
        run = self._context.run(self._subtask)
        is_same = phase == run.phase
        changed = PhaseChanged(self._subtask, phase, can_go_on=can_go_on, delivered=delivered)
        if is_same:
            changed = replace(changed, kind=run.question, can_go_on=can_go_on or run.can_go_on)
        if is_same and not changed.can_go_on:
            changed = replace(changed, request=run.request, choices=run.choices)
        self._context.record(changed)

    async def _end(self, cause: str, detail: str = "") -> None:
        self.cause, self.detail = cause, detail
        await self._context.turns.dispose_session(self._session)
