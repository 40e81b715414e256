"""A graph's record as the JSON shapes that status and all driving verbs answer with (contract section 13).

Works on the stored rows as they are: plain JSON in, plain JSON out, in one pass. A read verb therefore builds none of
the value classes, whose making costs more than everything else that it does. Computes states and reasons; decides
nothing. Text stays as recorded: the edge makes it safe for a terminal.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from coordinate_agents.graph.conflicts import (
    PROGRAM,
    base_conflict,
    conflict_json,
    conflict_words,
    integration_conflict,
    named,
)
from coordinate_agents.graph.frontier import BASE_STAGE, PLACES, Frontier, RunState
from coordinate_agents.graph.states import GraphState, IntegrationState, ReviewState, graph_state

if TYPE_CHECKING:
    from coordinate_agents.graph.snapshot import Snapshot
    from coordinate_agents.graph.store.lease import Holder
    from coordinate_agents.graph.store.rows import GraphRow, RunRow

# Kinds of attention, most urgent first.
KINDS: Final = ("shared", "disk", "ports", "auth", "input", "unreachable", "conflict", "quota", "failed", "review")

_REVIEW_STATES: Final[Mapping[ReviewState, str]] = {
    "open": "REVIEWING",
    "changes": "CHANGES_REQUESTED",
    "approved": "APPROVED",
}

# A failure's code -> the kind of attention; any other code is "failed".
_KIND_OF_CODE: Final[Mapping[str, str]] = {
    "AUTH_REQUIRED": "auth",
    "AWAITING_INPUT": "input",
    "BASE_CONFLICT": "conflict",
    "DISK_FULL": "disk",
    "DISK_LOW": "disk",
    "INTEGRATION_CONFLICT": "conflict",
    "QUOTA_EXHAUSTED": "quota",
    "RATE_LIMITED": "quota",
    "SHARED_STATE_CHANGED": "shared",
}


def status_data(
    row: "GraphRow", snapshot: "Snapshot", *, driver: "Holder | None", now: float, base_behind: int | None = None
) -> dict[str, Any]:
    """`data` of graph-status for a state in memory."""
    from coordinate_agents.graph.codec import to_plain

    runs = {str(run.id): to_plain(run) for run in snapshot.runs.values()}
    tasks = [
        {"id": task.id, "title": task.title, "agent": task.agent, "depends_on": task.depends_on}
        for task in snapshot.graph.tasks
    ]
    document = {"max_concurrency": snapshot.graph.max_concurrency, "tasks": tasks}
    return _status(row, document, runs, to_plain(snapshot.summary), driver, now, base_behind)


def status_of_rows(
    row: "GraphRow",
    runs: "Iterable[RunRow]",
    *,
    driver: "Holder | None",
    now: float,
    base_behind: int | None = None,
) -> dict[str, Any]:
    """`data` of graph-status from the store's rows. `base_behind` None: not looked at."""
    by_id = {each.subtask_id: json.loads(each.row) for each in runs}
    summary = json.loads(row.summary) if row.summary else {}
    return _status(row, json.loads(row.document), by_id, summary, driver, now, base_behind)


def subtask_attention_of(snapshot: "Snapshot", subtask: str) -> dict[str, Any] | None:
    """What of one subtask needs a person, as in `attention`; None when nothing does."""
    from coordinate_agents.graph.codec import to_plain
    from coordinate_agents.graph.model import SubtaskId

    run = snapshot.runs[SubtaskId(subtask)]
    plain, graph = to_plain(run), snapshot.graph.id
    state = str(snapshot.frontier.place(run.id)).upper()
    failure = failure_json(base_conflict(graph, plain, subtask)) if run.conflict is not None else None
    shown = {"id": subtask, "state": state, "phase": run.phase, "reason": run.reason, "failure": failure}
    return _subtask_attention(graph, shown, {subtask: plain})


def graph_attention_of(snapshot: "Snapshot") -> list[dict[str, Any]]:
    """What of the graph itself needs a person, as in `attention`, once nobody drives it."""
    from coordinate_agents.graph.codec import to_plain

    runs = {str(run.id): to_plain(run) for run in snapshot.runs.values()}
    return list(_graph_attention(snapshot.graph.id, runs, to_plain(snapshot.summary), is_driven=False))


