"""Requests beside the lease: what another process asks the driver of a graph to do, and the driver's answer.

The row is the request, the socket only a nudge: a request written while the driver dies is found by the next one or
withdrawn by its author, never both. Decides nothing about what a request means.
"""

import json
import time
from collections.abc import Mapping
from typing import Any, Final, Literal

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import lease, wake
from coordinate_agents.graph.store.rows import RequestRow, to_text
from coordinate_agents.graph.store.store import Store
from coordinate_agents.worktrees.values import value_class

ANSWER_TIMEOUT_S: Final = 5.0
# Feedback and prompts go this way; a document to amend does too.
MAX_REQUEST_BYTES: Final = 64 * 1024 * 1024
MAX_OPEN_REQUESTS: Final = 1000
# The author looks again after so long, doubling; the driver itself never polls.
_FIRST_PAUSE_S: Final = 0.002
_LAST_PAUSE_S: Final = 0.05
# The holder is asked for, and nudged again, about so often while the author waits.
_NUDGE_EVERY_S: Final = 0.25


@value_class
class RequestAnswer:
    """What came of a request. "pending": the driver lives but did not answer in time; it may still carry it out."""

    id: int
    outcome: Literal["accepted", "refused", "pending"]
    message: str
    data: Mapping[str, Any]


def submit(
    store: Store, graph_id: str, kind: str, data: Mapping[str, Any], *, who: str, timeout_s: float = ANSWER_TIMEOUT_S
) -> RequestAnswer | None:
    """Ask the driver and wait for its answer; None when nobody drives: the caller takes the lease itself.

    After None the request is withdrawn: no later driver carries it out. Blocks at most `timeout_s` and a little.
    Raises: TASK_NOT_FOUND, TASK_STATE_CONFLICT with too many open requests.
    """
    store.generation(graph_id)
    if lease.holder(store.place.folder, graph_id) is None:
        return None
    request_id = _insert(store, graph_id, kind, data, who=who)
    crash_point("request.submitted")
    return _await(store, graph_id, request_id, timeout_s)


def open_requests(store: Store, graph_id: str) -> tuple[RequestRow, ...]:
    """The requests of the graph that nobody answered yet, oldest first."""
    with store.statement() as connection:
        rows = connection.execute(
            "SELECT id, graph_id, kind, data, who, created_at FROM requests"
            " WHERE graph_id = ? AND outcome IS NULL ORDER BY id LIMIT ?",
            (graph_id, MAX_OPEN_REQUESTS),
        ).fetchall()
    return tuple(RequestRow(row[0], row[1], row[2], json.loads(row[3]), row[4], row[5]) for row in rows)


def _insert(store: Store, graph_id: str, kind: str, data: Mapping[str, Any], *, who: str) -> int:
    text = to_text(data)
    if len(text) > MAX_REQUEST_BYTES:
        raise GraphError("TASK_STATE_CONFLICT", f"The request has {len(text)} bytes; the limit is {MAX_REQUEST_BYTES}.")
    with store.transaction("durable") as connection:
        inserted = connection.execute(
            "INSERT INTO requests (graph_id, kind, data, who, created_at) SELECT ?, ?, ?, ?, ?"
            " WHERE (SELECT count(*) FROM requests WHERE graph_id = ? AND outcome IS NULL) < ?",
            (graph_id, kind, text, who, time.time(), graph_id, MAX_OPEN_REQUESTS),
        )
        if inserted.rowcount != 1:
            raise GraphError(
                "TASK_STATE_CONFLICT",
                f"Graph {graph_id} has {MAX_OPEN_REQUESTS} requests that its driver did not answer.",
                kept="those requests; this one was not recorded",
                next=f"coordinate-agents graph-status {graph_id}",
                stage="request",
            )
        return int(inserted.lastrowid or 0)


def _await(store: Store, graph_id: str, request_id: int, timeout_s: float) -> RequestAnswer | None:
    deadline = time.monotonic() + timeout_s
    pause_s, nudge_at = _FIRST_PAUSE_S, 0.0
    while True:
        now = time.monotonic()
        if now >= nudge_at:
            by = lease.holder(store.place.folder, graph_id)
            if by is None:
                return _withdraw(store, request_id)
            if by.socket is not None:
                wake.wake(by.socket)
            nudge_at = now + _NUDGE_EVERY_S
        answer = _read_answer(store, request_id)
        if answer is not None:
            return answer
        if now >= deadline:
            words = "The driver has not answered yet; the request stands and is carried out when it does."
            return RequestAnswer(request_id, "pending", words, {})
        time.sleep(min(pause_s, max(0.0, deadline - now)))
        pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def _withdraw(store: Store, request_id: int) -> RequestAnswer | None:
    """None when the request was still open, and is withdrawn now; else the answer that came before."""
    with store.transaction("durable") as connection:
        connection.execute(
            "UPDATE requests SET outcome = 'withdrawn', answered_at = ? WHERE id = ? AND outcome IS NULL",
            (time.time(), request_id),
        )
    return _read_answer(store, request_id)


def _read_answer(store: Store, request_id: int) -> RequestAnswer | None:
    with store.statement() as connection:
        row = connection.execute(
            "SELECT id, outcome, message, answer FROM requests WHERE id = ? AND outcome IN ('accepted', 'refused')",
            (request_id,),
        ).fetchone()
    return None if row is None else RequestAnswer(row[0], row[1], row[2] or "", json.loads(row[3] or "{}"))
