"""One turn that is watched: what is known of it, and what is recorded about it, by all who watch some side of it."""

from dataclasses import replace

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import PhaseChanged
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.states import Phase
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.model import TurnId


class Watched:
    """`cause` is why the turn was ended from here, None when it was not; `detail` says more.

    `reads_terminal`: its program was seen to wait for something to be typed.
    """

    def __init__(self, context: Context, subtask: SubtaskId, agent: ResolvedAgent | None, turn: TurnId) -> None:
        self.context = context
        self.subtask = subtask
        self.agent = agent
        self.turn = turn
        self.session = SessionId(context.run(subtask).session or "")
        self.reads_terminal = anyio.Event()
        self.cause: str | None = None
        self.detail = ""

    @property
    def phase(self) -> Phase:
        return self.context.run(self.subtask).phase or "working"

    def wants_slot(self) -> bool:
        """Say that it can go on, once. Whoever holds it says that by itself."""
        if self.phase == "held" or self.context.run(self.subtask).can_go_on:
            return False
        self.record(self.phase, can_go_on=True)
        return True

    async def was_without_slot(self) -> bool:
        """Wait while it asks something, or a person works there; whether there was a wait. No prompt is an answer."""
        has_waited = False
        while self.phase in WITHOUT_SLOT:
            has_waited = True
            await self.context.next_change()
        return has_waited

    async def size(self) -> tuple[int, int]:
        """Columns and rows of its terminal."""
        record = (await self.context.sessions.look(self.session)).record
        return (record.columns, record.rows) if record is not None else (120, 40)

    def record(self, phase: Phase, *, can_go_on: bool = False, delivered: str = "") -> None:
        """A phase that keeps what is asked, where it is the present one."""
        run = self.context.run(self.subtask)
        is_same = phase == run.phase
        changed = PhaseChanged(self.subtask, phase, can_go_on=can_go_on, delivered=delivered)
        if is_same:
            changed = replace(changed, kind=run.question, can_go_on=can_go_on or run.can_go_on)
        if is_same and not changed.can_go_on:
            changed = replace(changed, request=run.request, choices=run.choices)
        self.context.record(changed)

    async def end(self, cause: str, detail: str = "", *, graceful: bool = True) -> None:
        """End the turn with its process; returns when that is gone. Not `graceful`: of a host that is stopped, too."""
        self.cause, self.detail = cause, detail
        await self.context.turns.dispose_session(self.session, graceful=graceful)
