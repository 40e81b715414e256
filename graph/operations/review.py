"""graph-review: open the review of what is integrated, or of one subtask; approve it, or ask for changes.

Without a decision it shows what is to be reviewed, and records only that the review is open. The decision is an option
of a closed list and is bound to one commit; no agent can give it (AGENT_MAY_NOT).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from coordinate_agents.graph.acts.review import review
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_NEEDS_PERSON, GraphError
from coordinate_agents.graph.model import CommitId
from coordinate_agents.graph.operations.asking import by_driver_or_alone, do_alone, with_lease
from coordinate_agents.graph.operations.diff import counts
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask, require_subtask
from coordinate_agents.graph.operations.sources import read_source
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.words import given_words
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.values import value_class

# Looking at git, and closing the idle Sessions of what is approved, each within its own bound.
_REVIEW_WAIT_S: Final = 30.0
MAX_STAT_BYTES: Final = 64 << 10


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    and_: tuple[str, ...] = ()
    decision: Literal["REVIEW_APPROVED", "CHANGES_REQUESTED"] | None = None
    commit: str | None = None
    feedback: str | None = None
    feedback_file: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`material`: what is reviewed; `decided`: what came of it. Exit code 5 while a review waits for its decision.

    Raises: as `acts.review`; INVALID_USAGE.
    """
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    for each in request.and_:
        require_subtask(row, each)
    subtasks = list(dict.fromkeys([*([subtask] if subtask else []), *request.and_]))
    asked = {
        "subtasks": subtasks,
        "decision": request.decision,
        "commit": request.commit,
        "feedback": _feedback(request),
    }
    material = _material(runtime, row.id, subtasks)

    # An approval closes idle Sessions, also when it was recorded before: never without the lease.
    begin = with_lease if request.decision == "REVIEW_APPROVED" else do_alone
    told = by_driver_or_alone(
        runtime, row.id, "review", asked, review, verb="graph-review", wait_s=_REVIEW_WAIT_S, begin=begin
    )
    data = {**status_of(runtime, row.id), "material": material, "decided": dict(told)}
    data["advice"] = _advice(row.id, subtasks, data)
    waits = data["review"] is not None and data["review"]["state"] == "REVIEWING" and data["review"]["current"]
    return Result(data, EXIT_NEEDS_PERSON if waits else EXIT_DONE)


def _feedback(request: Request) -> str:
    if request.feedback is not None and request.feedback_file is not None:
        raise GraphError("INVALID_USAGE", "Give --feedback or --feedback-file, not both.", kept="everything as it is")
    if request.feedback_file is not None:
        return given_words(read_source(request.feedback_file).text.decode("utf-8", "replace")) or ""
    return given_words(request.feedback) or ""


def _material(runtime: Runtime, graph: str, subtasks: list[str]) -> dict[str, Any]:
    """What a reviewer looks at, as it was recorded and stands in git; nothing is refused here."""
    _, snapshot = load_snapshot(runtime.store, graph)
    runs = [run for run in snapshot.runs.values() if not subtasks or run.id in subtasks]
    integration = snapshot.summary.integration
    whole: dict[str, Any] | None = None
    if not subtasks and integration.state == "integrated" and integration.commit is not None:
        # What it was merged onto is not the graph's work.
        base = integration.onto or snapshot.summary.base or CommitId("")
        stat = runtime.worktrees.diff(base, integration.commit, stat=True, max_bytes=MAX_STAT_BYTES)
        whole = {
            "base": base,
            "onto": integration.onto_name or None,
            "commit": integration.commit,
            "stat": stat,
            "checks": [_check(each) for each in integration.checks],
        }
    parts = []
    for run in sorted(runs, key=lambda run: run.id):
        evidence = run.evidence
        parts.append(
            {
                "id": run.id,
                "change": counts(runtime, run),
                "certificate": run.certificate,
                "checks": [_check(each) for each in evidence.checks] if evidence else [],
                "warnings": list(evidence.warnings) if evidence else [],
                "outsideScope": list(evidence.outside_scope) if evidence else [],
                "summary": run.summary or None,
            }
        )
    return {"integration": whole, "subtasks": parts}


def _check(outcome: Any) -> dict[str, Any]:
    return {"name": outcome.name, "outcome": outcome.outcome, "checkedIn": outcome.checked_in}


def _advice(graph: str, subtasks: list[str], data: Mapping[str, Any]) -> list[str]:
    told = data["decided"]
    commit = str(told["commit"])[:12]
    if told["decision"] == "CHANGES_REQUESTED":
        lines = [f"Changes are requested of {listed(told['rework'], first=8)}."]
        if told["again"]:
            lines.append(f"Begins again from there: {listed(told['again'], first=8)}.")
        return [*lines, f"Next: coordinate-agents graph-run {graph} --integrate"]
    if told["decision"] == "REVIEW_APPROVED":
        what = f"commit {commit} of subtask {subtasks[0]}" if subtasks else f"the integrated commit {commit}"
        lines = [f"Approved: {what}." if told["recorded"] else f"Approved before: {what}."]
        if subtasks:
            return lines
        deliver = f"Next, to have it on a branch of yours: coordinate-agents graph-deliver {graph} --branch NAME"
        return [*lines, f"It is on branch {data['integration']['branch']}; nothing was merged.", deliver]
    words = " ".join([graph, *subtasks[:1]])
    return [
        f"Look: coordinate-agents graph-diff {words}",
        f"Approve: coordinate-agents graph-review {words} --commit {commit} --decision REVIEW_APPROVED",
        f"Ask for changes: coordinate-agents graph-review {graph} {subtasks[0] if subtasks else 'SUBTASK'}"
        " --decision CHANGES_REQUESTED --feedback TEXT",
    ]
