"""evidence-submit: an agent says, from inside its Session, that its work is committed and may be looked at.

A trigger and never proof: it writes the Session's submit file, as a program without this verb does, and the driver then
verifies in git what there is; one that waits is woken. It is taken only from the process tree of the Session of the
subtask's present attempt, so that no agent submits for another one; everything else is AGENT_MAY_NOT.
"""

import json
from typing import Any

import anyio

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.session_target import find
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.store.wake import wake
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.worktrees.values import value_class

_BY_HAND = 'printf %s "what was done" > "$COORDINATE_AGENTS_SUBMIT_FILE"'


@value_class
class Request:
    """`graph`, `subtask` and `attempt`: what the caller believes to work for; a difference is refused."""

    summary: str | None = None
    graph: str | None = None
    subtask: str | None = None
    attempt: int | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`summaryCut`: the summary was longer than what is kept; `driver`: who was told. Raises: AGENT_MAY_NOT."""
    session = runtime.agents.session_around()
    if session is None:
        raise _may_not("it was not started in the process tree of a living Session of this repository", next=_BY_HAND)
    graph, subtask, attempt = _work_of(runtime, session)
    wanted = {"graph": request.graph, "subtask": request.subtask, "attempt": request.attempt}
    for name, is_one in (("graph", graph), ("subtask", subtask), ("attempt", attempt)):
        if wanted[name] is not None and wanted[name] != is_one:
            raise _may_not(
                f"Session {session} works for attempt {attempt} of {graph}/{subtask}, not for {name} {wanted[name]}",
                session=session,
            )
    is_whole = runtime.agents.submit(session, request.summary or "")
    driver = holder(runtime.state_dir, graph)
    if driver is not None and driver.socket is not None:
        wake(driver.socket)  # a sandbox may forbid it: then it looks by itself in a while
    data: dict[str, Any] = {
        "taskId": graph,
        "subtaskId": subtask,
        "attempt": attempt,
        "sessionId": session,
        "submitted": True,
        "summaryCut": not is_whole,
        "driver": driver.pid if driver is not None else None,
    }
    return Result(data)


def _work_of(runtime: Runtime, session: SessionId) -> tuple[str, str, int]:
    """Graph, subtask and attempt that the Session is the present one of. Raises: AGENT_MAY_NOT."""
    found = anyio.run(find, runtime, str(session)).subtask
    if found is None:
        raise _may_not(f"Session {session} works for no subtask of a graph", session=session)
    run = found.run
    if run.get("session") != session or run.get("state") != "running":
        raise _may_not(
            f"Session {session} is not the one of the present attempt of {found.graph}/{found.id}"
            f" (that one: {json.dumps(run.get('session'))}, {run.get('state', 'idle')})",
            session=session,
        )
    return found.graph, found.id, int(run.get("attempt", 0))


def _may_not(why: str, *, session: str | None = None, next: str = "coordinate-agents graph-status") -> GraphError:
    return GraphError(
        "AGENT_MAY_NOT",
        f"evidence-submit takes only what comes from inside the Session whose work it is: {why}.",
        kept="everything as it is; nothing was submitted",
        next=next,
        recoverable=False,
        facts={} if session is None else {"sessionId": session},
    )
