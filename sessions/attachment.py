"""A person's terminal, or whoever else wants it, joined to a Session's terminal through its host.

Leaving the context detaches: nothing is typed, nothing ends, the Session goes on.
"""

import base64
from typing import Final, Self

from coordinate_agents.sessions.connection import HostConnection, HostGone
from coordinate_agents.sessions.errors import SessionError

MAX_SEND_BYTES: Final = 64 << 10


class Attachment:
    """An async iterator of raw redacted output, from the last of it on, until the Session ends.

    One task may iterate while another sends. `dropped_bytes` counts what was not shown since it came too fast.
    Raises SESSION_NOT_HEALTHY when the host goes away before it said that the Session ended.
    """

    def __init__(self, session_id: str, host: HostConnection) -> None:
        self._session_id = session_id
        self._host = host
        self.dropped_bytes = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while True:
            try:
                event = await self._host.event()
            except HostGone as error:
                raise self._gone() from error
            if event["event"] == "ended":
                raise StopAsyncIteration
            if event["event"] == "output":
                self.dropped_bytes += int(event["dropped_bytes"])
                return base64.b64decode(event["data"])

    async def send(self, data: bytes) -> None:
        """Type the bytes as they are. Only of one that is writing; others are not heard."""
        for start in range(0, len(data), MAX_SEND_BYTES):
            piece = base64.b64encode(data[start : start + MAX_SEND_BYTES]).decode("ascii")
            await self._tell("input", data=piece)

    async def resize(self, columns: int, rows: int) -> None:
        """Give the Session's terminal this size."""
        await self._tell("resize", columns=columns, rows=rows)

    async def _tell(self, operation: str, **fields: object) -> None:
        try:
            await self._host.tell(operation, **fields)
        except HostGone as error:
            raise self._gone() from error

    def _gone(self) -> SessionError:
        return SessionError(
            "SESSION_NOT_HEALTHY",
            f"The host of Session {self._session_id} went away.",
            next=f"session-status {self._session_id}",
        )
