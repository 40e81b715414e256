"""What the coordinator knows of one Session in this process: its turns, and who waits for what."""

from typing import Final

import anyio

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.inputs import Turns
from coordinate_agents.sessions.turns.machine import outcome_event
from coordinate_agents.sessions.turns.model import Connection, ProcessEvent, TurnEvent, TurnId, TurnRecord
from coordinate_agents.sessions.turns.noted import added, noted
from coordinate_agents.sessions.turns.ports import Standing
from coordinate_agents.sessions.turns.progress import Pulse
from coordinate_agents.sessions.turns.states import ACTIVE

# The end of the output that a checkpoint keeps.
TRANSCRIPT_CHARACTERS: Final = 8192


class Closing:
    """One close of the tree, whoever asked for it. `error` or `survivors` once it is `done`.

    `has_ended`: the tree is gone or known; `done` only when that is also recorded and told.
    """

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.has_ended = False
        self.survivors: tuple[str, ...] = ()
        self.error: SessionError | OSError | None = None


class Opening:
    """One start that is under way. Its scope is cancelled by whoever ends the Session meanwhile."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()


class Live:
    """`trouble`: why the Session can be followed no more. `resumed` and `reason`: how the last conversation began."""

    def __init__(self, session: SessionId, turns: Turns, record: TurnRecord, now: float) -> None:
        self.session = session
        self.turns = turns
        self.configuration = record.configuration
        self.resumed = record.resumed
        self.reason = record.reason
        self.cursor = record.cursor
        self.transcript = record.transcript
        self.progress_at = record.progress_at
        self.events = record.events
        # When the present turn's end was decided: its event has this time.
        self.decided_at = 0.0
        self.pulse = Pulse(now)
        self.opening: Opening | None = None
        self.closing: Closing | None = None
        # How it is to be closed: (bound in seconds, graceful) of the first who asked.
        self.close_how: tuple[float | None, bool] = (None, True)
        self.connection: Connection | None = None
        # Its turn was begun by an earlier process, as far as that is known.
        self.is_restored = True
        self.following: anyio.CancelScope | None = None
        self.trouble: SessionError | OSError | None = None
        # Code and message of the last start that failed; empty once a turn was started.
        self.refusal = ("", "")
        self._changed = anyio.Event()

    def has_changed(self) -> None:
        """Wake everybody who waits for a change; who waits from now on waits for the next one."""
        self._changed.set()
        self._changed = anyio.Event()

    async def next_change(self) -> None:
        await self._changed.wait()

    def is_at(self, turn: TurnId) -> bool:
        """Whether it is the present turn and its end was not told yet."""
        turns = self.turns
        is_going = turns.state in ACTIVE or (turns.state == "disposing" and turns.outcome is None)
        return turns.turn == turn and is_going

    def printed(self, cursor: int, text: str) -> None:
        self.cursor = cursor
        self.transcript = (self.transcript + text)[-TRANSCRIPT_CHARACTERS:]

    def note(self, event: TurnEvent | ProcessEvent) -> None:
        self.events = added(self.events, noted(event))

    def record(self) -> TurnRecord:
        """What is to be on disk now."""
        turns, outcome, events = self.turns, self.turns.outcome, self.events
        if turns.state == "finishing" and turns.turn is not None and outcome is not None:
            # It is told only once it is written: with the event that tells it.
            last = outcome_event(outcome)
            if last is not None:
                event = TurnEvent(self.session, turns.turn, turns.seq + 1, self.decided_at, last)
                events = added(events, noted(event))
        code, message = self.refusal if outcome is None else (outcome.code, outcome.message)
        return TurnRecord(
            session=self.session,
            generation=turns.generation,
            # Once its end is decided the turn is over for whoever reads this.
            state="idle" if turns.state == "finishing" else turns.state,
            turn=turns.turn,
            outcome=outcome.kind if outcome is not None else None,
            stop_reason=outcome.stop_reason if outcome is not None else "",
            code=code,
            message=message,
            external_sessions=turns.external_sessions,
            pending=tuple(each.request for each in turns.pending),
            resumed=self.resumed,
            reason=self.reason,
            configuration=self.configuration,
            cursor=self.cursor,
            transcript=self.transcript,
            progress_at=self.progress_at,
            events=events,
        )


def restored(record: TurnRecord, standing: Standing) -> Turns:
    """The turns of a Session that an earlier coordinator left. Of one without a process nothing goes on.

    What its process is seen to be in counts more than what was written before it came to that.
    """
    connection = standing.connection
    turns = Turns(
        generation=record.generation, turn=record.turn, external_sessions=record.external_sessions, processes=1
    )
    if connection is None:
        return turns
    turns = turns._replace(process=1, stays=connection.stays, exit_completes=connection.exit_completes)
    if record.state == "disposed":
        return turns._replace(state="disposed")
    if not standing.is_busy:
        return turns
    if record.turn is None:
        turns = turns._replace(turn=TurnId("t0"))  # of one that was started without turns
    return turns._replace(state="running", has_begun=True)
