"""graph-inspect: everything known of a graph or of one of its subtasks, or one part of it.

Parts: failure (why, with the checks' last lines), screen (the agent's last output), diff, events. A part that needs
git or a Session asks them only when it was chosen.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from coordinate_agents.graph.codec import to_plain
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations import diff
from coordinate_agents.graph.operations.events import event_json
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask
from coordinate_agents.graph.operations.recorded import recorded_config
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.store.rows import GraphRow
from coordinate_agents.graph.view import check_json, failure_json, status_data
from coordinate_agents.graph.ways_out import (
    Way,
    ways_of_integration,
    ways_of_limit,
    ways_of_question,
    ways_of_shared_state,
    ways_of_subtask,
)
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.values import value_class

EVENTS_SHOWN: Final = 200
MAX_DIFF_BYTES: Final = 1 << 20
# A log is shown from its end: the last lines say why.
MAX_LOG_BYTES: Final = 64 << 10


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    part: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`graph` and `attention` as in graph-status, `subtask` with everything; with a part only that part beside them.

    `ways`: what leads out of what did not succeed or waits for a person, likeliest first; the failure's `next` is the
    first of them.
    """
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    row, snapshot = load_snapshot(runtime.store, row.id)
    status = status_data(row, snapshot, driver=holder(runtime.state_dir, row.id), now=runtime.clock.now())
    data: dict[str, Any] = {"graph": status["graph"], "part": request.part}
    if subtask is None:
        data |= _graph_part(runtime, row, snapshot, status, request.part)
        return Result(data)
    shown = next(each for each in status["subtasks"] if each["id"] == subtask)
    run = snapshot.runs[shown["id"]]
    data["subtask"] = shown
    agents = [each.name for each in recorded_config(row)[0].agents]
    data["ways"] = _leading_on(shown["failure"], ways_of_subtask(snapshot, run, agents=agents))
    if request.part is None:
        data |= _everything(runtime, row, snapshot, run)
    else:
        data |= _part(runtime, row, run, request.part)
    if run.phase == "awaiting-input":
        asking = data.get("session") or data.get("screen") or {}
        data["ways"] = [to_plain(way) for way in ways_of_question(row.id, subtask, asking.get("question"))]
    if run.phase == "throttled":
        data["ways"] = [to_plain(way) for way in ways_of_limit(snapshot, run, agents=agents)]
    data["attention"] = [item for item in status["attention"] if item["subtask"] == subtask]
    return Result(data)


def _graph_part(
    runtime: Runtime, row: GraphRow, snapshot: Snapshot, status: dict[str, Any], part: str | None
) -> dict[str, Any]:
    found: dict[str, Any] = {"subtask": None, "attention": status["attention"]}
    if part in (None, "failure"):
        found["integration"] = status["integration"]
        failure = (status["integration"] or {}).get("failure")
        shared = ways_of_shared_state(row.id, snapshot.summary)
        found["sharedChanges"] = list(snapshot.summary.shared_changes)
        found["ways"] = _leading_on(failure, (*shared, *ways_of_integration(snapshot)))
        found["failures"] = [
            {"subtask": run.id, **(failure_json(to_plain(run.failure)) or {})}
            for run in snapshot.runs.values()
            if run.failure is not None
        ]
    if part == "diff":
        found["subtasks"] = [
            change for run in snapshot.runs.values() if (change := diff.counts(runtime, run)) is not None
        ]
    if part == "events":
        found["events"] = _events(runtime, row.id, None)
    if part is None:
        found |= {
            "frontier": status["frontier"],
            "document": json.loads(row.document),
            "config": json.loads(row.config) if row.config else None,
            "sharedFingerprint": snapshot.summary.shared_fingerprint,
            "endedReason": snapshot.summary.ended_reason,
            "stateDir": str(runtime.state_dir),
        }
    return found


def _leading_on(failure: dict[str, Any] | None, ways: Sequence[Way]) -> list[dict[str, Any]]:
    """The ways as JSON; a failure that is shown with them leads to the first one instead of back to here."""
    if failure is not None and ways:
        failure["next"] = ways[0].command
    return [to_plain(way) for way in ways]


def _everything(runtime: Runtime, row: GraphRow, snapshot: Snapshot, run: TaskRun) -> dict[str, Any]:
    task = snapshot.tasks[run.id]
    refs, refs_note = _kept_refs(runtime, row.id, run)
    return {
        "task": to_plain(task),
        "limits": {
            "timeoutS": task.timeout_s,
            "idleTimeoutS": task.idle_timeout_s,
            "inputTimeoutS": task.input_timeout_s,
        },
        "dependents": sorted(other.id for other in snapshot.graph.tasks if run.id in other.depends_on),
        "facts": _last_facts(runtime, row.id, run),
        "checks": _checks(run),
        "turn": {
            "number": run.turn,
            "command": list(run.command),
            "end": to_plain(run.turn_end) if run.turn_end else None,
        },
        "session": _session(runtime, run),
        "conflict": to_plain(run.conflict) if run.conflict else None,
        "certificate": run.certificate,
        "refs": refs,
        "refsNote": refs_note,
        "diff": _counts(runtime, run),
    }


