"""session-read: what a Session wrote, from a cursor on, bounded; it can wait for more, or follow to the end.

A cursor is a byte offset of the Session's whole output; only the `nextCursor` of an answer is a good one to give back.
What was dropped meanwhile is counted, never skipped silently.
"""

from collections.abc import Iterator
from typing import Any, Final

import anyio

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.session_shape import session_json
from coordinate_agents.graph.operations.session_target import Target, find, find_living
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.sessions.model import Output, ReadLimits
from coordinate_agents.worktrees.values import value_class

DEFAULT_BYTES: Final = 65536
MAX_BYTES: Final = 8 << 20
MAX_WAIT_S: Final = 25.0


@value_class
class Request:
    session: str
    cursor: int | None = None
    max_bytes: int | None = None
    max_lines: int | None = None
    wait: float | None = None
    raw: bool = False
    follow: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """`output` from `cursor` to `nextCursor`. Raises: SESSION_NOT_FOUND, INVALID_USAGE, SESSION_NOT_HEALTHY."""
    _check(request)
    if request.follow:
        return Result({}, stream=_follow(runtime, request, anyio.run(find, runtime, request.session)))
    wait_ms = int((request.wait or 0.0) * 1000)
    living = find_living(runtime, request.session, _limits(request, request.cursor), wait_ms=wait_ms)
    target, output = living or anyio.run(_find_and_read, runtime, request, wait_ms)
    assert output is not None  # both have read
    return Result({"session": session_json(target), **output_json(output), "raw": bool(request.raw)})


def output_json(output: Output) -> dict[str, Any]:
    return {
        "output": output.text,
        "cursor": output.cursor,
        "nextCursor": output.next_cursor,
        "droppedBytes": output.dropped_bytes,
        "truncated": output.truncated,
        "ended": output.ended,
    }


def _check(request: Request) -> None:
    if request.wait is not None and request.wait > MAX_WAIT_S:
        raise GraphError("INVALID_USAGE", f"--wait is at most {MAX_WAIT_S:g}s; --follow goes on to the end.")
    if request.max_bytes is not None and not 1 <= request.max_bytes <= MAX_BYTES:
        raise GraphError("INVALID_USAGE", f"--max-bytes is from 1 to {MAX_BYTES}.")
    if request.max_lines is not None and request.max_lines < 1:
        raise GraphError("INVALID_USAGE", "--max-lines is at least 1.")


async def _find_and_read(runtime: Runtime, request: Request, wait_ms: int) -> tuple[Target, Output]:
    target = await find(runtime, request.session)
    return target, await _read(runtime, target, request, request.cursor, wait_ms)


async def _read(runtime: Runtime, target: Target, request: Request, cursor: int | None, wait_ms: int) -> Output:
    return await runtime.sessions.read(target.id, wait_ms=wait_ms, **_limits(request, cursor))


def _limits(request: Request, cursor: int | None) -> ReadLimits:
    return {
        "cursor": cursor,
        "max_bytes": request.max_bytes or DEFAULT_BYTES,
        "max_lines": request.max_lines,
        "form": "raw" if request.raw else "plain",
    }


def _follow(runtime: Runtime, request: Request, target: Target) -> Iterator[dict[str, Any]]:
    """One object per piece of output, until the Session ended and all of it was read."""
    cursor, wait_ms = request.cursor, 0
    while True:
        output = anyio.run(_read, runtime, target, request, cursor, wait_ms)
        if output.text or output.dropped_bytes or (output.ended and not output.truncated):
            yield {"sessionId": target.id, **output_json(output), "raw": bool(request.raw)}
        if output.ended and not output.truncated:
            return
        # What is there already is read at once; only at the end of it is there something to wait for.
        wait_ms = 0 if output.truncated else int(MAX_WAIT_S * 1000)
        cursor = output.next_cursor
