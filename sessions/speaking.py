"""Turns of agents that speak the Agent Client Protocol, as a client of their hosts: prompt, cancel, answer, the end.

The host keeps every fact in its record; whoever asks twice, or comes back after a crash, sees the same.
"""

from dataclasses import asdict
from pathlib import Path

from coordinate_agents.sessions import asking
from coordinate_agents.sessions.conversation import Conversations
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import AgentTurn, SessionId, SessionRecord, TurnLimits


class Speaking(Conversations):
    """With the Sessions of one folder whose driver is acp."""

    def __init__(self, sessions_root: Path, look_bound_s: float) -> None:
        super().__init__(sessions_root, look_bound_s)
        self._words = asking.Words()

    async def prompt(
        self, session_id: SessionId, turn: str, limits: TurnLimits | None = None, *, text: str | None = None
    ) -> None:
        """Start a turn with the text; None: with the prompt file of the Session's folder. The same turn again: nothing.

        It waits in the host until the agent's session is open. Raises: SESSION_STATE_CONFLICT while another turn runs,
        which is left alone; as `write`.
        """
        fields = asdict(limits) if limits is not None else {}
        try:
            await self._input(session_id, "prompt", turn=turn, text=text, limits=fields)
        except SessionError as error:
            seen = self._see(session_id).record
            if error.code == "SESSION_WRITE_FAILED" and seen is not None and seen.turn and not seen.turn.is_over:
                raise SessionError("SESSION_STATE_CONFLICT", error.message, kept=f"turn {seen.turn.id}") from error
            raise

    async def cancel(self, session_id: SessionId, turn: str | None = None, *, bound_s: float | None = None) -> bool:
        """Ask the agent to stop the turn (None: the one that runs); whether it was asked now.

        Nothing is sent when another turn runs, none, or when it was asked before. With a bound the tree is ended when
        the turn does not end in time. Raises: as `write`.
        """
        answer = await self._input(session_id, "cancel", turn=turn, within_s=bound_s)
        return bool(answer.get("sent"))

    async def answer(self, session_id: SessionId, request: str, option: str | None) -> None:
        """Answer a permission request with one of its options; None is "cancelled".

        Raises: SESSION_STATE_CONFLICT for one that is not open (any more) or an option that it does not have; as
        `write`.
        """
        try:
            await self._input(session_id, "answer", request=request, option=option)
        except SessionError as error:
            seen = self._see(session_id)
            if error.code == "SESSION_WRITE_FAILED" and seen.custody == "held":
                raise SessionError(
                    "SESSION_STATE_CONFLICT",
                    error.message,
                    kept="the Session; nothing was answered",
                    next=f"coordinate-agents session-status {session_id}",
                ) from error
            raise

    async def turn_end(self, session_id: SessionId, turn: str) -> AgentTurn:
        """The end of this turn, also of a Session that has ended; one that it never had is `failed`.

        Cancelling the wait is not cancelling the turn. Of a host that died without a last word it never returns: `wait`
        does. Raises: SESSION_NOT_FOUND.
        """
        if self._see(session_id).custody == "absent":
            raise SessionError("SESSION_NOT_FOUND", f"There is no Session {session_id}.")

        def is_over(record: SessionRecord | None) -> bool:
            if record is None:
                return False
            mine = record.turn_named(turn)
            return record.end is not None or (mine is not None and mine.is_over)

        record = await asking.until(self._path(session_id), is_over, self._words)
        found = record.turn_named(turn) if record is not None else None
        if found is not None and found.is_over:
            return found
        why = record.end.error if record is not None and record.end is not None else None
        return AgentTurn(turn, "failed", error=why or "the Session ended")
