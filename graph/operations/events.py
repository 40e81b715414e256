"""graph-events: the event log as it was written; with `follow` it goes on until the reader leaves."""

import time
from collections.abc import Iterator
from typing import Any, Final

from coordinate_agents.graph.operations.loading import pick_subtask
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.watching import Watch
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.rows import EventRow
from coordinate_agents.graph.store.store import Store
from coordinate_agents.graph.view import iso
from coordinate_agents.worktrees.values import value_class

DEFAULT_LIMIT: Final = 1000


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    after: int | None = None
    limit: int | None = None
    follow: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """Without `after` the last `limit` events; with it the first `limit` after that number. Oldest first."""
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    limit = DEFAULT_LIMIT if request.limit is None else request.limit
    found = _events(runtime.store, row.id, subtask, request.after, limit)
    if request.follow:
        return Result({}, stream=_follow(runtime, row.id, subtask, found))
    cursor = found[-1]["seq"] if found else request.after or 0
    return Result({"graph": row.id, "subtask": subtask, "events": found, "cursor": cursor})


def event_json(event: EventRow) -> dict[str, Any]:
    """One event in the shape of contract section 13."""
    return {
        "seq": event.seq,
        "time": iso(event.time),
        "type": event.type,
        "taskId": event.task_id,
        "subtaskId": event.subtask_id,
        "sessionId": event.session_id,
        "generation": event.generation,
        "data": dict(event.data),
    }


def _events(store: Store, graph: str, subtask: str | None, after: int | None, limit: int) -> list[dict[str, Any]]:
    if after is not None:
        return [event_json(event) for event in store.events(graph, after=after, limit=limit, subtask=subtask)]
    if limit == 0:
        return []
    last: list[dict[str, Any]] = []
    for event in store.events(graph, subtask=subtask):
        last.append(event_json(event))
        if len(last) >= 2 * limit:  # bounded, and cut seldom
            del last[:-limit]
    return last[-limit:]


def _follow(runtime: Runtime, graph: str, subtask: str | None, found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from found
    cursor = found[-1]["seq"] if found else 0
    watch = Watch(runtime.state_dir)
    while True:
        with Store.open_readonly(runtime.state_dir) as store:
            for event in store.events(graph, after=cursor, subtask=subtask):
                cursor = event.seq
                yield event_json(event)
        watch.wait(time.monotonic() + 60.0)
