"""graph-status --brief: what changed in a graph after an event, in few bytes, for a client that asks again and again.

The cursor is the number of the graph's last event. Nothing changed: at most 1 KiB, whatever the size of the graph.
"""

import time
from typing import Any, Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.status import tell_stopped_hosts
from coordinate_agents.graph.operations.watching import Watch
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.store.store import Store
from coordinate_agents.graph.view import status_of_rows

# Clients over MCP are cut off at about a minute; every wait of ours is well below.
MAX_WAIT_S: Final = 25.0
MAX_SUBTASKS: Final = 50
MAX_ATTENTION: Final = 5
MAX_WORDS: Final = 200
MAX_PROCESS_LOOK_S: Final = 2.0


def brief(runtime: Runtime, graph: str, *, since: int | None, wait_s: float) -> dict[str, Any]:
    """`graph` with its state, `cursor`, `changed`; when something changed also attention, counts and those subtasks.

    `since` None: everything counts as changed. Raises: INVALID_USAGE when the wait is too long.
    """
    if wait_s > MAX_WAIT_S:
        raise GraphError(
            "INVALID_USAGE",
            f"--wait takes at most {MAX_WAIT_S:g}s.",
            kept="everything as it is",
            next=f"coordinate-agents graph-wait {graph}",
        )
    until = time.monotonic() + wait_s
    watch = Watch(runtime.state_dir)
    had_driver = holder(runtime.state_dir, graph) is not None
    while True:
        data = _look(runtime, graph, since)
        now = time.monotonic()
        # A driver that dies writes no event.
        has_lost_driver = had_driver and data["graph"]["driver"] is None
        if data["changed"] or has_lost_driver or now >= until:
            return data
        watch.wait(min(until, now + MAX_PROCESS_LOOK_S))


def _look(runtime: Runtime, graph: str, since: int | None) -> dict[str, Any]:
    # The lease first, as in graph-status.
    driver = holder(runtime.state_dir, graph)
    with Store.open_readonly(runtime.state_dir) as store:
        row = pick_graph(store, graph)
        changed = since is None or row.last_seq > since
        status = status_of_rows(row, store.runs(graph), driver=driver, now=runtime.clock.now())
        moved = None
        if changed and since is not None:
            moved = {event.subtask_id for event in store.events(graph, after=since)}
    if changed:
        tell_stopped_hosts(runtime, status)
    data: dict[str, Any] = {
        "graph": {"id": graph, "state": status["graph"]["state"], "driver": driver.pid if driver else None},
        "cursor": row.last_seq,
        "changed": changed,
    }
    if not changed:
        return data
    told = [each for each in status["subtasks"] if moved is None or each["id"] in moved]
    data["attention"] = [
        {"subtask": each["subtask"], "kind": each["kind"], "question": _cut(each["question"]), "next": each["next"]}
        for each in status["attention"][:MAX_ATTENTION]
    ]
    data["frontier"] = status["frontier"]
    data["subtasks"] = [
        {"id": each["id"], "state": each["state"], "phase": each["phase"], "reason": _cut(each["reason"])}
        for each in told[:MAX_SUBTASKS]
    ]
    data["left"] = max(0, len(told) - MAX_SUBTASKS)
    return data


def _cut(words: str | None) -> str | None:
    return words if words is None or len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"
