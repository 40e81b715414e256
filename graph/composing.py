"""A program that stays: its prompt is typed once it can take it, and its screen or its submission says that it is done.

What is typed too early may be lost, and a prompt is never an answer: while it asks something, or a person sits at its
terminal, nothing is typed. The program stays, idle, for a next turn; one that goes on after the end of its turn is
closed, so that nothing changes the worktree while it is verified.
"""

from typing import Final

import anyio

from coordinate_agents.graph.pace import PACE
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.printed import SCREEN_BYTES
from coordinate_agents.graph.watched import Watched
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.turns.model import TurnCompleted

# A program that stays and neither reads its terminal nor shows anything for so long takes no prompt.
READY_BOUND_S: Final = 60.0
_QUIET_S: Final = 3.0 * PACE
# A question stands for so long at most before it is recorded as one.
_ASKED_S: Final = 2.0
# One wait for output; the submit file is looked for at least this often, where neither evidence-submit nor the system
# tells that it is there.
_OUTPUT_WAIT_MS: Final = int(5000 * PACE)
# A program that submitted says its last words: it is idle when it was silent for two such looks, and, where that can be
# seen, its screen looks so. One that is still at work after the bound is closed.
_SETTLE_S: Final = 1.0 * PACE
_SETTLE_MS: Final = int(1000 * PACE)
SETTLE_BOUND_S: Final = 60.0


class Composer:
    """The prompt and the end of one turn of such a program."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._context = watched.context
        self._subtask = watched.subtask
        self._session = watched.session
        self._agent = watched.agent

    async def converse(self) -> None:
        if not await self._deliver():
            return
        agents, sessions, agent = self._context.agents, self._context.sessions, self._agent
        assert agent is not None
        last, printed_at, clock = -1, 0.0, self._context.clock
        while self._watched.cause is None:
            # Before the look: a nudge after it is not missed.
            nudged = self._context.nudged.next
            tail = await sessions.read(self._session, max_bytes=SCREEN_BYTES, form="raw")
            is_quiet = clock.monotonic() - printed_at >= agents.idle_s(agent)
            if self._watched.phase == "held":
                await self._context.next_change()
            elif await self._context.call(agents.has_submitted, self._session):
                await self._over("submitted", is_idle=False)
            elif tail.next_cursor != last:
                # Something was printed: it is over only when nothing more comes for a while.
                last, printed_at = tail.next_cursor, clock.monotonic()
                await anyio.sleep(_SETTLE_S)
            elif self._watched.phase == "working" and is_quiet and await self._looks_idle(agent, tail.text):
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

    async def _looks_idle(self, agent: ResolvedAgent, output: str) -> bool:
        columns, rows = await self._watched.size()
        return await self._context.call(self._context.agents.is_idle, agent, output, columns=columns, rows=rows)

    def _is_typed(self) -> bool:
        """Whether this turn's prompt is typed: by the agent's delivery, or because its process is there already."""
        agent = self._agent
        if agent is None or agent.mode != "interactive":
            return False
        return agent.delivery == "paste" or self._context.run(self._subtask).is_reused

    def takes_prompt(self) -> bool:
        """Whether a prompt is still to be typed into a program of which no screen says that it is ready."""
        agent = self._agent
        return (
            agent is not None
            and self._is_typed()
            and self._context.run(self._subtask).delivered in ("", "false")
            and not self._context.agents.says_ready(agent)
        )

    async def has_submitted_unseen(self) -> bool:
        """Whether a program of which no screen says what it does has submitted: it waits for its next prompt then."""
        agent, agents = self._agent, self._context.agents
        if agent is None or agent.mode != "interactive" or agents.says_idle(agent):
            return False
        return await self._context.call(agents.has_submitted, self._session)

    async def _over(self, cause: str, *, is_idle: bool) -> None:
        """The turn is over: its process stays when it is idle, or comes to be within the bound; else it is closed."""
        if not is_idle and not await self._until_idle():
            await self._watched.end(
                cause, f"it went on for {SETTLE_BOUND_S:g} s after its turn was over, and was closed"
            )
            return
        self._watched.cause = cause
        self._context.turns.observe(self._session, TurnCompleted(self._watched.turn, cause))

    async def _until_idle(self) -> bool:
        """Wait until the program is silent and, where that can be seen, its screen looks idle. False at the bound.

        The time of a person who sits at the terminal, or has to answer something, does not count.
        """
        agent, context = self._agent, self._context
        assert agent is not None
        while True:
            if context.run(self._subtask).question == "other" and await self.has_submitted_unseen():
                return True  # what was taken for a question is its prompt
            last = -1
            with anyio.move_on_after(SETTLE_BOUND_S):
                while self._watched.phase not in WITHOUT_SLOT:
                    tail = await context.sessions.read(self._session, max_bytes=SCREEN_BYTES, form="raw")
                    if tail.next_cursor == last and (
                        not context.agents.says_idle(agent) or await self._looks_idle(agent, tail.text)
                    ):
                        return True
                    last = tail.next_cursor
                    await anyio.sleep(_SETTLE_S)
            if self._watched.phase not in WITHOUT_SLOT:
                return False
            while self._watched.phase in WITHOUT_SLOT:
                await context.next_change()

    async def _until_ready(self) -> bool:
        """Wait until it can take a prompt; False when it does not come to that. What is typed earlier may be lost.

        It reads its terminal, or drew something and is quiet. For a first prompt the host itself waits where patterns
        say when; for a further one the screen has to look idle.
        """
        if not self.takes_prompt():
            return not self._context.run(self._subtask).is_reused or await self._until_idle()
        with anyio.move_on_after(READY_BOUND_S):
            last = 0
            while not self._watched.reads_terminal.is_set():
                tail = await self._context.sessions.read(self._session, max_bytes=1024)
                if last and tail.next_cursor == last:
                    return True
                last = tail.next_cursor
                with anyio.move_on_after(_QUIET_S):
                    await self._watched.reads_terminal.wait()
            return True
        return False

    async def _deliver(self) -> bool:
        """Type the prompt, once. "unknown" is recorded before: whoever comes back after a crash types no second one."""
        assert self._agent is not None
        if not self._is_typed():
            return True
        while self._context.run(self._subtask).delivered in ("", "false"):
            while self._watched.phase == "held":  # a person works there: nothing is typed
                await self._context.next_change()
            if not await self._until_ready():
                await self._watched.end("not-ready", f"it was not ready after {READY_BOUND_S:g} s")
                return False
            if await self._watched.was_without_slot():
                continue  # a person answered; what follows may be the next question
            prompt = await self._context.call(self._context.agents.typed, self._session)
            self._watched.record(self._watched.phase, delivered="unknown")
            result = await self._context.turns.write_input(self._session, prompt, submit=True)
            if self._watched.cause is not None:
                return False
            self._watched.record(self._watched.phase, delivered=result.delivered)
            if result.delivered != "false":
                break
            with anyio.move_on_after(_ASKED_S):  # its host sees a question before this process records it
                while self._watched.phase not in WITHOUT_SLOT:
                    await self._context.next_change()
            if not await self._watched.was_without_slot():
                await self._watched.end("not-ready", result.reason)
                return False
        return True