def graph_overview(row: "GraphRow", runs: "Iterable[RunRow]", *, driver: "Holder | None") -> dict[str, Any]:
    """One line of graph-list: the graph with its state and counts."""
    tasks = json.loads(row.document)["tasks"]
    states = {each.subtask_id: json.loads(each.row) for each in runs}
    summary = json.loads(row.summary) if row.summary else {}
    frontier = _frontier(tasks, states)
    return {
        "id": row.id,
        "title": row.title,
        "state": _graph_state(frontier, states, summary, driver),
        "revision": row.revision,
        "createdAt": iso(row.created_at),
        "subtasks": len(tasks),
        "frontier": {place: frontier.counts()[place] for place in PLACES},
        "driver": _driver(driver),
    }


def iso(seconds: float) -> str:
    """The time in UTC with milliseconds, as every JSON answer writes it."""
    whole = int(seconds)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((seconds - whole) * 1000):03d}Z"


def _status(
    row: "GraphRow",
    document: Mapping[str, Any],
    runs: Mapping[str, Mapping[str, Any]],
    summary: Mapping[str, Any],
    driver: "Holder | None",
    now: float,
    base_behind: int | None,
) -> dict[str, Any]:
    tasks = sorted(document["tasks"], key=lambda task: task["id"])
    frontier = _frontier(tasks, runs)
    blockers = frontier.all_blockers()
    subtasks = [_subtask(row.id, task, runs.get(task["id"], {}), frontier, blockers, driver, now) for task in tasks]
    for subtask in subtasks:
        run = runs.get(subtask["id"], {})
        if run.get("conflict") and subtask["state"] == "BLOCKED":
            subtask["conflict"] = conflict_json(run["conflict"])
            subtask["failure"] = failure_json(base_conflict(row.id, run, subtask["id"]))
        if subtask["failure"] and run.get("removal") and not subtask["worktree"]:
            # What was kept when it failed was removed since.
            left = f"branch {subtask['branch']}" if subtask["branch"] else "every commit"
            subtask["failure"]["kept"] = f"{left}; its worktree was removed"
    return {
        "graph": {
            "id": row.id,
            "title": row.title,
            "state": _graph_state(frontier, runs, summary, driver),
            "revision": row.revision,
            "baseCommit": row.base_commit,
            "baseBranch": (summary.get("base_branch") or "").removeprefix("refs/heads/") or None,
            "baseBehind": base_behind,
            "maxConcurrency": document["max_concurrency"],
            "generation": row.generation,
            "driver": _driver(driver),
        },
        "attention": _attention(row.id, subtasks, runs, summary, is_driven=driver is not None),
        "subtasks": subtasks,
        "frontier": {place: frontier.counts()[place] for place in PLACES},
        "integration": _integration(row.id, summary.get("integration", {}), is_current=is_current(runs, summary)),
        "review": review_json(runs, summary),
        "deliveries": [_delivery(each) for each in summary.get("deliveries", ())],
    }


def _delivery(delivered: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "branch": delivered["branch"],
        "commit": delivered["commit"],
        "source": delivered["source"],
        "isSquashed": delivered.get("is_squashed", False),
        "who": delivered.get("who"),
        "at": _time(delivered.get("at")),
    }


def _frontier(tasks: Sequence[Mapping[str, Any]], runs: Mapping[str, Mapping[str, Any]]) -> Frontier:
    return Frontier(
        {task["id"]: task["depends_on"] for task in tasks},
        {task["id"]: run_state_of(runs[task["id"]]) for task in tasks if task["id"] in runs},
    )


def run_state_of(run: Mapping[str, Any]) -> RunState:
    """As `snapshot.run_state`, from a row."""
    state: RunState = run.get("state", "idle")
    if state == "idle" and run.get("conflict"):
        return "base-conflict"
    is_missing = state == "failed" and (run.get("failure") or {}).get("stage") == BASE_STAGE
    return "base-missing" if is_missing else state


def is_current(runs: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any]) -> bool:
    """Whether the integration, whatever became of it, is of the present verified commits."""
    verified = {commit for run in runs.values() if (commit := run.get("verified_commit"))}
    heads = {head["commit"] for head in summary.get("integration", {}).get("heads", ())}
    return heads == verified - {summary.get("base")}


def review_json(runs: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """The last review; `current`: it is about the commit that is integrated now. None when there was none."""
    review = summary.get("review") or {}
    if review.get("state", "none") == "none":
        return None
    return {
        "state": _REVIEW_STATES[review["state"]],
        "commit": review.get("commit"),
        "subtasks": list(review.get("about", ())),
        "feedback": review.get("feedback") or None,
        "who": review.get("who"),
        "since": _time(review.get("since")),
        "current": _review_state(runs, summary) != "none",
    }


def _review_state(runs: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any]) -> ReviewState:
    """As far as it still counts: an approval, or a review that is open, is of one integrated commit alone."""
    review, integration = summary.get("review") or {}, summary.get("integration", {})
    state: ReviewState = review.get("state", "none")
    if state in ("none", "changes"):
        return state
    is_same = integration.get("state") == "integrated" and integration.get("commit") == review.get("commit")
    return state if is_same and is_current(runs, summary) else "none"


