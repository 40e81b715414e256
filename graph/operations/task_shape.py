"""Which Task is meant, and its document: what every task verb begins and ends with. Reads rows; builds no graph."""

import json
from typing import TYPE_CHECKING, Any, Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.loading import is_finished, is_forgotten, pick_graph, subtask_ids
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.task_view import task_json

if TYPE_CHECKING:
    from coordinate_agents.graph.store.rows import GraphRow
    from coordinate_agents.graph.store.store import Store

PROGRAM: Final = "coordinate-agents"


def pick_task(store: "Store", given: str | None, *, instead: str) -> "tuple[GraphRow, str]":
    """The graph of one subtask that is meant, and that subtask; without an id the only unfinished one.

    `instead`: the verb for graphs of several subtasks. Raises: TASK_NOT_FOUND, INVALID_USAGE; TASK_STATE_CONFLICT for
    such a graph.
    """
    row = pick_graph(store, given) if given is not None else _only_task(store)
    subtasks = subtask_ids(row)
    if len(subtasks) != 1:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Graph {row.id} has {len(subtasks)} subtasks; the task verbs are for a graph of one.",
            kept="everything as it is",
            next=f"{PROGRAM} {instead} {row.id}",
            facts={"taskId": row.id},
        )
    return row, subtasks[0]


def task_data(runtime: Runtime, graph: str, *, store: "Store | None" = None) -> dict[str, Any]:
    """`task` and what of it needs a person, as recorded now. `store`: as of `status_of`. Raises: TASK_NOT_FOUND."""
    store = store or runtime.store
    status = status_of(runtime, graph, store=store)
    row = pick_graph(store, graph)
    runs = {each.subtask_id: json.loads(each.row) for each in store.runs(graph)}
    run = runs.get(status["subtasks"][0]["id"], {})
    return {"task": task_json(row, run, status), "attention": status["attention"]}


def _only_task(store: "Store") -> "GraphRow":
    rows = [row for row in store.graphs() if not is_forgotten(row) and len(subtask_ids(row)) == 1]
    open_rows = [row for row in rows if not is_finished(store, row)]
    found = rows if len(rows) == 1 else open_rows
    if len(found) == 1:
        return found[0]
    if not rows:
        raise GraphError(
            "TASK_NOT_FOUND",
            "There is no Task in this repository yet.",
            kept="everything as it is",
            next=f"{PROGRAM} task-create --help",
        )
    from coordinate_agents.graph.text import listed

    what = "several are unfinished" if open_rows else "every one is finished"
    names = listed([row.id for row in reversed(open_rows or rows)], first=8)
    raise GraphError("INVALID_USAGE", f"Name the Task: {what} ({names}).", next=f"{PROGRAM} graph-list")
