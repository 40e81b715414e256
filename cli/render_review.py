"""The text of graph-review: what is to be reviewed, then where the graph stands and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.layout import cell, cut, short, table, width
from coordinate_agents.cli.render_status import status
from coordinate_agents.graph.text import counted, visible_lines

MAX_STAT_LINES: Final = 60
MAX_PARTS: Final = 60
_TITLES: Final = ("SUBTASK", "COMMIT", "FILES", "+", "-", "CHECKS", "CERTIFICATE")


def review(data: Mapping[str, Any]) -> list[str]:
    """The material when nothing was decided by this call; always the graph's state and the advice."""
    shown = [] if data["decided"]["decision"] else [*material(data["material"]), ""]
    return [*shown, *status(data)]


def material(material: Mapping[str, Any]) -> Iterator[str]:
    whole = material["integration"]
    if whole is not None:
        yield f"To be reviewed: {whole['commit']}"
        against = cell(whole["onto"]) if whole["onto"] else "base"
        yield f"  against {against} {short(whole['base'])}; {_checks(whole['checks'])}"
        yield from visible_lines(whole["stat"].rstrip(), max_lines=MAX_STAT_LINES, limit=width())
        yield ""
    parts = material["subtasks"]
    yield from table([_row(part) for part in parts[:MAX_PARTS]], titles=_TITLES)
    if len(parts) > MAX_PARTS:
        yield f"… and {counted(len(parts) - MAX_PARTS, 'more subtask')}; --json lists them all"
    for part in parts:
        for warning in part["warnings"]:
            yield cut(f"note on {part['id']}: {cell(warning)}", width())
        if part["outsideScope"]:
            yield cut(f"note on {part['id']}: outside its scope: {cell(', '.join(part['outsideScope']))}", width())


def _row(part: Mapping[str, Any]) -> Sequence[object]:
    change = part["change"] or {}
    return (
        part["id"],
        short(change.get("commit")),
        change.get("files"),
        change.get("insertions"),
        change.get("deletions"),
        _checks(part["checks"]),
        short(part["certificate"]),
    )


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    if not checks:
        return "no checks"
    passed = sum(check["outcome"] == "passed" for check in checks)
    return f"{passed}/{len(checks)} checks passed"
