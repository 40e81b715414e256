"""What is asked of a graph's worktrees, as plain values: from a request of another process, or from this one's verb."""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.graph.cleaning import Plan, clean
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.removal import item_json
from coordinate_agents.graph.undoing import removed_ones, restored_json, undo


async def serve_cleanup(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Remove, or with `dry` only look; the answer's items."""
    return {"items": [item_json(item) for item in await clean(context, _plan(asked))]}


async def serve_undo(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Bring back one subtask's worktree, or every one that was removed; the answer's items."""
    subtask = asked.get("subtask")
    wanted = (SubtaskId(str(subtask)),) if subtask is not None else removed_ones(context)
    return {"items": [restored_json(item) for item in await undo(context, wanted)]}


def _plan(asked: Mapping[str, Any]) -> Plan:
    subtask, discard = asked.get("subtask"), asked.get("discard")
    return Plan(
        subtasks=(SubtaskId(str(subtask)),) if subtask is not None else None,
        is_dry=bool(asked.get("dry")),
        branches=bool(asked.get("branches")),
        everything=bool(asked.get("all")),
        discard=SubtaskId(str(discard)) if discard is not None else None,
        confirm=asked.get("confirm"),
    )
