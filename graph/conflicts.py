"""A conflict between two subtasks in words, and the command that goes on with it. Plain JSON rows in, text out.

Decides nothing: whether there is a conflict was asked of git. Neither state nor files are looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

PROGRAM: Final = "coordinate-agents"
_NAMED: Final = 3


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def conflict_words(conflict: Mapping[str, Any]) -> str:
    return f"{' and '.join(conflict['pair'])} do not merge in {named(conflict.get('paths', ()))}"


def resolve_command(graph: str, subtask: str, *, is_open: bool) -> str:
    """The command that goes on with a base conflict."""
    return f"{PROGRAM} graph-resolve {graph} {subtask}{' --continue' if is_open else ''}"


def conflict_json(conflict: Mapping[str, Any]) -> dict[str, Any]:
    """A conflict as answers show it: the pair, the paths, and what had been merged before it."""
    return {
        "subtasks": list(conflict.get("pair", ())),
        "paths": list(conflict.get("paths", ())),
        "applied": [head["name"] for head in conflict.get("applied", ())],
    }


def base_conflict(graph: str, run: Mapping[str, Any], subtask: str) -> dict[str, Any]:
    """A base conflict in the shape of a recorded failure: computed, for nothing of the subtask's own failed."""
    is_open = run.get("conflict_state") == "open"
    where = f"; merge it in {run['conflict_worktree']['path']}" if is_open else ""
    return {
        "code": "BASE_CONFLICT",
        "message": f"its prerequisites {conflict_words(run['conflict'])}{where}.",
        "kept": "every verified commit",
        "next": resolve_command(graph, subtask, is_open=is_open),
    }


def integration_conflict(graph: str, integration: Mapping[str, Any]) -> dict[str, Any]:
    """The same of an integration that stands in the middle of a merge."""
    path = (integration.get("worktree") or {}).get("path")
    where = f"; merge it in {path}" if path else ""
    return {
        "code": "INTEGRATION_CONFLICT",
        "message": f"{conflict_words(integration)}{where}.",
        "kept": "every verified commit",
        "next": f"{PROGRAM} graph-integrate {graph} --continue",
    }
