"""graph-diff: what the subtasks changed, each against its own base; one subtask's whole diff."""

import re
from typing import Any, Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.worktrees.values import value_class

MAX_DIFF_BYTES: Final = 4 << 20
_MAX_STAT_BYTES: Final = 1 << 20
_COUNTS: Final = re.compile(r"(\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?\s*$")


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`subtasks`: one entry for each that has a commit. With a subtask also `diff`. Raises: TASK_STATE_CONFLICT."""
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    _, snapshot = load_snapshot(runtime.store, row.id)
    if subtask is None:
        found = [
            change for run in sorted(snapshot.runs.values(), key=lambda run: run.id) if (change := counts(runtime, run))
        ]
        return Result({"graph": row.id, "subtasks": found})
    run = snapshot.runs[subtask]  # type: ignore[index]
    change = counts(runtime, run)
    if change is None:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Subtask {subtask} of graph {row.id} has no commit yet: it is {run.state}.",
            next=f"coordinate-agents graph-inspect {row.id} {subtask}",
            facts={"taskId": row.id, "subtaskId": subtask},
        )
    text = runtime.worktrees.diff(change["base"], change["commit"], stat=False, max_bytes=MAX_DIFF_BYTES)
    return Result({"graph": row.id, "subtasks": [change], "diff": text})


def counts(runtime: Runtime, run: TaskRun) -> dict[str, Any] | None:
    """Files and lines between its base and its verified commit, or its last head; None when there is none."""
    commit = run.verified_commit or run.head
    if commit is None or run.base is None:
        return None
    last = runtime.worktrees.diff(run.base, commit, stat=True, max_bytes=_MAX_STAT_BYTES).rstrip().rpartition("\n")[2]
    numbers = _COUNTS.search(last)
    files, added, removed = (int(number or 0) for number in numbers.groups()) if numbers else (0, 0, 0)
    return {
        "id": run.id,
        "base": run.base,
        "commit": commit,
        "verified": run.verified_commit is not None,
        "files": files,
        "insertions": added,
        "deletions": removed,
    }
