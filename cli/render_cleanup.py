"""The text of graph-cleanup, graph-undo and graph-forget: one line per worktree, and under it what would settle it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinate_agents.cli.layout import cell, short, size
from coordinate_agents.graph.text import counted

MAX_FILES: Final = 10
_DONE: Final = {"removed": "removed", "kept": "kept", "refused": "REFUSED", "absent": "absent"}
_WOULD: Final = {**_DONE, "removed": "would go", "refused": "would stay", "kept": "not asked"}


def cleanup(data: Mapping[str, Any]) -> list[str]:
    """Each worktree with what became of it (or would), then how many of which."""
    words = _WOULD if data["dryRun"] else _DONE
    lines: list[str] = []
    for item in data["items"]:
        # Of many only those that have, or had, something to say; --json has them all.
        if item["reason"] != "absent" or item["branchDeleted"] or len(data["items"]) == 1:
            lines += _item(item, words, is_dry=data["dryRun"] or item["outcome"] == "kept")
    return [*lines, "", _counts(data, words)] if lines else ["There is no worktree."]


def undone(data: Mapping[str, Any]) -> list[str]:
    """Each worktree that is back, with what could not be brought back."""
    lines: list[str] = []
    for item in data["items"]:
        outcome = item["outcome"].upper() if item["outcome"] == "refused" else item["outcome"]
        lines.append(_joined(f"{outcome} {cell(item['subtask'])}", item["worktree"], item["message"]))
        if item["discard"]:
            lines.append(f"  from commit {short(item['discard'])}")
        lines += [f"  not back: {cell(text)}" for text in item["lost"]]
        lines += [f"  Next: {cell(item['next'])}"] if item["next"] else []
    return lines or ["No worktree was removed."]


def forgotten(data: Mapping[str, Any]) -> list[str]:
    """What went, and what stays."""
    would = "would be " if data["dryRun"] else ""
    lines = [f"{data['graph']}: {counted(data['sessions'], 'Session')} {would}deleted, {size(data['bytes'])}"]
    pins = data["pins"]
    only = f"; {counted(pins['onlyHere'], 'commit')} {'are' if pins['onlyHere'] != 1 else 'is'} held by nothing else"
    dropped = f"{would}dropped" if pins["dropped"] else "stay"
    lines.append(f"  {counted(pins['count'], 'pin')} {dropped}{only if pins['onlyHere'] else ''}")
    return [*lines, "  the event log, the certificates and every branch stay"]


def _item(item: Mapping[str, Any], words: Mapping[str, str], *, is_dry: bool) -> Iterator[str]:
    place = item["worktree"] if item["outcome"] != "absent" else None
    yield _joined(f"{words[item['outcome']]} {cell(item['subtask'])}", place, item["message"])
    if item["outcome"] in ("removed", "kept") and item["fileCount"]:
        # Beforehand each is worth a look; afterwards they are one word of many.
        yield f"  {counted(item['fileCount'], 'file')} beside its commit, {size(item['bytes'])}{':' if is_dry else ''}"
        if is_dry:
            yield from _files(item)
    if item["pinned"]:
        yield f"  pinned: {', '.join(short(commit) for commit in item['pinned'][:5])}"
    if item["discard"]:
        yield f"  set aside as commit {short(item['discard'])}; graph-undo brings it back"
    if item["branchDeleted"]:
        yield f"  branch {cell(item['branch'])} deleted; its commits are pinned"
    if item["next"]:
        yield f"  Next: {cell(item['next'])}"


def _files(item: Mapping[str, Any]) -> Iterator[str]:
    for file in item["files"][:MAX_FILES]:
        yield f"    {size(file['bytes'])} {cell(file['path'])}"
    if item["fileCount"] > MAX_FILES:
        yield f"    … and {item['fileCount'] - MAX_FILES} more; --json lists the first 50"


def _joined(head: str, place: str | None, message: str | None) -> str:
    parts = [part for part in (head, cell(place) if place else "") if part]
    return " ".join(parts) + (f": {cell(message)}" if message else "")


def _counts(data: Mapping[str, Any], words: Mapping[str, str]) -> str:
    counts: dict[str, int] = {}
    for item in data["items"]:
        counts[item["outcome"]] = counts.get(item["outcome"], 0) + 1
    freed = sum(item["bytes"] for item in data["items"] if item["outcome"] == "removed")
    told = ", ".join(f"{count} {words[outcome].lower()}" for outcome, count in sorted(counts.items()))
    return f"{data['graph']}: {told}; {size(freed)} beside commits"
