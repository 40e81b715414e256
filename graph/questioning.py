"""What an agent asks in its turn: shown to a person, never answered from here, ended when nobody answers in time.

A login screen ends the turn at once, since every other start of that agent would meet it too.
"""

from typing import Final

import anyio
from anyio.abc import TaskGroup

from coordinate_agents.graph.composing import Composer
from coordinate_agents.graph.events import PhaseChanged
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.printed import SCREEN_BYTES
from coordinate_agents.graph.speaking import asked_words, choices_of
from coordinate_agents.graph.watched import Watched
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Question

_NOTE_CHARACTERS: Final = 1000


class Questions:
    """Of one turn."""

    def __init__(self, watched: Watched, composer: Composer) -> None:
        self._watched = watched
        self._context = watched.context
        self._subtask = watched.subtask
        self._session = watched.session
        self._composer = composer
        self._asked = ""
        # When it asked: as recorded, and in seconds of this process.
        self._asked_since, self._asked_at = -1.0, 0.0

    async def follow(self) -> None:
        asked = await self._left_over()
        while self._watched.cause is None:
            if asked is None:
                asked = await self._context.sessions.question_change(self._session, None)
            if asked is None:
                continue
            if asked.kind == "other" and (self._composer.takes_prompt() or await self._composer.has_submitted_unseen()):
                # It reads its terminal: not a question, but what its prompt waited for, or the end of its turn.
                self._watched.reads_terminal.set()
                asked = await self._context.sessions.question_change(self._session, asked)
                continue
            if self._watched.phase == "held":
                asked = await self._after_hold()
                continue
            await self._show(asked)
            if await self._may_wait(asked):
                asked = await self._answered(asked)
                if asked is None and self._watched.cause is None:
                    asked = await self._go_on()

    async def _left_over(self) -> Question | None:
        """What is still asked of that which an earlier driver recorded."""
        if self._watched.phase != "awaiting-input":
            return None
        return await self._context.sessions.question(self._session) or await self._go_on()

    async def _go_on(self) -> Question | None:
        """Wait for the slot after an answer; None when it is there, else what is asked before it came."""
        while self._watched.phase in WITHOUT_SLOT:
            if self._watched.wants_slot():
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

    async def _after_hold(self) -> Question | None:
        """A person sits at the terminal: nothing is shown or ended before they left. What is asked then."""
        while self._watched.phase == "held":
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
        tail = await self._context.sessions.read(self._session, max_bytes=SCREEN_BYTES, form="raw")
        columns, rows = await self._watched.size()
        return await self._context.call(self._context.agents.shown, tail.text, columns=columns, rows=rows)

    async def _may_wait(self, question: Question) -> bool:
        """Whether a person is waited for; otherwise the Session is ended."""
        if question.kind == "login":
            await self._watched.end("login", self._asked or question.text)
        elif self._context.on_input == "fail":
            await self._watched.end("input", self._asked or question.text)
        return self._watched.cause is None

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
        if self._watched.phase == "held":
            return await self._after_hold()
        await self._watched.end("input", self._asked or question.text)
        return None

    def _left_to_answer(self) -> float:
        """Seconds; the time of a driver that is gone counts, too. What the clock says is asked once: it may be set."""
        since, now = self._context.run(self._subtask).phase_since or 0.0, anyio.current_time()
        if self._asked_since != since:
            self._asked_since, self._asked_at = since, now - max(0.0, self._context.clock.now() - since)
        return self._context.task(self._subtask).input_timeout_s - (now - self._asked_at)