def _graph_state(
    frontier: Frontier, runs: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any], driver: "Holder | None"
) -> GraphState:
    integration: IntegrationState = summary.get("integration", {}).get("state", "none")
    return graph_state(
        places={str(place): count for place, count in frontier.counts().items()},
        integration=integration if integration == "none" or is_current(runs, summary) else "none",
        review=_review_state(runs, summary),
        is_driven=driver is not None,
        was_started=summary.get("was_started", False),
    )


def _driver(driver: "Holder | None") -> dict[str, Any] | None:
    if driver is None:
        return None
    return {"pid": driver.pid, "since": iso(driver.since), "life": driver.life}


def _subtask(
    graph: str,
    task: Mapping[str, Any],
    run: Mapping[str, Any],
    frontier: Frontier,
    blockers: Mapping[Any, Sequence[str]],
    driver: "Holder | None",
    now: float,
) -> dict[str, Any]:
    worktree = run.get("worktree") or {}
    place = frontier.place(task["id"])
    return {
        "id": task["id"],
        "title": task["title"],
        "state": place.upper(),
        "phase": run.get("phase"),
        "reason": _reason(task, run, place, frontier, blockers, driver),
        "agent": run.get("agent") or task["agent"],
        "attempt": run.get("attempt", 0),
        "dependsOn": list(task["depends_on"]),
        "branch": worktree.get("branch") or _branch_of_removed(run),
        "worktree": worktree.get("path"),
        "discard": run.get("discard"),
        "base": run.get("base"),
        "head": run.get("head"),
        "verifiedCommit": run.get("verified_commit"),
        "summary": run.get("summary"),
        "retryAt": _time(run.get("retry_at")),
        "held": run.get("is_held", False),
        "startedAt": _time(run.get("started_at")),
        "endedAt": _time(run.get("ended_at")),
        "elapsedS": _elapsed(run, place, now),
        "evidence": evidence_json(run.get("evidence")),
        "failure": failure_json(run.get("failure")),
        "conflict": None,
        "conflictWorktree": (run.get("conflict_worktree") or {}).get("path"),
        "usage": usage_json(run),
        "session": _session(graph, task["id"], run),
    }


def _branch_of_removed(run: Mapping[str, Any]) -> str | None:
    """The branch of a worktree that was removed, unless it was deleted, too."""
    removal = run.get("removal") or {}
    branch: str | None = (removal.get("worktree") or {}).get("branch")
    return None if removal.get("is_branch_deleted") else branch


def _reason(
    task: Mapping[str, Any],
    run: Mapping[str, Any],
    place: str,
    frontier: Frontier,
    blockers: Mapping[Any, Sequence[str]],
    driver: "Holder | None",
) -> str | None:
    """Why it stands where it stands, in words; None when there is nothing to say."""
    if place == "waiting":
        missing = [other for other in task["depends_on"] if frontier.state(other) != "succeeded"]
        return f"waits for {named(missing)}"
    if place == "blocked":
        conflict = run.get("conflict")
        if conflict:
            return f"BASE_CONFLICT: {conflict_words(conflict)}"
        if frontier.state(task["id"]) == "base-missing":
            own: str = run["failure"]["message"]
            return own
        return "blocked by " + named([f"{other} ({_bad_word(frontier, other)})" for other in blockers[task["id"]]])
    if place == "ready":
        last = run.get("reason")
        if run.get("is_held"):
            return "held: a person works in its worktree"
        before = f"; {'last attempt: ' if run.get('failure') else ''}{last}" if last else ""
        return f"{'waits for a slot' if driver else 'not started'}{before}"
    if place == "running" and driver is None:
        return f"nobody drives the graph; {PROGRAM} graph-run goes on with it"
    if place == "running" and run.get("stalled_since") and run.get("phase") == "working":
        return f"stalled: its agent has said nothing new, seen at {iso(run['stalled_since'])}"
    reason: str | None = run.get("reason")
    return reason


def _bad_word(frontier: Frontier, subtask: str) -> str:
    state = frontier.state(subtask)  # type: ignore[arg-type]
    return state.replace("-", " ")


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)


