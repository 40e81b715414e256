"""graph-resume: make failed, stopped, interrupted or base-conflicted subtasks ready again; a redo also succeeded ones.

Records only, unless --run drives the graph afterwards. A Session that lives in the right worktree is adopted instead.
"""

from collections.abc import Mapping
from typing import Any, Literal

from coordinate_agents.graph.acts.resume import resume
from coordinate_agents.graph.engine import DriveOptions
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.asking import by_driver_or_alone
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph, exit_code_of
from coordinate_agents.graph.operations.loading import pick_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.words import given_words
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.values import value_class

# Resolving an agent and looking at Sessions and worktrees comes before the record.
_RESUME_WAIT_S = 15.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    redo: bool = False
    say: str | None = None
    from_: Literal["branch", "base"] | None = None
    agent: str | None = None
    run: bool = False
    accept_shared: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`resume`: what was reset, what was adopted, and why others were not. Raises: as `resume`; LEASE_HELD by --run."""
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    if subtask is None and (request.redo or request.agent):
        option = "--redo" if request.redo else "--agent"
        raise GraphError(
            "INVALID_USAGE",
            f"{option} is about one subtask: name it.",
            kept="everything as it is",
            next=f"coordinate-agents graph-status {row.id}",
        )
    asked = {
        "subtask": subtask,
        "redo": request.redo,
        "say": given_words(request.say) or "",
        "from": request.from_ or "branch",
        "agent": request.agent,
        "acceptShared": request.accept_shared,
    }

    told = by_driver_or_alone(runtime, row.id, "resume", asked, resume, verb="graph-resume", wait_s=_RESUME_WAIT_S)
    if request.run and holder(runtime.state_dir, row.id) is None:
        snapshot, ending = drive_graph(runtime, row.id, DriveRequest(DriveOptions()))
        data = {**status_of(runtime, row.id), "ending": ending, "resume": dict(told)}
        return Result(data, exit_code_of(snapshot, ending, integrate=False))
    data = status_of(runtime, row.id)
    advice = _words(row.id, told, is_driven=data["graph"]["driver"] is not None)
    return Result({**data, "resume": dict(told), "about": [*told["reset"], *told["adopted"]], "advice": advice})


def _words(graph: str, told: Mapping[str, Any], *, is_driven: bool) -> list[str]:
    lines = [f"{note[0].upper()}{note[1:]}." for note in told["notes"]]
    if told["accepted"]:
        lines.append("The shared git state is accepted as it is now.")
        if not (told["reset"] or told["adopted"]):
            lines.append(f"Next: coordinate-agents graph-run {graph} --integrate")
    if told["reset"]:
        lines.append(f"Ready again: {listed(told['reset'], first=8)}.")
    if told["adopted"]:
        lines.append(f"Goes on in its Session: {listed(told['adopted'], first=8)}.")
    if told["reset"] or told["adopted"]:
        goes_on = "The driver goes on with it." if is_driven else f"Next: coordinate-agents graph-run {graph}"
        lines.append(goes_on)
    return lines
