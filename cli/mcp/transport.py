"""Standard input and output as the streams of the MCP SDK, and nobody else's.

Both descriptors are moved away before anything is served: what a library or a child prints goes to stderr, and what a
child reads is the null device. Lines are cut here and bounded; what is not JSON-RPC is answered with the request's own
id where it has one, instead of leaving its sender waiting. At the end of input the requests that are under way get a
moment to be answered.
"""

import asyncio
import fcntl
import json
import os
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

# A graph file of 64 MiB as text within JSON; a longer line is skipped to its end and answered as an error.
MAX_LINE_BYTES: Final = 160 << 20
# The server ends within a second of its input: what is asked just before the end may still be answered.
LAST_ANSWERS_S: Final = 0.6
# Whatever waits then: a client that went away may have left its own end of our output full, or open in another process.
LAST_MOMENT_S: Final = 0.75
_READ_BYTES: Final = 1 << 16


class Wire:
    """The two descriptors of the protocol."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._was_answered = asyncio.Event()
        self._waiting: set[str] = set()
        self._writing = anyio.Lock()

    @classmethod
    def claim(cls) -> "Wire":
        """Take descriptors 0 and 1 away from this process and its children. Raises: OSError when they are closed."""
        source, sink = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 3) for each in (0, 1))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # stderr is closed
            os.dup2(null, 1)
            os.dup2(null, 2)
        os.close(null)
        sys.stdin, sys.stdout = open(0, closefd=False), sys.stderr  # noqa: SIM115
        return cls(source, sink)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """What `Server.run` takes: messages to read, messages to write."""
        to_server, reading = anyio.create_memory_object_stream[Any](0)
        writing, from_server = anyio.create_memory_object_stream[Any](0)
        loop = asyncio.get_running_loop()
        errors, answered = anyio.create_memory_object_stream[JSONRPCError](64)
        # A daemon: it blocks in read(2) for as long as the client lives.
        threading.Thread(target=self._read, args=(loop, to_server, errors), daemon=True).start()
        threading.Thread(target=self._leave_behind_client, daemon=True).start()
        async with anyio.create_task_group() as group:
            group.start_soon(self._write, from_server)
            group.start_soon(self._complain, answered)
            yield reading, writing
            group.cancel_scope.cancel()

    # --- in the reading thread

    def _read(self, loop: asyncio.AbstractEventLoop, to_server: Any, errors: Any) -> None:
        """Line after line to the event loop, each only when the one before was taken."""
        try:
            for line in _lines(self._source):
                message = _message(line)
                stream = errors if isinstance(message, JSONRPCError) else to_server
                item = message if isinstance(message, JSONRPCError) else SessionMessage(message)
                asyncio.run_coroutine_threadsafe(self._pass_on(stream, item), loop).result()
            asyncio.run_coroutine_threadsafe(self._end(to_server), loop).result()
        except (RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError, asyncio.CancelledError):
            return  # the loop has ended

    def _leave_behind_client(self) -> None:
        """In a thread of its own: end the process soon after nobody holds the other end of the input any more.

        The end of the input itself comes behind everything that was asked, and nothing of that may be taken as long as
        nothing can be written. Source: poll(2), POLLHUP is told without being asked for; of a file it never is.
        """
        poll = select.poll()
        poll.register(self._source, 0)
        poll.poll()
        time.sleep(LAST_MOMENT_S)
        leave()

    # --- in the event loop

    async def _pass_on(self, stream: Any, item: Any) -> None:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            self._waiting.add(str(item.message.id))
        await stream.send(item)

    async def _end(self, to_server: Any) -> None:
        """The end of input, once every request is answered or the moment for that is over."""
        with anyio.move_on_after(LAST_ANSWERS_S):
            while self._waiting:
                self._was_answered.clear()
                await self._was_answered.wait()
        await to_server.aclose()

    async def _write(self, from_server: Any) -> None:
        async for item in from_server:
            await self._send(item.message)
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._waiting.discard(str(item.message.id))
                self._was_answered.set()

    async def _complain(self, answered: Any) -> None:
        async for error in answered:
            await self._send(error)

    async def _send(self, message: Any) -> None:
        """Write one line whole. A client that went away ends the server: nobody reads any more."""
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            async with self._writing:
                if len(data) <= select.PIPE_BUF and _has_room(self._sink):
                    os.write(self._sink, data)
                else:
                    # In a thread: a client that does not read must not keep other requests from being worked on.
                    # Left behind at the end: it may never come back.
                    await anyio.to_thread.run_sync(_write_all, self._sink, data, abandon_on_cancel=True)
        except OSError:
            leave()


def leave() -> None:
    """End this process at once. Calls under way are in processes of their own, or only look."""
    os._exit(0)


def _has_room(descriptor: int) -> bool:
    """Whether PIPE_BUF bytes go without waiting. Source: poll(2), pipe(7)."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _lines(descriptor: int) -> Iterator[bytes | None]:
    """Every line without its end; None for one that was too long."""
    parts: list[bytes] = []
    length = 0
    while True:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            return
        if not data:
            last = b"".join(parts)
            if last.strip():
                yield last
            return
        *ended, rest = data.split(b"\n")
        for part in ended:
            line = None if length + len(part) > MAX_LINE_BYTES else b"".join([*parts, part])
            parts, length = [], 0
            if line is None or line.strip():
                yield line
        length += len(rest)
        if length <= MAX_LINE_BYTES:
            parts.append(rest)
        else:
            parts.clear()


def _message(line: bytes | None) -> Any:
    """The JSON-RPC message, or the error that answers what is none."""
    if line is None:
        return _error(None, PARSE_ERROR, f"the line has more than {MAX_LINE_BYTES >> 20} MiB")
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass  # said below, in our words and with its id
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _error(None, PARSE_ERROR, f"not JSON: {error}")
    try:
        # json takes half of a surrogate pair, which the stricter parser refuses; the tool then names the argument.
        return jsonrpc_message_adapter.validate_python(raw, by_name=False)
    except ValueError:
        request_id = raw.get("id") if isinstance(raw, dict) else None
        is_id = isinstance(request_id, int | str) and not isinstance(request_id, bool)
        return _error(request_id if is_id else None, INVALID_REQUEST, "not a JSON-RPC 2.0 message")


def _error(request_id: Any, code: int, message: str) -> Any:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message[:500]))
