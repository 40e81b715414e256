"""The text of graph-plan."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.layout import cell, size, table
from coordinate_agents.graph.text import counted, listed

MAX_ROWS: Final = 60
MAX_CONFLICTS: Final = 20
_WORTH: Final = ("error", "start", "running", "failed", "stopped", "blocked", "wait", "succeeded")


def plan(data: Mapping[str, Any]) -> list[str]:
    """What starts, what waits and why; predicted conflicts; the longest chain; the disk."""
    if "text" in data:
        return [data["text"]]
    graph = data["graph"]
    state = "" if graph["recorded"] else " (not created yet)"
    lines = [f"{graph['id']}{state}: {cell(graph['title'])}", ""]
    decisions = sorted(data["decisions"], key=lambda each: _WORTH.index(each["decision"]))
    rows: list[Sequence[object]] = []
    for each in decisions[:MAX_ROWS]:
        rows.append((each["id"], each["decision"], each["agent"], each["command"], each["reason"]))
    lines += table(rows, titles=("SUBTASK", "DECISION", "AGENT", "COMMAND", "REASON"))
    if len(decisions) > MAX_ROWS:
        lines.append(f"… and {counted(len(decisions) - MAX_ROWS, 'more subtask')}; --json lists them all")
    lines += ["", f"starts now: {listed(data['start'], first=8) or 'nothing'}"]
    if data["criticalPath"]:
        chain = data["criticalPath"]
        shown = chain if len(chain) <= 12 else [*chain[:11], f"… {len(chain) - 12} more …", chain[-1]]
        lines.append(f"longest chain, {len(chain)}: {' -> '.join(cell(each) for each in shown)}")
    lines += _conflicts(data)
    lines += _disk(data["disk"])
    return lines


def _conflicts(data: Mapping[str, Any]) -> list[str]:
    if not data["conflicts"]:
        return []
    lines = ["may write the same paths, so they never run at the same time:"]
    for each in data["conflicts"][:MAX_CONFLICTS]:
        first, second = (cell(pattern) for pattern in each["patterns"])
        lines.append(f"  {cell(each['a'])} and {cell(each['b'])}: {first} and {second}")
    if data["conflictCount"] > MAX_CONFLICTS:
        lines.append(f"  … and {data['conflictCount'] - MAX_CONFLICTS} more pairs")
    return lines


def _disk(disk: Mapping[str, Any]) -> list[str]:
    if disk["neededBytes"] is None:
        return []
    needed, each = size(disk["neededBytes"]), size(disk["perWorktreeBytes"])
    where = f"{cell(disk['worktreeRoot'])}, where {size(disk['freeBytes'])} are free"
    return [f"disk: about {needed} ({counted(disk['newWorktrees'], 'new worktree')} of {each}) in {where}"]
