"""session-inspect: a Session with its turn's events, its last output or its screen, its question, its evidence."""

from typing import Any, Final

import anyio

from coordinate_agents.graph.operations.session_read import output_json
from coordinate_agents.graph.operations.session_shape import session_json, subtask_json, turn_events_json, turn_json
from coordinate_agents.graph.operations.session_target import Target, find
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

# The last lines that `session-inspect` shows; `session-read` gives all of it.
SHOWN_BYTES: Final = 8 << 10


@value_class
class Request:
    session: str
    screen: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """`turn` as session-status tells it, `events` the last ones that were told of its turns and processes.

    `screen` is null unless it was asked for, then `{lines, columns, rows, row, column, isAlternate}`.

    Raises: SESSION_NOT_FOUND.
    """
    data: dict[str, Any] = anyio.run(_inspect, runtime, request)
    return Result(data)


async def _inspect(runtime: Runtime, request: Request) -> dict[str, Any]:
    target = await find(runtime, request.session)
    turn = runtime.sessions.turn_record(target.id)
    data: dict[str, Any] = {
        "session": session_json(target),
        "turn": turn_json(turn),
        "events": turn_events_json(turn),
        "lastLine": target.facts.last_line,
        "survivors": list(target.facts.survivors),
        "subtask": subtask_json(target.subtask),
        "screen": await screen_of(runtime, target) if request.screen else None,
    }
    if not request.screen:
        data |= output_json(await runtime.sessions.read(target.id, max_bytes=SHOWN_BYTES))
    return data


async def screen_of(runtime: Runtime, target: Target) -> dict[str, Any]:
    """The Session's terminal as a person would see it now, or saw it last."""
    record, render = target.facts.record, runtime.render_screen
    assert record is not None and render is not None
    data, _, _, dropped = await runtime.sessions.raw_output(target.id, cursor=None)
    screen = render(data, record.columns, record.rows)
    return {
        "lines": list(screen.lines),
        "columns": record.columns,
        "rows": record.rows,
        "row": screen.cursor_row,
        "column": screen.cursor_column,
        "isAlternate": screen.is_alternate,
        "droppedBytes": dropped,
    }