def _elapsed(run: Mapping[str, Any], place: str, now: float) -> float | None:
    started = run.get("started_at")
    if started is None:
        return None
    ended = now if place == "running" else run.get("ended_at")
    return None if ended is None else round(max(0.0, ended - started), 3)


def _session(graph: str, subtask: str, run: Mapping[str, Any]) -> dict[str, Any] | None:
    if not run.get("session"):
        return None
    end = run.get("turn_end") or {}
    state = "busy" if run.get("session_live") else "starting"
    if run.get("phase") == "awaiting-input" and not end:
        state = "awaiting-input"
    if end and run.get("open_session") == run["session"]:
        state = "idle"
    elif end:
        state = "failed" if end.get("cause") in ("spawn-failed", "host-lost") else "exited"
    elif run.get("state", "idle") != "running":
        # Left to itself (whether it lives is looked at), or closed.
        state = "running" if run.get("open_session") == run["session"] else "exited"
    return {
        "id": run["session"],
        "state": state,
        "agent": run.get("agent"),
        "worktree": (run.get("worktree") or {}).get("path"),
        "pid": run.get("session_pid"),
        "taskId": graph,
        "subtaskId": subtask,
        "verifiedCommit": run.get("verified_commit"),
    }


def usage_json(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """What its agents said that they used, over `turns` turns; None when none said anything."""
    used = run.get("used") or {}
    usage = used.get("total")
    if usage is None:
        return None
    return {
        "turns": used.get("turns", 0),
        "inputTokens": usage.get("input_tokens"),
        "cachedTokens": usage.get("cached_tokens"),
        "outputTokens": usage.get("output_tokens"),
        "totalTokens": usage.get("total_tokens"),
        "costUsd": usage.get("cost_usd"),
    }


def evidence_json(evidence: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The evidence of one head; None when nothing was looked at."""
    if not evidence:
        return None
    return {
        "commit": evidence.get("commit"),
        "base": evidence["base"],
        "paths": {"count": evidence.get("paths_count", 0), "first": list(evidence.get("paths_first", ()))},
        "checks": [check_json(check) for check in evidence.get("checks", ())],
        "outsideScope": list(evidence.get("outside_scope", ())),
        "warnings": list(evidence.get("warnings", ())),
        "waivers": [
            {"what": each["what"], "who": each["who"], "reason": each["reason"]} for each in evidence.get("waivers", ())
        ],
    }


def check_json(check: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": check["name"],
        "outcome": check["outcome"],
        "exitCode": check.get("exit_code"),
        "durationMs": check.get("duration_ms", 0),
        "logPath": check.get("log_path"),
    }


def failure_json(failure: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Why it did not succeed; None when it did, or did not end."""
    if not failure:
        return None
    return {
        "code": failure["code"],
        "message": failure["message"],
        "check": failure.get("check"),
        "exitCode": failure.get("exit_code"),
        "signal": failure.get("signal"),
        "tail": failure.get("tail", ""),
        "logPath": failure.get("log_path"),
        "kept": failure.get("kept"),
        "next": failure.get("next"),
    }


def _integration(graph: str, integration: Mapping[str, Any], *, is_current: bool) -> dict[str, Any] | None:
    state = integration.get("state", "none")
    worktree = integration.get("worktree") or {}
    if state == "none" and not worktree:
        return None
    is_conflict = state == "conflict"
    failure = integration_conflict(graph, integration) if is_conflict else integration.get("failure")
    return {
        "state": state,
        "current": is_current,
        "branch": worktree.get("branch") or _branch_of_removed(integration),
        "worktree": worktree.get("path"),
        "commit": integration.get("commit"),
        "onto": integration.get("onto"),
        "ontoName": integration.get("onto_name") or None,
        "conflict": conflict_json(integration) if is_conflict else None,
        "checks": [check_json(check) for check in integration.get("checks", ())],
        "failure": failure_json(failure),
    }


def _attention(
    graph: str,
    subtasks: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]],
    summary: Mapping[str, Any],
    *,
    is_driven: bool,
) -> list[dict[str, Any]]:
    """What needs a person, most urgent kind first, then the integration, then subtasks in id order."""
    found = [*_graph_attention(graph, runs, summary, is_driven=is_driven)]
    for subtask in subtasks:
        item = _subtask_attention(graph, subtask, runs)
        if item is not None:
            found.append(item)
    return sorted(found, key=lambda item: KINDS.index(item["kind"]))


