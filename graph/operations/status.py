"""graph-status: where every subtask stands, what needs a person first. Reads rows; builds no graph."""

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store import identity
from coordinate_agents.graph.store.identity import ProcessIdentity
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.view import status_of_rows, tell_stopped

if TYPE_CHECKING:
    from coordinate_agents.graph.store.rows import GraphRow
    from coordinate_agents.graph.store.store import Store

# States of Sessions that no driver watches.
_UNWATCHED: Final = frozenset({"idle", "running"})


class Request(NamedTuple):
    """`brief`: what changed after event `since`, waited for up to `wait` seconds."""

    graph: str | None = None
    brief: bool = False
    since: int | None = None
    wait: float | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_NOT_FOUND, INVALID_USAGE when several graphs could be meant."""
    row = pick_graph(runtime.store, request.graph)
    if request.brief or request.since is not None or request.wait is not None:
        from coordinate_agents.graph.operations.brief import brief

        return Result(brief(runtime, row.id, since=request.since, wait_s=request.wait or 0.0))
    return Result(status_of(runtime, row.id))


def status_of(runtime: Runtime, graph: str, *, store: "Store | None" = None) -> dict[str, Any]:
    """`data` of graph-status as it is recorded now; what every driving verb answers with. Raises: TASK_NOT_FOUND.

    `store`: one that was opened later than the runtime's own; a reading one stands still.
    """
    store = store or runtime.store
    # The lease first: a driver that ends between the two looks is then still named, and never a finished graph without
    # its last events.
    driver = holder(runtime.state_dir, graph)
    row = pick_graph(store, graph)
    behind = base_behind(runtime, row)
    data = status_of_rows(row, store.runs(graph), driver=driver, now=runtime.clock.now(), base_behind=behind)
    for subtask in data["subtasks"]:
        session = subtask["session"]
        if session is not None and session["state"] in _UNWATCHED and _has_ended(runtime, session["id"]):
            session["state"] = "exited"
    tell_stopped_hosts(runtime, data)
    return data


def tell_stopped_hosts(runtime: Runtime, data: dict[str, Any]) -> None:
    """Add to `data` of graph-status what no record says: which running subtask's host is stopped (SIGSTOP)."""
    for subtask in data["subtasks"]:
        if subtask["state"] == "RUNNING" and subtask["session"] is not None:
            host = _stopped_host(runtime, subtask["session"]["id"])
            if host is not None:
                tell_stopped(data, subtask, host)


def base_behind(runtime: Runtime, row: "GraphRow") -> int | None:
    """How many commits the base's branch has by now that the base lacks; None when the base was no branch.

    A branch that stands where it stood costs one small file; only one that moved is counted by git.
    """
    branch = json.loads(row.summary).get("base_branch") if row.summary else None
    if not branch:
        return None
    tip = runtime.tip_of(branch)
    if tip is None:
        return None
    if tip == row.base_commit:
        return 0
    from coordinate_agents.worktrees.errors import WorktreeError

    try:
        return runtime.worktrees.commits_beyond(row.base_commit, tip)
    except WorktreeError:  # a look answers what it can, whatever state the repository is in
        return None


def _has_ended(runtime: Runtime, session: str) -> bool:
    """Whether the Session wrote its last record since: it ended by itself, and nobody folds that in."""
    record = _record(runtime, session)
    return record is None or record.get("end") is not None


def _stopped_host(runtime: Runtime, session: str) -> int | None:
    """The process of the Session's host when that is stopped (SIGSTOP); None when it runs, or nothing is known."""
    record = _record(runtime, session) or {}
    host: Any = record.get("host")
    if record.get("end") is not None or not isinstance(host, dict) or not isinstance(host.get("pid"), int):
        return None
    who = ProcessIdentity(
        host["pid"], host.get("start_ticks", 0), host.get("boot_id", ""), host.get("pid_namespace", 0)
    )
    return who.pid if identity.life_of(who) == "stopped" else None


def _record(runtime: Runtime, session: str) -> dict[str, Any] | None:
    try:
        record = json.loads((runtime.state_dir / "sessions" / session / "record.json").read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