def _part(runtime: Runtime, row: GraphRow, run: TaskRun, part: str) -> dict[str, Any]:
    if part == "failure":
        return {"facts": _last_facts(runtime, row.id, run), "checks": _checks(run), "log": _log(run)}
    if part == "screen":
        return {"screen": _screen(runtime, run)}
    if part == "events":
        return {"events": _events(runtime, row.id, run.id)}
    change = diff.counts(runtime, run)
    text = None
    if change is not None:
        text = runtime.worktrees.diff(change["base"], change["commit"], stat=False, max_bytes=MAX_DIFF_BYTES)
    return {"change": change, "diff": text}


def _counts(runtime: Runtime, run: TaskRun) -> dict[str, Any] | None:
    try:
        return diff.counts(runtime, run)
    except WorktreeError:
        return None


def _kept_refs(runtime: Runtime, graph: str, run: TaskRun) -> tuple[dict[str, str], str | None]:
    """The Runtime's branch and pins of the subtask; a git that cannot be asked is a note, not an error."""
    from coordinate_agents.graph.model import slug

    wanted = f"/{graph}/{slug(run.id)}"
    try:
        refs = runtime.worktrees.runtime_refs(graph)
    except WorktreeError as error:
        return {}, str(error)
    return {
        name: commit for name, commit in sorted(refs.items()) if name.endswith(wanted) or f"{wanted}/" in name
    }, None


def _last_facts(runtime: Runtime, graph: str, run: TaskRun) -> list[str]:
    facts: list[str] = []
    for event in runtime.store.events(graph, subtask=run.id):
        if event.type == "FactsRecorded":
            facts = list(event.data.get("facts", ()))
    return facts


def _checks(run: TaskRun) -> list[dict[str, Any]]:
    if run.evidence is None:
        return []
    return [
        {**check_json(to_plain(check)), "run": list(check.run), "tail": check.tail, "checkedIn": check.checked_in}
        for check in run.evidence.checks
    ]


def _log(run: TaskRun) -> dict[str, Any] | None:
    """The end of the log that the failure names: the check's, else the agent's."""
    path = run.failure.log_path if run.failure else None
    if path is None and run.turn_end is not None:
        path = run.turn_end.log_path
    return None if path is None else _tail(path)


def _tail(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MAX_LOG_BYTES))
            text = file.read(MAX_LOG_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return {"path": path, "text": None, "note": error.strerror}
    return {"path": path, "text": text, "droppedBytes": max(0, size - MAX_LOG_BYTES)}


def _screen(runtime: Runtime, run: TaskRun) -> dict[str, Any] | None:
    """The subtask's terminal while its Session lives, its last output afterwards; None when it never had a Session."""
    if run.session is None:
        return None
    if run.turn_end is not None and run.turn_end.log_path:
        return {"session": run.session, "live": False, "tail": run.turn_end.tail, "log": _tail(run.turn_end.log_path)}
    import anyio

    try:
        return anyio.run(_live_screen, runtime, run.session)
    except (GraphError, SessionError) as error:
        return {"session": run.session, "live": None, "tail": "", "note": str(error)}


async def _live_screen(runtime: Runtime, session: str) -> dict[str, Any]:
    from coordinate_agents.graph.operations.session_inspect import screen_of
    from coordinate_agents.graph.operations.session_shape import question_json
    from coordinate_agents.graph.operations.session_target import find

    target = await find(runtime, session)
    record = target.facts.record
    end = record.end if record is not None else None
    if end is None and record is not None and target.facts.liveness in ("live", "lost"):
        screen = await screen_of(runtime, target)
        tail = "\n".join(screen["lines"]).rstrip()
        live = target.facts.liveness == "live"
        return {"session": session, "live": live, "tail": tail, "screen": screen, "question": question_json(record)}
    return {
        "session": session,
        "live": target.facts.liveness == "live",
        "tail": end.tail if end is not None else target.facts.last_line,
        "log": _tail(end.log_path) if end is not None and end.log_path else None,
    }


def _session(runtime: Runtime, run: TaskRun) -> dict[str, Any] | None:
    """The facts of the subtask's Session as session-status tells them; None when it never had one."""
    if run.session is None:
        return None
    import anyio

    from coordinate_agents.graph.operations.session_shape import session_json
    from coordinate_agents.graph.operations.session_target import find

    try:
        return session_json(anyio.run(find, runtime, run.session))
    except (GraphError, SessionError):
        return None  # its folder is gone; what the log says of it stands in `subtask.session`


def _events(runtime: Runtime, graph: str, subtask: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in runtime.store.events(graph, subtask=subtask):
        found.append(event_json(event))
        if len(found) > 2 * EVENTS_SHOWN:
            del found[:-EVENTS_SHOWN]
    return found[-EVENTS_SHOWN:]
