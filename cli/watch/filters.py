"""Which lines of the list are shown. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.watch.tree import Node

NAMES: Final = ("attention", "running", "unfinished", "failed")
_STATES: Final = {
    "running": ("RUNNING",),
    "unfinished": ("RUNNING", "READY", "WAITING", "BLOCKED", "FAILED", "STOPPED"),
    "failed": ("FAILED", "STOPPED", "BLOCKED"),
}


def fitting(
    nodes: Sequence[Node],
    by_id: Mapping[str, Mapping[str, Any]],
    attention: Sequence[Mapping[str, Any]],
    name: str,
    words: str,
) -> Sequence[Node]:
    """The nodes that fit: of the filter of this name, or with all the words. Filtered, they are no tree any more."""
    if not name:
        return nodes
    if words:
        wanted = words.lower().split()
        found = [node for node in nodes if all(word in _text(by_id[node.id]) for word in wanted)]
    elif name == "attention":
        asks = {item["subtask"] for item in attention}
        found = [node for node in nodes if node.id in asks]
    else:
        found = [node for node in nodes if by_id[node.id]["state"] in _STATES[name]]
    return [node._replace(guide="") for node in found]


def _text(subtask: Mapping[str, Any]) -> str:
    parts = (subtask["id"], subtask["title"], subtask["agent"], subtask["state"], subtask["phase"] or "")
    return " ".join(parts).lower()
