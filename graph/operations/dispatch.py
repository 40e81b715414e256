"""graph-dispatch: start one ready subtask and return as soon as its Session started; or say why it cannot start.

Without a driver this process drives just so far and leaves: the agent lives on in its host, and whoever comes next
(graph-run, graph-wait, graph-recover) verifies what it did.
"""

from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph.acts.dispatch import begin, started
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.asking import ask_or_do
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph
from coordinate_agents.graph.operations.loading import pick_subtask, require_named
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
# Base, worktree and setup come before the Session; setup may take minutes, and its driver goes on with it then.
_START_WAIT_S: Final = 60.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_STATE_CONFLICT, TASK_ALREADY_RUNNING, DISK_LOW, RATE_LIMITED, BASE_CONFLICT, why it failed."""
    row, name = pick_subtask(runtime.store, request.graph, request.subtask)
    subtask = SubtaskId(require_named(row, name))

    def alone() -> Mapping[str, Any]:
        refused: list[GraphError] = []

        async def claim(engine: Engine) -> None:
            try:
                await begin(engine, subtask)
            except GraphError as error:
                refused.append(error)

        drive = DriveRequest(DriveOptions(only_start=subtask), begin=claim, purpose="graph-dispatch")
        snapshot, _ = drive_graph(runtime, row.id, drive)
        if refused:
            raise refused[0]
        return started(row.id, snapshot.runs[subtask])

    told = ask_or_do(runtime, row.id, "dispatch", {"subtask": subtask}, alone, timeout_s=_START_WAIT_S)
    advice = [
        f"Started: Session {told['session']}.",
        f"Wait for its end: {PROGRAM} graph-wait {row.id} --for {subtask}",
    ]
    return Result({**status_of(runtime, row.id), "dispatch": dict(told), "advice": advice})
