"""What an id may be: the rules of graph ids, subtask ids and other names, as reasons for refusal.

A subtask id becomes one git ref component and one directory name (`model.slug`), so it must be safe as both on Linux,
macOS and Windows. Nothing is ever mapped or repaired: an id is shown, stored and used exactly as written.
"""

import re
from typing import Final

from coordinate_agents.graph.model import (
    GRAPH_ID_PATTERN,
    MAX_SUBTASK_ID_LENGTH,
    RESERVED_SUBTASK_IDS,
    SUBTASK_ID_PATTERN,
)

# Names of resources, agents and check tokens.
NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# Windows opens a device for these names in every folder, whatever the case and whatever follows the first dot.
_DEVICE_NAMES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))],
)


def subtask_id_problem(text: str) -> str | None:
    """Why the text cannot be a subtask id, and what would be right; None for a good one."""
    if not text.strip():
        return "an id cannot be empty"
    if len(text) > MAX_SUBTASK_ID_LENGTH:
        return f"id {shown(text)} has {len(text)} characters; at most {MAX_SUBTASK_ID_LENGTH}"
    if not SUBTASK_ID_PATTERN.fullmatch(text):
        return (
            f"id {shown(text)} may hold letters a-z and A-Z, digits, '.', '_' and '-', in parts joined by '/'; "
            "every part begins with a letter or digit"
        )
    if text.lower() in RESERVED_SUBTASK_IDS:
        return f"id {shown(text)} is reserved for the integration; choose another"
    for part in text.split("/"):
        reason = _component_problem(part)
        if reason:
            return f"id {shown(text)} {reason}"
    return None


def graph_id_problem(text: str) -> str | None:
    """Why the text cannot be a graph id; None for a good one."""
    if not GRAPH_ID_PATTERN.fullmatch(text):
        return (
            f"graph id {shown(text)} must begin with a letter and hold only letters a-z and A-Z, digits, '_' and '-', "
            "at most 128 in all"
        )
    reason = _component_problem(text)
    return f"graph id {shown(text)} {reason}" if reason else None


def shown(text: str) -> str:
    """The text in quotes, on one line, at most 60 characters of it."""
    return repr(text) if len(text) <= 60 else repr(text[:60])[:-1] + "…'"


def _component_problem(part: str) -> str | None:
    if ".." in part:
        return "holds '..', which git refuses in a branch name; use one dot"
    if part.endswith("."):
        return "has a part that ends with '.', which git and Windows refuse; leave it out"
    if part.lower().endswith(".lock"):
        return "has a part that ends with '.lock', which git refuses in a branch name; choose another ending"
    if part.partition(".")[0].lower() in _DEVICE_NAMES:
        return f"holds {part.partition('.')[0]!r}, a device name on Windows; choose another"
    return None
