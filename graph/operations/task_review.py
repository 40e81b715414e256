"""task-review: look at a Task's verified work, approve exactly that commit, or ask its agent for changes.

A decision is recorded and nothing else: no Session is closed, started or written to. Changes wait for the next
task-dispatch.
"""

from collections.abc import Mapping
from typing import Any, Literal

from coordinate_agents.graph.operations import review
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import PROGRAM, pick_task, task_data
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    task: str | None = None
    decision: Literal["REVIEW_APPROVED", "CHANGES_REQUESTED"] | None = None
    commit: str | None = None
    feedback: str | None = None
    feedback_file: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`material` and `decided`, as of graph-review. Raises: as graph-review of the one subtask."""
    row, subtask = pick_task(runtime.store, request.task, instead="graph-review")
    asked = review.Request(
        row.id,
        subtask,
        decision=request.decision,
        commit=request.commit,
        feedback=request.feedback,
        feedback_file=request.feedback_file,
    )
    found = review.execute(runtime, asked).data
    data = task_data(runtime, row.id)
    told = {"material": found["material"], "decided": found["decided"]}
    return Result({**data, **told, "advice": _advice(data["task"], found["decided"])})


def _advice(task: Mapping[str, Any], decided: Mapping[str, Any]) -> list[str]:
    name, commit = task["id"], str(decided["commit"])[:12]
    match decided["decision"]:
        case "REVIEW_APPROVED":
            was = "Approved" if decided["recorded"] else "Approved before"
            return [f"{was}: commit {commit}, on branch {task['branch']}; nothing was merged.", f"Next: {task['next']}"]
        case "CHANGES_REQUESTED":
            return ["Changes are requested; nothing was sent yet.", f"Next: {task['next']}"]
        case _:
            return [
                f"Look: {PROGRAM} task-inspect {name} --part diff",
                f"Approve: {PROGRAM} task-review {name} --commit {commit} --decision REVIEW_APPROVED",
                f"Ask for changes: {PROGRAM} task-review {name} --decision CHANGES_REQUESTED --feedback TEXT",
            ]
