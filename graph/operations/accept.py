"""graph-accept: as graph-check, with named failures accepted by a person. Who and why stand in the certificate.

That the work is on its branch, builds on its start commit and is committed can never be accepted away.
"""

from typing import Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.evidence import NEVER_WAIVED, WAIVABLE_FACTS, Waiver
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.check import check
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask, require_named
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.values import value_class

MAX_REASON: Final = 1000
MAX_WAIVERS: Final = 50


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    reason: str = ""
    waive: tuple[str, ...] = ()


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: EVIDENCE_REJECTED for what can never be waived; INVALID_USAGE for an unknown name; as graph-check."""
    row, name = pick_subtask(runtime.store, request.graph, request.subtask)
    subtask = require_named(row, name)
    reason = request.reason.strip()
    if not reason or len(reason) > MAX_REASON:
        raise _usage(row.id, f"--reason says why, in at most {MAX_REASON} characters.")
    if not request.waive or len(request.waive) > MAX_WAIVERS:
        raise _usage(row.id, f"--waive names what is accepted: a check or a fact, at most {MAX_WAIVERS}.")
    _, snapshot = load_snapshot(runtime.store, row.id)
    checks = [each.name for each in (*snapshot.graph.checks, *snapshot.tasks[SubtaskId(subtask)].checks)]
    waivers = tuple(Waiver(_what(row.id, each, checks), runtime.who, reason) for each in dict.fromkeys(request.waive))
    return check(runtime, row.id, subtask, verb="graph-accept", waivers=waivers)


def _what(graph: str, word: str, checks: list[str]) -> str:
    """``check:<name>`` or ``fact:<name>``; a check's name comes first."""
    kind, colon, name = word.partition(":")
    if not colon or kind not in ("check", "fact"):
        kind, name = ("check" if word in checks else "fact"), word
    if kind == "check" and name in checks:
        return f"check:{name}"
    if kind == "fact" and name in NEVER_WAIVED:
        raise GraphError(
            "EVIDENCE_REJECTED",
            f"Fact {name} can never be waived: without it nobody knows which work is accepted.",
            kept="everything as it is",
            next=f"coordinate-agents graph-inspect {graph} --part failure",
            stage="check",
            facts={"taskId": graph},
        )
    if kind == "fact" and name in WAIVABLE_FACTS:
        return f"fact:{name}"
    known = listed(checks, first=8) if checks else "none"
    raise _usage(graph, f"There is no check {name!r}. Checks: {known}. Facts: {', '.join(WAIVABLE_FACTS)}.")


def _usage(graph: str, message: str) -> GraphError:
    return GraphError(
        "INVALID_USAGE",
        message,
        kept="everything as it is",
        next=f"coordinate-agents graph-inspect {graph} --part failure",
        facts={"taskId": graph},
    )
