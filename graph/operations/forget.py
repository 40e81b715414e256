"""graph-forget: drop what the Sessions of an ended, cleaned graph printed, and leave it out of graph-list.

The event log is append-only and stays, with the certificates, so that graph-verify and graph-export go on working; and
so does the id, which is not given away again. Pins hold commits: they go only when that is asked for.
"""

from collections.abc import Sequence
from typing import Any

import anyio

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import GraphForgotten
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.opened import opened_prefix
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runs import Integration, TaskRun
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.store.lease import Lease
from coordinate_agents.sessions.model import SessionFacts, SessionId
from coordinate_agents.worktrees.model import INTEGRATION_SLUG
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    graph: str
    pins: bool = False
    dry_run: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """Twice is no error: the second one finishes the first. Raises: TASK_STATE_CONFLICT, LEASE_HELD."""
    graph = pick_graph(runtime.store, request.graph).id
    if request.dry_run:
        return Result(anyio.run(_forget, runtime, request, graph))
    lease = Lease.acquire(runtime.store, graph, purpose="graph-forget")
    try:
        _require_over(load_snapshot(runtime.store, graph)[1])
        _record(runtime, graph, lease.generation, request)
        crash_point("forget.recorded")
        return Result(anyio.run(_forget, runtime, request, graph))
    finally:
        lease.release()


def _record(runtime: Runtime, graph: str, generation: int, request: Request) -> None:
    if load_snapshot(runtime.store, graph)[1].summary.is_forgotten:
        return
    context = open_context(runtime, graph, generation, needs="records")
    Engine(context, DriveOptions()).apply(GraphForgotten(request.pins))


async def _forget(runtime: Runtime, request: Request, graph: str) -> dict[str, Any]:
    _, snapshot = load_snapshot(runtime.store, graph)
    if request.dry_run:
        _require_over(snapshot)
    sessions = _sessions_of(snapshot, await runtime.sessions.list())
    live = [facts for facts in sessions if facts.liveness not in ("ended", "absent")]
    if live:
        raise _lives(graph, live)
    freed = 0
    for facts in sessions:
        assert facts.record is not None
        freed += facts.output_bytes if request.dry_run else await runtime.sessions.forget(facts.record.id)
        crash_point("forget.session")
    is_counting = request.dry_run or not request.pins
    pins = await anyio.to_thread.run_sync(lambda: runtime.worktrees.drop_pins(graph, is_dry=is_counting))
    return {
        "graph": graph,
        "dryRun": request.dry_run,
        "sessions": len(sessions),
        "bytes": freed,
        "pins": {"count": pins.pins, "onlyHere": pins.only_here, "dropped": request.pins},
    }


def _require_over(snapshot: Snapshot) -> None:
    """Raise TASK_STATE_CONFLICT while a subtask runs or a worktree is there."""
    graph = snapshot.graph.id
    running = sorted(run.id for run in snapshot.runs.values() if run.state == "running")
    if running:
        raise _not_over(graph, f"{', '.join(running[:3])} runs", f"coordinate-agents graph-stop {graph}")
    runs, integration = snapshot.runs.values(), snapshot.summary.integration
    there = sorted(run.id for run in runs if _has_worktree(run) or run.conflict_worktree)
    if _has_worktree(integration):
        there.append(SubtaskId(INTEGRATION_SLUG))
    if there:
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        said = f"the worktree of {', '.join(there[:3])}{more} is there"
        raise _not_over(graph, said, f"coordinate-agents graph-cleanup {graph} --all")


def _has_worktree(owner: TaskRun | Integration) -> bool:
    """Also while it is being removed, or where a graph-undo was cut short."""
    return bool(owner.worktree or owner.removing or (owner.removal and owner.removal.nonce))


def _sessions_of(snapshot: Snapshot, sessions: Sequence[SessionFacts]) -> list[SessionFacts]:
    """The graph's Sessions: agents, terminals, and its own commands, all named after a subtask."""
    owners = [*snapshot.runs, SubtaskId(INTEGRATION_SLUG)]
    stems = {opened_prefix(snapshot.graph.id, owner).removesuffix("open-") for owner in owners}
    return [facts for facts in sessions if facts.record is not None and _is_of(facts.record.id, stems)]


def _is_of(session: SessionId, stems: set[str]) -> bool:
    """Whether the id is a stem, which ends in a dot, and then an attempt's number or a terminal's word."""
    for position, letter in enumerate(session):
        rest = session[position + 1 :]
        is_named = rest.startswith("open-") or (rest[:1] == "a" and rest[1:2].isdigit())
        if letter == "." and is_named and session[: position + 1] in stems:
            return True
    return False


def _not_over(graph: str, why: str, following: str) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Graph {graph} cannot be forgotten: {why}.",
        kept="everything",
        next=following,
        stage="forget",
        facts={"taskId": graph},
    )


def _lives(graph: str, live: Sequence[SessionFacts]) -> GraphError:
    record = live[0].record
    assert record is not None
    return GraphError(
        "SESSION_STATE_CONFLICT",
        f"Graph {graph} cannot be forgotten: {len(live)} of its Sessions did not end, such as {record.id}.",
        kept="everything that the Sessions printed",
        next=f"coordinate-agents session-close {record.id}",
        stage="forget",
        facts={"taskId": graph, "sessionId": record.id},
    )
