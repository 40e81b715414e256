"""Who lives in a subtask's worktree already: no attempt starts beside another agent, whoever started that.

A Session of an earlier attempt may have outlived its record (its folder was away, its host was suspended, something
survived a close), and a person may have opened a terminal. All are named after the subtask, so that looking for them
costs one listing of names.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from coordinate_agents.graph.context import MAX_NAME, Context
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import SessionFacts, SessionId

PROGRAM: Final = "coordinate-agents"
# After the prefix, as `Context.session_id` makes it.
_OF_ATTEMPT: Final = re.compile(r"a\d+(?:\.t\d+)?")


def opened_prefix(graph: str, subtask: str) -> str:
    """What the ids of a person's terminals in the subtask's worktree begin with."""
    return f"{_prefix(graph, subtask)}open-"


def _prefix(graph: str, subtask: str) -> str:
    name = f"{graph}.{slug(SubtaskId(subtask))}"
    if len(name) > MAX_NAME:
        name = f"{name[:MAX_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return f"{name}."


async def require_vacant(context: Context, run: TaskRun) -> None:
    """Before a new attempt: nothing of an earlier one lives, and no terminal that a person opened.

    An idle process of an earlier attempt is closed, since nobody gives it another turn, except a rework. What survived
    a close is tried once more.

    Raises: SESSION_STATE_CONFLICT, SESSION_CLOSE_FAILED, naming the Session and what leads on.
    """
    if run.attempt <= 1 and run.worktree is None and run.removal is None:
        return  # nobody was ever there
    await require_unopened(context, run)
    for name in await _earlier(context, run.id):
        facts = await context.sessions.look(name)
        if run.is_rework and name == run.open_session and facts.liveness == "live":
            continue  # it gets the turn that a review asked for
        is_idle = facts.liveness == "live" and facts.record is not None and facts.record.state == "idle"
        if facts.liveness in ("live", "unreachable") and not is_idle:
            how = "lives" if facts.liveness == "live" else "does not answer and may live"
            said = f"Session {name} of an earlier attempt {how} in its worktree"
            raise _occupied(context, run, name, said, way_out(name, facts))
        survivors = await context.turns.dispose_session(name) if is_idle or facts.survivors else ()
        if survivors:
            said = f"{', '.join(survivors[:3])} survived Session {name} of an earlier attempt"
            raise _occupied(context, run, name, said, f"kill {survivors[0].split()[0]}", code="SESSION_CLOSE_FAILED")


async def require_unopened(context: Context, run: TaskRun) -> None:
    """Raise SESSION_STATE_CONFLICT while a terminal that a person opened lives in the subtask's worktree.

    An agent runs in it, and may be at work there whether somebody looks on or not.
    """
    name = await open_in(context, run.id)
    if name is not None:
        said = f"Session {name}, which a person opened, lives in its worktree"
        raise _occupied(context, run, name, said, f"{PROGRAM} session-close {name}")


def way_out(name: str, facts: SessionFacts) -> str:
    """The command after which a Session that lives is in nobody's way, or can be spoken to again."""
    host = facts.record.host if facts.record is not None else None
    if facts.liveness == "unreachable" and host is not None:
        return f"kill -CONT {host.pid}"
    return f"{PROGRAM} session-close {name}"


def _occupied(
    context: Context, run: TaskRun, name: SessionId, said: str, following: str, *, code: str = "SESSION_STATE_CONFLICT"
) -> GraphError:
    return GraphError(
        code,
        f"Subtask {run.id} did not start: {said}.",
        kept="what lives there, the worktree and its branch",
        next=following,
        stage="worktree",
        facts={"taskId": context.graph_id, "subtaskId": run.id, "sessionId": name},
    )


async def _earlier(context: Context, subtask: SubtaskId) -> list[SessionId]:
    """The Sessions of the subtask's agents, of every attempt and turn; those of commands end with their step."""
    prefix = _prefix(context.graph_id, subtask)
    names = await context.call(_names, context.state_dir / "sessions", prefix)
    return [SessionId(name) for name in names if _OF_ATTEMPT.fullmatch(name, len(prefix))]


async def open_in(context: Context, subtask: SubtaskId) -> SessionId | None:
    """A Session that a person opened in the subtask's worktree and that lives; None when there is none."""
    names = await context.call(_names, context.state_dir / "sessions", opened_prefix(context.graph_id, subtask))
    for name in names:
        facts = await context.sessions.look(SessionId(name))
        if facts.liveness in ("live", "unreachable"):
            return SessionId(name)
    return None


def _names(folder: Path, prefix: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(prefix))  # noqa: PTH208 (names alone)
    except FileNotFoundError:
        return []
