"""One connection to a host: JSON lines with our own framing, every line and every wait bounded."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import anyio
import anyio.abc

from coordinate_agents.sessions import address as addresses
from coordinate_agents.sessions import folder as folders

VERSION: Final = 1
MAX_LINE_BYTES: Final = 8 << 20


class HostGone(Exception):
    """There is nobody at the other end, or no longer, or it does not speak our protocol."""


class HostConnection:
    """Use as `async with HostConnection(...) as host`. Raises: HostGone from every method, TimeoutError from none."""

    def __init__(self, socket: str, token: str) -> None:
        self._socket = socket
        self._token = token
        self._stack = AsyncExitStack()
        self._stream: anyio.abc.ByteStream | None = None
        self._buffer = bytearray()
        self._events: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        try:
            stream = await self._connect()
        except OSError as error:
            raise HostGone(str(error)) from error
        self._stream = await self._stack.enter_async_context(stream)
        return self

    async def _connect(self) -> anyio.abc.ByteStream:
        port = addresses.port_of(self._socket)
        if port is None:
            return await anyio.connect_unix(self._socket)
        return await anyio.connect_tcp(addresses.LOOPBACK, port)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._stack.aclose()

    async def ask(self, operation: str, **fields: Any) -> dict[str, Any]:
        """Send one request and return its answer; events that come between are kept for `event`."""
        await self._send({"v": VERSION, "id": operation, "op": operation, "token": self._token, **fields})
        while True:
            answer = await self._line()
            if "event" not in answer:
                return answer
            self._events.append(answer)

    async def tell(self, operation: str, **fields: Any) -> None:
        """Send one request that is not answered, so that another task may read events meanwhile."""
        await self._send({"v": VERSION, "op": operation, "token": self._token, "quiet": True, **fields})

    async def event(self) -> dict[str, Any]:
        """The next event, in order."""
        if self._events:
            return self._events.pop(0)
        while True:
            message = await self._line()
            if "event" in message:
                return message

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._stream is not None
        try:
            await self._stream.send(json.dumps(message).encode("ascii") + b"\n")
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise HostGone(str(error)) from error

    async def _line(self) -> dict[str, Any]:
        assert self._stream is not None
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_LINE_BYTES:
                raise HostGone(f"a line of more than {MAX_LINE_BYTES} bytes")
            try:
                self._buffer += await self._stream.receive(65536)
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise HostGone(str(error)) from error
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return message_of(line)


def message_of(line: bytes) -> dict[str, Any]:
    """What a line of a host says. Raises: HostGone when it is none of this protocol."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise HostGone(f"not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("v") != VERSION:
        raise HostGone("another protocol version")
    return message


def read_token(path: Path) -> str:
    """The Session's token; empty when it cannot be read. Raises: nothing."""
    try:
        folder = folders.open_folder(str(path))
    except OSError:
        return ""
    import os

    try:
        return (folders.read_whole(folder, folders.TOKEN, 256) or b"").decode("ascii")
    except (OSError, ValueError):
        return ""
    finally:
        os.close(folder)
