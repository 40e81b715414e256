"""What a program that stays drew in its turn, from its host while it lives: a file of it lags behind on a screen that
never ends a line.
"""

from typing import Final

from coordinate_agents.graph.context import Context
from coordinate_agents.sessions.agent import TurnOutput
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId

# Programs draw a screen anew in less.
SCREEN_BYTES: Final = 64 << 10
# Of more than that in one turn only the end is looked at.
MAX_BYTES: Final = 8 << 20
_READ_BYTES: Final = 1 << 20


async def turn_output(context: Context, session: SessionId, since: int | None) -> TurnOutput | None:
    """`since`: the cursor at which the turn began; None: not known. None when the Session cannot be read."""
    try:
        if since is not None:
            start = max(0, since - SCREEN_BYTES)
            before = await _read(context, session, start, since) if since else ""
            printed = await _read(context, session, since, since + MAX_BYTES)
            if before is not None and printed is not None:
                return TurnOutput(before, printed, is_whole=True)
        end = await context.sessions.read(session, max_bytes=SCREEN_BYTES, form="raw")
    except SessionError:
        return None
    return TurnOutput("", end.text, is_whole=False)


async def _read(context: Context, session: SessionId, cursor: int, end: int) -> str | None:
    """Everything from the cursor to the end; None where it goes on, or a part of it is not kept any more."""
    parts: list[str] = []
    while cursor < end:
        read = await context.sessions.read(session, cursor=cursor, max_bytes=min(_READ_BYTES, end - cursor), form="raw")
        if read.dropped_bytes:
            return None
        parts.append(read.text)
        if read.next_cursor == cursor or not read.truncated:
            return "".join(parts)
        cursor = read.next_cursor
    return "".join(parts) if end - cursor < MAX_BYTES and len(parts) < MAX_BYTES // _READ_BYTES else None
