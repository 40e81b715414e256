"""session-status: what is known of a Session, and whether it is alive now. Asks its host; changes nothing."""

from typing import NamedTuple

import anyio

from coordinate_agents.graph.operations.session_shape import session_json, subtask_json, turn_json
from coordinate_agents.graph.operations.session_target import find, find_living, with_subtask
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime


class Request(NamedTuple):
    session: str


def execute(runtime: Runtime, request: Request) -> Result:
    """`turn`: the present or last one, null for a Session that had none. `subtask` with its verified evidence, null for
    a Session of no graph. Raises: SESSION_NOT_FOUND."""
    living = find_living(runtime, request.session)
    target = with_subtask(runtime, living[0]) if living is not None else anyio.run(find, runtime, request.session)
    return Result(
        {
            "session": session_json(target),
            "turn": turn_json(runtime.sessions.turn_record(target.id)),
            "lastLine": target.facts.last_line,
            "survivors": list(target.facts.survivors),
            "subtask": subtask_json(target.subtask),
        }
    )
