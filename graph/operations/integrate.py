"""graph-integrate: merge the verified commits of a graph whose subtasks all succeeded, and check the result.

A conflict waits in the integration's worktree for a person; `--continue` takes what they did and goes on, `--abort`
goes back to the last integration that passed.
"""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.graph.conflicts import PROGRAM
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.engine import DriveOptions, verified_heads
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.integrating import end_conflict, give_up_integration
from coordinate_agents.graph.operations.asking import under_lease
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph, exit_code_of
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.resolving import merge_json
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import counted
from coordinate_agents.worktrees.model import CommitId, MergeEnding
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    graph: str | None = None
    onto: str | None = None
    continue_: bool = False
    abort: bool = False
    keep_markers: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_STATE_CONFLICT; DIRTY_WORKTREE when what --continue finds is not finished; LEASE_HELD."""
    if sum((request.onto is not None, request.continue_, request.abort)) > 1:
        raise GraphError("INVALID_USAGE", "--onto, --continue and --abort exclude each other.")
    row, snapshot = load_snapshot(runtime.store, pick_graph(runtime.store, request.graph).id)
    if request.abort:
        done = under_lease(runtime, row.id, "integrate", {"who": "user"}, _give_up)
        return Result(_answer(runtime, row.id, "abort", done))
    _require_succeeded(row.id, snapshot)
    onto = runtime.worktrees.resolve(request.onto) if request.onto is not None else None
    _require_same(row.id, snapshot, onto)
    done = {}
    if request.continue_:
        _require_stopped(row.id, snapshot)
        name, email = runtime.worktrees.user_identity() or ("", "")
        asked = {"who": "user", "name": name, "email": email, "keepMarkers": request.keep_markers}
        done = under_lease(runtime, row.id, "integrate", asked, _take_end)
    drive = DriveRequest(DriveOptions(integrate=True, onto=onto, onto_name=request.onto or ""))
    ended, ending = drive_graph(runtime, row.id, drive)
    data = _answer(runtime, row.id, "continue" if request.continue_ else "start", done)
    return Result(data, exit_code_of(ended, ending, integrate=True))


async def _give_up(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"kept": await give_up_integration(context, who=asked["who"])}


async def _take_end(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    ending = MergeEnding(asked["name"], asked["email"], asked["keepMarkers"])
    return {"resolution": merge_json(await end_conflict(context, ending, who=asked["who"]))}


def _answer(runtime: Runtime, graph: str, action: str, done: Mapping[str, Any]) -> dict[str, Any]:
    data = status_of(runtime, graph)
    data["integrate"] = {"action": action, "resolution": done.get("resolution"), "kept": done.get("kept")}
    return data


def _require_succeeded(graph: str, snapshot: Snapshot) -> None:
    open_tasks = [run.id for run in snapshot.runs.values() if run.state != "succeeded"]
    if open_tasks:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"graph {graph} cannot be integrated: {len(open_tasks)} of {counted(len(snapshot.runs), 'subtask')}"
            f" did not succeed yet ({', '.join(open_tasks[:5])}).",
            kept="everything; nothing was merged",
            next=f"{PROGRAM} graph-status {graph}",
            stage="integrate",
            facts={"taskId": graph},
        )


def _require_same(graph: str, snapshot: Snapshot, onto: CommitId | None) -> None:
    """A merge in which a person is at work is finished or given up before another one begins."""
    integration = snapshot.summary.integration
    if integration.is_aborting:
        what = "the last one was not given up completely"
    elif integration.state == "conflict" and integration.heads != verified_heads(snapshot):
        what = "it stands in a merge of commits that were redone since"
    elif integration.state == "conflict" and onto not in (None, integration.onto):
        what = "it stands in a conflict onto another commit"
    else:
        return
    raise GraphError(
        "TASK_STATE_CONFLICT",
        f"graph {graph} cannot be integrated anew: {what}.",
        kept="everything in the integration's worktree",
        next=f"{PROGRAM} graph-integrate {graph} --abort",
        stage="integrate",
        facts={"taskId": graph},
    )


def _require_stopped(graph: str, snapshot: Snapshot) -> None:
    state = snapshot.summary.integration.state
    if state == "none":
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"graph {graph} has no integration that stopped: it is {state}.",
            kept="everything as it is",
            next=f"{PROGRAM} graph-status {graph}",
            stage="integrate",
            facts={"taskId": graph},
        )
