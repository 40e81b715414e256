"""A single Task's record as JSON: what the task verbs answer with. Works on stored rows, as `view` does; pure.

A Task is a graph of one subtask. This is another look at the same rows: whatever changes them is the engine's.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coordinate_agents.graph.conflicts import PROGRAM
from coordinate_agents.graph.single_task import SingleTaskState, Standing, single_task_state
from coordinate_agents.graph.view import iso, run_state_of

if TYPE_CHECKING:
    from coordinate_agents.graph.store.rows import GraphRow

ISOLATION = "worktree"


def task_json(row: "GraphRow", run: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    """`data.task`. `run`: the row of its one subtask, `status`: the data of graph-status for the same rows."""
    document = json.loads(row.document)["tasks"][0]
    summary = json.loads(row.summary) if row.summary else {}
    shown, graph = status["subtasks"][0], status["graph"]
    review = _review(run, summary, shown["id"])
    state = single_task_state(standing_of(run, document, is_approved=bool(review and review["current"])))
    session = shown["session"]
    return {
        "id": row.id,
        "subtaskId": shown["id"],
        "title": row.title,
        "state": state,
        "phase": shown["phase"],
        # That it is not started is what its state says.
        "reason": (shown["reason"] or "").removeprefix("not started").removeprefix("; ") or None,
        "agent": shown["agent"],
        "attempt": shown["attempt"],
        "isolation": ISOLATION,
        "revision": graph["revision"],
        "sessionId": session["id"] if session else None,
        "session": session,
        **{key: shown[key] for key in ("branch", "worktree", "base", "head", "verifiedCommit", "summary")},
        **{key: shown[key] for key in ("evidence", "failure", "held", "startedAt", "endedAt", "elapsedS")},
        "review": review,
        "driver": graph["driver"],
        "next": next_of(row.id, state, session, is_driven=graph["driver"] is not None),
    }


def standing_of(run: Mapping[str, Any], document: Mapping[str, Any], *, is_approved: bool) -> Standing:
    """What the state is computed from: the run's row (empty: never started), and the subtask in the document."""
    return Standing(
        run_state_of(run),
        stage=run.get("stage", ""),
        phase=run.get("phase"),
        was_dispatched=bool(run.get("attempt")),
        has_spec=bool(document.get("spec", "").strip()),
        is_held=bool(run.get("is_held")),
        is_rework=bool(run.get("is_rework")),
        is_approved=is_approved,
    )


def next_of(graph: str, state: SingleTaskState, session: Mapping[str, Any] | None, *, is_driven: bool) -> str:
    """The command that a person or a planning agent would give next."""
    match state:
        case "PLANNING":
            return f"{PROGRAM} graph-release {graph}"
        case "CREATED" | "SPEC_READY" | "CHANGES_REQUESTED":
            return f"{PROGRAM} task-dispatch {graph}"
        case "IMPLEMENTING" | "WAITING_IMPLEMENTER" if not is_driven:
            return f"{PROGRAM} task-resume {graph}"
        case "WAITING_IMPLEMENTER" if session is not None:
            return f"{PROGRAM} session-inspect {session['id']} --screen"
        case "IMPLEMENTING" | "WAITING_IMPLEMENTER":
            return f"{PROGRAM} task-status {graph} --brief --wait 25s"
        case "REVIEWING":
            return f"{PROGRAM} task-review {graph}"
        case "APPROVED":
            return f"{PROGRAM} graph-integrate {graph}"
        case "ERROR":
            return f"{PROGRAM} task-inspect {graph} --part failure"
        case "STOPPED":
            return f"{PROGRAM} task-resume {graph}"


def _review(run: Mapping[str, Any], summary: Mapping[str, Any], subtask: str) -> dict[str, Any] | None:
    """The last decision about it; `current`: about what stands there now, or carried out next. None without one."""
    verified, whole = run.get("verified_commit"), summary.get("review") or {}
    approvals = [each for each in summary.get("approvals", ()) if each["subtask"] == subtask]
    if whole.get("state") == "approved" and _is_merged_as_it_is(summary, verified):
        approvals.append({**whole, "commit": verified})
    current = [each for each in approvals if verified is not None and each["commit"] == verified]
    if current:
        return _decision("REVIEW_APPROVED", current[-1], is_current=True)
    if whole.get("state") == "changes" and subtask in whole.get("about", ()):
        return _decision("CHANGES_REQUESTED", whole, is_current=bool(run.get("review")))
    return _decision("REVIEW_APPROVED", approvals[-1], is_current=False) if approvals else None


def _is_merged_as_it_is(summary: Mapping[str, Any], verified: str | None) -> bool:
    """Whether the integration that was reviewed consists of this very commit."""
    integration = summary.get("integration", {})
    heads = [head["commit"] for head in integration.get("heads", ())]
    is_same = integration.get("commit") == (summary.get("review") or {}).get("commit")
    return integration.get("state") == "integrated" and is_same and heads == [verified]


def _decision(decision: str, made: Mapping[str, Any], *, is_current: bool) -> dict[str, Any]:
    return {
        "decision": decision,
        "commit": made.get("commit"),
        "feedback": made.get("feedback") or None,
        "who": made.get("who"),
        "at": iso(made["since"]) if made.get("since") is not None else None,
        "current": is_current,
    }
