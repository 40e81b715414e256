"""recover-inspect: what a recovery would find, as facts: Sessions, worktrees, branches, commits. Records nothing.

For every unfinished graph, one graph, or one subtask. `graph-recover` and `task-resume` look the same way and then
record.
"""

from collections.abc import Sequence
from typing import Any, Final

import anyio

from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.observe import look_at_standing
from coordinate_agents.graph.operations import recover
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.loading import is_finished, is_forgotten, load_snapshot, pick_subtask
from coordinate_agents.graph.operations.session_shape import state_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
MAX_GRAPHS: Final = 50


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`graphs`: `{id, isTask, driver, outlook, subtasks, next}` each; `left`: how many were left out.

    `outlook`: due (an end that nobody recorded), alive (something runs), nothing. Raises: TASK_NOT_FOUND.
    """
    if request.graph is not None:
        row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
        return Result({"graphs": [_facts(runtime, row.id, subtask)], "left": 0})
    rows = [row for row in runtime.store.graphs() if not is_forgotten(row) and not is_finished(runtime.store, row)]
    names = [row.id for row in reversed(rows)]
    found = [_facts(runtime, name, None) for name in names[:MAX_GRAPHS]]
    return Result({"graphs": found, "left": max(0, len(names) - MAX_GRAPHS)})


def _facts(runtime: Runtime, graph: str, only: str | None) -> dict[str, Any]:
    driver = holder(runtime.state_dir, graph)
    subtask = SubtaskId(only) if only is not None else None
    _, snapshot = load_snapshot(runtime.store, graph)
    looked = recover.look(runtime, graph, subtask) if driver is None else None
    runs = [run for run in snapshot.runs.values() if subtask in (None, run.id)]
    is_task = len(snapshot.tasks) == 1
    return {
        "id": graph,
        "isTask": is_task,
        "driver": driver.pid if driver is not None else None,
        "outlook": "alive" if looked is None else looked.outlook,
        "subtasks": anyio.run(_subtasks, runtime, graph, runs, looked),
        "next": _next(graph, looked, is_task=is_task),
    }


async def _subtasks(
    runtime: Runtime, graph: str, runs: Sequence[TaskRun], looked: recover.Look | None
) -> list[dict[str, Any]]:
    # For looking only: its generation is nobody's, so that nothing could be recorded with it.
    context = open_context(runtime, graph, -1, needs="records")
    by_id = {run.id: run for run in runs}
    found = []
    for standing in await look_at_standing(context, runs):
        run = by_id[standing.subtask]
        found.append(
            {
                "subtask": standing.subtask,
                "state": run.state,
                "phase": run.phase,
                "attempt": run.attempt,
                "due": looked is not None and standing.subtask in looked.due,
                "reason": looked.left.get(standing.subtask) if looked is not None else None,
                "session": await _session(runtime, standing.session),
                "worktree": standing.worktree,
                "branchAt": standing.branch_at,
                "problems": list(standing.problems),
            }
        )
    return found


async def _session(runtime: Runtime, name: str | None) -> dict[str, Any] | None:
    """The process that was recorded, and what became of it; an exit is a fact, not a reason to start another one."""
    if name is None:
        return None
    facts = await runtime.sessions.look(SessionId(name))
    record = facts.record
    end = record.end if record is not None else None
    return {
        "id": name,
        "liveness": facts.liveness,
        "state": state_of(facts, record) if record is not None else None,
        "pid": record.child.pid if record is not None and record.child is not None else None,
        "cause": end.cause if end is not None else None,
        "exitCode": end.exit_code if end is not None else None,
        "signal": end.signal if end is not None else None,
        "survivors": list(facts.survivors),
    }


def _next(graph: str, looked: recover.Look | None, *, is_task: bool) -> str:
    if looked is None or looked.outlook == "nothing":
        return f"{PROGRAM} {'task-status' if is_task else 'graph-status'} {graph}"
    return f"{PROGRAM} {'task-resume' if is_task else 'graph-recover'} {graph}"
