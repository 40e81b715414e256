"""graph-wait: block until a graph ends, needs a person, or one subtask ended. Starts nothing.

While nobody drives the graph, agents that live are waited for, and what they leave is verified: a driver that died is
noticed by its lease. When nothing lives and nothing would ever change, that is said.
"""

import time
from typing import Any, Final

from coordinate_agents.graph.errors import EXIT_DONE, EXIT_NEEDS_PERSON, EXIT_NOT_SUCCEEDED, GraphError
from coordinate_agents.graph.operations.loading import pick_graph, require_subtask
from coordinate_agents.graph.operations.status import tell_stopped_hosts
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.undriven import UNDRIVEN_S, Undriven
from coordinate_agents.graph.operations.watching import Watch
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.store.store import Store
from coordinate_agents.graph.view import status_of_rows
from coordinate_agents.worktrees.values import value_class

# A driver's death changes no file: the lease is asked this often.
_LEASE_LOOK_S: Final = 1.0
_ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "BLOCKED"})
_GOOD_ENDS: Final = frozenset({"SUCCEEDED", "INTEGRATED", "APPROVED"})


@value_class
class Request:
    """`for_`: end, attention, or a subtask id. `timeout`: seconds; None waits without a limit."""

    graph: str | None = None
    for_: str = "end"
    timeout: float | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: WAIT_TIMED_OUT; TASK_STATE_CONFLICT when nobody drives the graph and what is waited for cannot come."""
    row = pick_graph(runtime.store, request.graph)
    if request.for_ not in ("end", "attention"):
        require_subtask(row, request.for_)
    until = None if request.timeout is None else time.monotonic() + request.timeout
    watch = Watch(runtime.state_dir)
    status = _status(runtime, row.id)
    driven_at = time.monotonic()
    undriven = Undriven(runtime, row.id)
    while True:
        exit_code = _reached(status, request.for_)
        if exit_code is not None:
            return Result(status, exit_code)
        now = time.monotonic()
        if status["graph"]["driver"] is not None:
            driven_at = now
        elif now - driven_at >= UNDRIVEN_S and not undriven.may_change():
            raise _nobody_drives(row.id, request.for_, status)
        if until is not None and now >= until:
            raise _timed_out(row.id, request)
        watch.wait(now + _LEASE_LOOK_S if until is None else min(until, now + _LEASE_LOOK_S))
        status = _status(runtime, row.id)


def _status(runtime: Runtime, graph: str) -> dict[str, Any]:
    # The lease first: a driver that ends between the two looks is then still named, and the next look tells.
    driver = holder(runtime.state_dir, graph)
    with Store.open_readonly(runtime.state_dir) as store:
        row = pick_graph(store, graph)
        status = status_of_rows(row, store.runs(graph), driver=driver, now=runtime.clock.now())
    tell_stopped_hosts(runtime, status)
    return status


def _reached(status: dict[str, Any], what: str) -> int | None:
    """The exit code when what is waited for is there; None while it is not."""
    if what not in ("end", "attention"):
        found = next((each for each in status["subtasks"] if each["id"] == what), None)
        if found is None:
            raise _dropped(status["graph"]["id"], what)
        if found["state"] not in _ENDED:
            return None
        own = {item["kind"] for item in status["attention"] if item["subtask"] == what}
        if found["state"] != "SUCCEEDED" and own - {"failed"}:
            return EXIT_NEEDS_PERSON
        return EXIT_DONE if found["state"] == "SUCCEEDED" else EXIT_NOT_SUCCEEDED
    if what == "attention" and status["attention"]:
        return EXIT_NEEDS_PERSON
    state = status["graph"]["state"]
    if state in ("RUNNING", "CREATED"):
        return None
    if state in _GOOD_ENDS:
        return EXIT_DONE
    asks = {item["kind"] for item in status["attention"]} - {"failed"}
    return EXIT_NEEDS_PERSON if asks else EXIT_NOT_SUCCEEDED


def _dropped(graph: str, subtask: str) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Subtask {subtask} was dropped from graph {graph} by an amendment, so waiting for it would never end.",
        kept="everything as it is",
        next=f"coordinate-agents graph-status {graph}",
        facts={"taskId": graph, "subtaskId": subtask},
    )


def _nobody_drives(graph: str, what: str, status: dict[str, Any]) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Nobody drives graph {graph} ({status['graph']['state']}), so waiting for {what} would never end.",
        kept="everything as it is; agents that still run go on",
        next=f"coordinate-agents graph-run {graph}",
        facts={"taskId": graph},
    )


def _timed_out(graph: str, request: Request) -> GraphError:
    return GraphError(
        "WAIT_TIMED_OUT",
        f"Graph {graph}: {request.for_} did not come within {request.timeout:g} s.",
        kept="everything as it is; the graph goes on",
        next=f"coordinate-agents graph-status {graph}",
        facts={"taskId": graph},
    )
