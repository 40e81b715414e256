"""graph-integrate: merge the verified commits of a graph whose subtasks all succeeded, and check the result."""

from dataclasses import dataclass

from coordinate_agents.graph.engine import DriveOptions
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph, exit_code_of
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import counted


@dataclass(frozen=True, slots=True)
class Request:
    graph: str | None = None
    onto: str | None = None
    continue_: bool = False
    abort: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    if request.onto is not None or request.continue_ or request.abort:
        raise GraphError(
            "UNSUPPORTED_CAPABILITY",
            "--onto, --continue and --abort are not built yet.",
            kept="every verified commit and branch",
            next=f"coordinate-agents graph-diff{f' {request.graph}' if request.graph else ''}",
        )
    row, snapshot = load_snapshot(runtime.store, pick_graph(runtime.store, request.graph).id)
    open_tasks = [run.id for run in snapshot.runs.values() if run.state != "succeeded"]
    if open_tasks:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"graph {row.id} cannot be integrated: {len(open_tasks)} of {counted(len(snapshot.runs), 'subtask')}"
            f" did not succeed yet ({', '.join(open_tasks[:5])}).",
            kept="everything; nothing was merged",
            next=f"coordinate-agents graph-status {row.id}",
            stage="integrate",
            facts={"taskId": row.id},
        )
    drive = DriveRequest(DriveOptions(integrate=True))
    ended, ending = drive_graph(runtime, row.id, drive)
    return Result(status_of(runtime, row.id), exit_code_of(ended, ending, integrate=True))
