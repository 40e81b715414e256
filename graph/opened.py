"""Terminals that a person opened in a subtask's worktree: no attempt starts where another agent lives.

They are Sessions of nobody's attempt, named after the subtask, so that looking for them costs one listing of names.
"""

import hashlib
import os
from pathlib import Path

from coordinate_agents.graph.context import MAX_NAME, Context
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import SessionId


def opened_prefix(graph: str, subtask: str) -> str:
    """What the ids of these Sessions begin with."""
    name = f"{graph}.{slug(SubtaskId(subtask))}"
    if len(name) > MAX_NAME:
        name = f"{name[:MAX_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return f"{name}.open-"


async def require_none_open(context: Context, run: TaskRun) -> None:
    """Raises: SESSION_STATE_CONFLICT naming the Session that lives in the subtask's worktree."""
    name = await open_in(context, run.id)
    if name is not None:
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Subtask {run.id} did not start: Session {name}, which a person opened, lives in its worktree.",
            kept="that Session, the worktree and its branch",
            next=f"coordinate-agents session-close {name}",
            stage="worktree",
            facts={"taskId": context.graph_id, "subtaskId": run.id, "sessionId": name},
        )


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
