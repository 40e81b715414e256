"""task-inspect: everything known of a Task, or one part of it; what graph-inspect tells of its subtask."""

from coordinate_agents.graph.operations import inspect
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import pick_task, task_data
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    task: str | None = None
    part: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`task` beside the data of graph-inspect; what was asked for stands as `document`. Raises: as `pick_task`."""
    row, subtask = pick_task(runtime.store, request.task, instead="graph-inspect")
    found = inspect.execute(runtime, inspect.Request(row.id, subtask, request.part))
    document = found.data.pop("task", None)
    told = {"document": document} if document is not None else {}
    return Result({"task": task_data(runtime, row.id)["task"], **told, **found.data}, found.exit_code)
