"""task-status: where a Task stands, and what of it needs a person. Reads rows; builds no graph."""

from typing import Any, NamedTuple

from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import pick_task, task_data
from coordinate_agents.graph.runtime import Runtime


class Request(NamedTuple):
    """`brief`, `since`, `wait`: as of graph-status."""

    task: str | None = None
    brief: bool = False
    since: int | None = None
    wait: float | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`task`, `attention` and, to ask again from, `cursor`. Raises: as `pick_task`; INVALID_USAGE."""
    row, _ = pick_task(runtime.store, request.task, instead="graph-status")
    if request.brief or request.since is not None or request.wait is not None:
        return Result(_brief(runtime, row.id, request))
    data = task_data(runtime, row.id)
    return Result({**data, "cursor": pick_graph(runtime.store, row.id).last_seq})


def _brief(runtime: Runtime, graph: str, request: Request) -> dict[str, Any]:
    """Few bytes: `changed`, and when something did, also the session and what needs a person."""
    from coordinate_agents.graph.operations.brief import brief
    from coordinate_agents.graph.store.store import Store

    told = brief(runtime, graph, since=request.since, wait_s=request.wait or 0.0)
    with Store.open_readonly(runtime.state_dir) as store:
        task = task_data(runtime, graph, store=store)["task"]
    keys = ("id", "state", "phase", "sessionId", "next") if told["changed"] else ("id", "state")
    data: dict[str, Any] = {"task": {key: task[key] for key in keys}, "cursor": told["cursor"]}
    data["changed"] = told["changed"]
    if told["changed"]:
        data["attention"] = told["attention"]
    return data
