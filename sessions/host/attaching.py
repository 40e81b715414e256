"""Terminals of people that are joined to the Session's: a raw redacted stream out, what is typed in.

A stream reads the ring at its own pace: it is given more when what was queued for it has been sent. So a terminal that
is stopped costs nothing and stops nobody; when it goes on it is told how much it missed.
"""

import binascii

from coordinate_agents.sessions import reading
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.host.server import Client, Server

_QUEUED_BYTES = 256 << 10
_PIECE_BYTES = 64 << 10
# What a terminal that was too slow still gets when the Session ends; in base64 it stays below the server's backlog.
_LAST_BYTES = 3 << 19


class Stream:
    __slots__ = ("client", "cursor", "is_answering", "is_writing")

    def __init__(self, client: Client, cursor: int | None, *, is_writing: bool, is_answering: bool) -> None:
        self.client = client
        self.cursor = cursor
        self.is_writing = is_writing
        self.is_answering = is_answering


class Attached:
    """Everybody who is joined now. `is_writing`: one of them types."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._streams: dict[Client, Stream] = {}

    @property
    def is_writing(self) -> bool:
        return any(stream.is_writing for stream in self._streams.values())

    @property
    def is_answering(self) -> bool:
        """One of them gets the program's questions to its terminal and answers them."""
        return any(stream.is_writing and stream.is_answering for stream in self._streams.values())

    def join(self, client: Client, cursor: int | None, *, is_writing: bool, is_answering: bool) -> None:
        self._streams[client] = Stream(client, cursor, is_writing=is_writing, is_answering=is_answering)

    def enter_alternate(self, server: Server, client: Client) -> None:
        """The program draws on the alternate screen, and what switched to it may be out of the ring by now."""
        data = binascii.b2a_base64(b"\x1b[?1049h\x1b[2J\x1b[H", newline=False).decode("ascii")
        server.send(client, {"event": "output", "data": data, "dropped_bytes": 0})

    def may_type(self, client: Client) -> bool:
        stream = self._streams.get(client)
        return stream is not None and stream.is_writing

    def leave(self, client: Client) -> None:
        self._streams.pop(client, None)

    def pump_all(self, server: Server) -> None:
        for client in list(self._streams):
            self.pump(server, client)

    def finish(self, server: Server) -> None:
        """Give everybody the last output there is, as much as may be queued for a client."""
        for client, stream in list(self._streams.items()):
            missed = self._output.total - _LAST_BYTES - (stream.cursor or 0)
            if missed > 0 and stream.cursor is not None:
                stream.cursor += missed
                server.send(client, {"event": "output", "data": "", "dropped_bytes": missed})
            self.pump(server, client, queued_bytes=2 * _LAST_BYTES)

    def pump(self, server: Server, client: Client, *, queued_bytes: int = _QUEUED_BYTES) -> None:
        """Give the client what it has not seen, as long as it takes it."""
        stream = self._streams.get(client)
        while stream is not None and client in self._streams and len(client.outgoing) < queued_bytes:
            result = reading.read(
                self._output.ring, cursor=stream.cursor, max_bytes=_PIECE_BYTES, max_lines=None, form="raw"
            )
            stream.cursor = result.next_cursor
            if not result.data and not result.dropped_bytes:
                return
            data = binascii.b2a_base64(result.data, newline=False).decode("ascii")
            server.send(client, {"event": "output", "data": data, "dropped_bytes": result.dropped_bytes})
