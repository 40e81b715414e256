"""The text of graph-resolve and graph-integrate: where the merge stands, what was taken, what to do there."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli import render_status
from coordinate_agents.cli.layout import cell, short
from coordinate_agents.graph.text import listed

_PATHS: Final = 8


def resolved(data: Mapping[str, Any]) -> list[str]:
    """What came of the call; then the merge that waits, or what to do next."""
    graph, done = data["graph"]["id"], data["resolve"]
    subtask = next(each for each in data["subtasks"] if each["id"] == done["subtask"])
    lines = [*_taken(done["resolution"]), *_kept(done["kept"])]
    if done["also"]:
        lines.append(f"The same merge frees {cell(listed(done['also'], first=_PATHS))}.")
    command = f"{render_status.PROGRAM} graph-resolve {graph} {subtask['id']}"
    match done["outcome"]:
        case "opened":
            lines += _waits(subtask["conflict"], subtask["conflictWorktree"], command)
        case "ready" if data["graph"]["driver"]:
            lines.append(f"{cell(subtask['id'])} can start.")
        case "ready":
            lines += [f"{cell(subtask['id'])} can start.", "", f"Next: {render_status.PROGRAM} graph-run {graph}"]
        case _:
            lines += [f"{cell(subtask['id'])} still has its conflict.", "", f"To begin anew: {command}"]
    return lines


def integrated(data: Mapping[str, Any]) -> list[str]:
    """The graph as graph-status shows it, and what was done about a conflict."""
    done, integration = data["integrate"], data["integration"] or {}
    lines = [*_taken(done["resolution"]), *_kept(done["kept"])]
    shown = [*lines, *([""] if lines else []), *render_status.status(data)]
    if integration.get("conflict"):
        command = f"{render_status.PROGRAM} graph-integrate {data['graph']['id']}"
        shown += ["", *_waits(integration["conflict"], integration["worktree"], command)]
    return shown


def _waits(conflict: Mapping[str, Any], path: str, command: str) -> Iterator[str]:
    first, second = (cell(name) for name in conflict["subtasks"])
    yield f"{first} and {second} do not merge in {cell(listed(conflict['paths'], first=_PATHS))}."
    if len(conflict["applied"]) > 1:
        yield f"Merged before it: {cell(listed(conflict['applied'], first=_PATHS))}."
    yield "The merge waits in this worktree for your own git commands:"
    yield f"  cd {shlex.quote(cell(path))}"
    yield "  git status           # then edit, git add; git commit if you like"
    yield f"  {command} --continue"
    yield f"To take it back (what is there is kept): {command} --abort"


def _taken(resolution: Mapping[str, Any] | None) -> Sequence[str]:
    if resolution is None:
        return []
    by = "your commit" if resolution["madeBy"] == "person" else "committed from the index in your name"
    lines = [f"Recorded {short(resolution['commit'])} as the merge, {by}."]
    if resolution["otherPaths"]:
        lines.append(f"It also changes {cell(listed(resolution['otherPaths'], first=_PATHS))}.")
    if resolution["untracked"]:
        lines.append(f"Untracked, no part of it, left: {cell(listed(resolution['untracked'], first=_PATHS))}.")
    return lines


def _kept(commit: str | None) -> Sequence[str]:
    return [f"Everything that stood there is kept in commit {short(commit)}."] if commit else []