def _graph_attention(
    graph: str, runs: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any], *, is_driven: bool
) -> Iterable[dict[str, Any]]:
    changes = summary.get("shared_changes", ())
    if changes:
        what = f"shared git state changed: {named(changes)}"
        yield _item(
            None, "shared", what, summary.get("shared_since"), f"{PROGRAM} graph-inspect {graph} --part failure"
        )
    ended = summary.get("ended_reason") or ""
    if ended.startswith("DISK_LOW") and not is_driven:
        yield _item(None, "disk", f"nothing more was started: {ended}", None, f"{PROGRAM} doctor")
    if ended.startswith("PORTS_TAKEN") and not is_driven:
        yield _item(None, "ports", f"nothing more was started: {ended}", None, f"{PROGRAM} graph-run {graph}")
    integration = summary.get("integration", {})
    if integration.get("state") == "conflict":
        stands = integration_conflict(graph, integration)
        yield _item(None, "conflict", f"integration: {stands['message']}", None, stands["next"])
    failure = integration.get("failure")
    # It failed because of the shared state: one matter, shown once.
    is_same = bool(changes) and failure is not None and failure["code"] == "SHARED_STATE_CHANGED"
    if integration.get("state") == "failed" and failure and not is_same:
        if failure["code"] == "SHARED_STATE_CHANGED":
            # A person has accepted that state since, or it was put back.
            yield _item(None, "failed", "integration: not tried again yet", None, f"{PROGRAM} graph-integrate {graph}")
        else:
            following = f"{PROGRAM} graph-inspect {graph} --part failure"
            yield _item(None, _kind(failure), f"integration: {failure['message']}", None, following)
    if _review_state(runs, summary) == "open":
        review = summary["review"]
        question = f"the integrated commit {review['commit'][:12]} waits for a decision"
        following = f"{PROGRAM} graph-review {graph} --decision REVIEW_APPROVED"
        yield _item(None, "review", question, review.get("since"), following)


def _subtask_attention(
    graph: str, subtask: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    run = runs.get(subtask["id"], {})
    inspect = f"{PROGRAM} graph-inspect {graph} {subtask['id']}"
    since = run.get("phase_since")
    if subtask["phase"] == "awaiting-input":
        if run.get("can_go_on"):
            return None  # it was answered, and waits for a slot
        kind = "auth" if run.get("question") == "login" else "input"
        ways = _answers(f"{graph}/{subtask['id']}", run)
        following = ways[0]["command"] if ways else f"{inspect} --part screen"
        return _item(subtask["id"], kind, run.get("reason"), since, following, ways)
    if subtask["phase"] == "throttled":
        return _item(subtask["id"], "quota", run.get("reason"), since, inspect)
    if run.get("conflict") and subtask["state"] == "BLOCKED":
        failure = subtask["failure"]
        return _item(subtask["id"], "conflict", failure["message"], run.get("ended_at"), failure["next"])
    if subtask["state"] != "FAILED" and run_state_of(run) != "base-missing":
        return None
    failure = run.get("failure") or {"code": "", "message": subtask["reason"]}
    # There the ways out are listed, with what failed: a command alone would not say which one fits.
    following = f"{inspect} --part failure"
    return _item(subtask["id"], _kind(failure), failure["message"], run.get("ended_at"), following)


def tell_stopped(data: dict[str, Any], subtask: dict[str, Any], host: int) -> None:
    """Write into `data` of graph-status that the process `host`, the host of the subtask's Session, is stopped."""
    what = f"the host of its Session, process {host}, is stopped, not dead"
    subtask["session"]["state"] = "unreachable"
    if data["graph"]["driver"] is not None:
        subtask["reason"] = what
    data["attention"].append(_item(subtask["id"], "unreachable", what, None, f"kill -CONT {host}"))
    data["attention"].sort(key=lambda item: KINDS.index(item["kind"]))


def _answers(session: str, run: Mapping[str, Any]) -> list[dict[str, str]]:
    """A command for each answer that the agent offers; none for what a screen shows, which has to be looked at."""
    import shlex

    answer = f"{PROGRAM} session-answer {session} --request {run.get('request')} --option"
    return [
        {"when": each["name"], "command": f"{answer} {shlex.quote(each['id'])}"} for each in run.get("choices") or ()
    ]


def _kind(failure: Mapping[str, Any]) -> str:
    return _KIND_OF_CODE.get(failure["code"], "failed")


def _item(
    subtask: str | None,
    kind: str,
    question: str | None,
    since: float | None,
    following: str,
    ways: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """`ways`: all that can be answered, where that is known; `next` is then the first of them."""
    return {
        "subtask": subtask,
        "kind": kind,
        "question": question,
        "since": _time(since),
        "next": following,
        "ways": list(ways),
    }
