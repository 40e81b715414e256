"""session-status: what is known of a Session, and whether it is alive now. Asks its host; changes nothing."""

from typing import NamedTuple

import anyio

from coordinate_agents.graph.operations.session_shape import session_json, subtask_json
from coordinate_agents.graph.operations.session_target import find
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime


class Request(NamedTuple):
    session: str


def execute(runtime: Runtime, request: Request) -> Result:
    """`subtask` with its verified evidence, null for a Session of no graph. Raises: SESSION_NOT_FOUND."""
    target = anyio.run(find, runtime, request.session)
    return Result(
        {
            "session": session_json(target),
            "lastLine": target.facts.last_line,
            "survivors": list(target.facts.survivors),
            "subtask": subtask_json(target.subtask),
        }
    )
