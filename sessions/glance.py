"""A host asked by a thread that may block: one connection, all questions in one go, no event loop.

For verbs that ask one host one thing: an event loop and its transport cost several times what the answer costs. Knows
the same protocol as `connection.HostConnection`, which is for whoever listens on or talks to many at once.
"""

import json
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinate_agents.sessions import address as addresses
from coordinate_agents.sessions.connection import MAX_LINE_BYTES, VERSION, HostGone, message_of

_READ_BYTES: Final = 1 << 16


class Question(NamedTuple):
    """`bound_s`: how long its answer may take, from the moment that all were asked."""

    operation: str
    bound_s: float
    fields: Mapping[str, Any] = {}


def ask(address: str, token: str, questions: Sequence[Question]) -> list[dict[str, Any]]:
    """The answers, in the order of the questions. Blocks. Raises: HostGone; TimeoutError for one that takes longer."""
    begun = time.monotonic()
    try:
        with _connected(address, max(each.bound_s for each in questions)) as connection:
            connection.sendall(b"".join(_line_of(each, token) for each in questions))
            lines = _Lines(connection)
            return [lines.answer(begun + each.bound_s) for each in questions]
    except TimeoutError:
        raise
    except OSError as error:
        raise HostGone(str(error)) from error


def _connected(address: str, bound_s: float) -> socket.socket:
    port = addresses.port_of(address)
    if port is not None:
        return socket.create_connection((addresses.LOOPBACK, port), bound_s)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(bound_s)
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _line_of(question: Question, token: str) -> bytes:
    message = {"v": VERSION, "id": question.operation, "op": question.operation, "token": token, **question.fields}
    return json.dumps(message).encode("ascii") + b"\n"


class _Lines:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def answer(self, until: float) -> dict[str, Any]:
        """The next line that is no event. Raises: HostGone, TimeoutError, OSError."""
        while True:
            message = self._next(until)
            if "event" not in message:
                return message

    def _next(self, until: float) -> dict[str, Any]:
        while (end := self._buffer.find(b"\n")) < 0:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if len(self._buffer) > MAX_LINE_BYTES:
                raise HostGone(f"a line of more than {MAX_LINE_BYTES} bytes")
            self._connection.settimeout(left)
            data = self._connection.recv(_READ_BYTES)
            if not data:
                raise HostGone("it hung up")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return message_of(line)
