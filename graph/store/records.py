"""The SQL of graphs, documents, events and cache rows: one function per statement or per few that belong together.

Runs inside the caller's transaction; begins and ends none. What is read is compared with what the log says of it.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import chain, failures
from coordinate_agents.graph.store.place import StatePlace
from coordinate_agents.graph.store.rows import (
    MAX_DETAIL_BYTES,
    MAX_EVENT_BYTES,
    EventRow,
    GraphRow,
    NewDocument,
    NewEvent,
    RequestResult,
    to_text,
)

# The key under which a recording event names its document; see NewDocument.digest.
RECORD_DIGEST: Final = "recordDigest"

_GRAPHS: Final = (
    "SELECT g.id, d.title, g.revision, d.base_commit, d.document, d.content_digest, d.config, g.created_at,"
    " g.generation, g.last_seq, g.summary, e.data, e.graph_id"
    " FROM graphs g LEFT JOIN documents d ON d.graph_id = g.id AND d.revision = g.revision"
    " LEFT JOIN events e ON e.seq = g.record_seq"
)
_EVENTS: Final = (
    "SELECT e.seq, e.time, e.generation, e.graph_id, e.subtask_id, e.session_id, e.type, e.data, e.detail, d.text,"
    " e.hash FROM events e LEFT JOIN details d ON d.digest = e.detail WHERE e.seq > ?"
)
# The generation is checked by the statement that inserts: no row, nothing inserted.
_INSERT_EVENT: Final = (
    "INSERT INTO events (seq, time, generation, graph_id, subtask_id, session_id, type, data, detail, cache, hash)"
    " SELECT ?, ?, ?, id, ?, ?, ?, ?, ?, ?, ? FROM graphs WHERE id = ? AND generation = ?"
)


def read_graphs(where: StatePlace, connection: sqlite3.Connection, *, graph_id: str | None) -> tuple[GraphRow, ...]:
    """One graph or all, in the order of creation. Raises: STATE_TAMPERED when a document is not the recorded one."""
    if graph_id is None:
        rows = connection.execute(_GRAPHS + " ORDER BY g.created_at, g.id").fetchall()
    else:
        rows = connection.execute(_GRAPHS + " WHERE g.id = ?", (graph_id,)).fetchall()
    return tuple(_graph(where, row) for row in rows)


def read_events(
    where: StatePlace, connection: sqlite3.Connection, graph_id: str | None, subtask: str | None,
    *, after: int, limit: int,
) -> list[EventRow]:  # fmt: skip
    """At most `limit` events with seq > `after`, oldest first."""
    query = _EVENTS
    arguments: list[object] = [after]
    if graph_id is not None:
        query += " AND e.graph_id = ?"
        arguments.append(graph_id)
    if subtask is not None:
        query += " AND e.subtask_id = ?"
        arguments.append(subtask)
    rows = connection.execute(query + " ORDER BY e.seq LIMIT ?", (*arguments, limit)).fetchall()
    return [_event(where, row) for row in rows]


def insert_event(
    connection: sqlite3.Connection, graph_id: str, generation: int, event: NewEvent,
    *, seq: int, previous: str, cache: str, now: float,
) -> EventRow | None:  # fmt: skip
    """Insert one event as `seq`; None when the generation is not the current one (or there is no such graph)."""
    data = to_text(event.data)
    detail = None
    if len(data) > MAX_EVENT_BYTES:
        data, detail = "", _put_detail(connection, event.type, data)
    if chain.has_break(graph_id, event.subtask_id, event.session_id, event.type):
        raise ValueError(f"an id or type of event {event.type!r} is empty or has a line break")
    fields = (seq, now, generation, graph_id, event.subtask_id, event.session_id, event.type, data, detail, cache)
    new_hash = chain.link(previous, *fields)
    inserted = connection.execute(
        _INSERT_EVENT,
        (
            seq,
            now,
            generation,
            event.subtask_id,
            event.session_id,
            event.type,
            data,
            detail,
            cache,
            new_hash,
            graph_id,
            generation,
        ),
    )
    if inserted.rowcount != 1:
        return None
    return EventRow(
        seq, now, generation, graph_id, event.subtask_id, event.session_id, event.type, event.data, new_hash
    )


def insert_graph(
    connection: sqlite3.Connection, graph_id: str, document: NewDocument, *, summary: str, now: float
) -> None:
    """A graph at generation 0 with its first document; `set_last` and `set_record` complete it."""
    connection.execute(
        "INSERT INTO graphs (id, folded_id, revision, created_at, generation, last_seq, record_seq, summary)"
        " VALUES (?, ?, 1, ?, 0, 0, 0, ?)",
        (graph_id, graph_id.lower(), now, summary),
    )
    insert_document(connection, graph_id, document, 1)


def insert_document(connection: sqlite3.Connection, graph_id: str, document: NewDocument, revision: int) -> None:
    connection.execute(
        "INSERT INTO documents (graph_id, revision, title, base_commit, document, content_digest, config)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (graph_id, revision, document.title, document.base_commit, document.document, document.content_digest,
         document.config),
    )  # fmt: skip


def set_record(connection: sqlite3.Connection, graph_id: str, revision: int, seq: int) -> None:
    """Make `revision` current, recorded by event `seq`, which is also the graph's last event."""
    connection.execute(
        "UPDATE graphs SET revision = ?, record_seq = ?, last_seq = ? WHERE id = ?", (revision, seq, seq, graph_id)
    )


def set_last(connection: sqlite3.Connection, graph_id: str, seq: int) -> None:
    """Name the graph's last event."""
    connection.execute("UPDATE graphs SET last_seq = ? WHERE id = ?", (seq, graph_id))


def put_results(connection: sqlite3.Connection, results: Iterable[RequestResult], now: float) -> None:
    """Answer requests; one that was answered or withdrawn meanwhile stays so. Large data goes."""
    for result in results:
        connection.execute(
            "UPDATE requests SET outcome = ?, message = ?, answer = ?, answered_at = ?,"
            " data = CASE WHEN length(data) > ? THEN '{}' ELSE data END WHERE id = ? AND outcome IS NULL",
            (result.outcome, result.message, to_text(result.answer), now, MAX_EVENT_BYTES, result.id),
        )


def with_digest(event: NewEvent, document: NewDocument, revision: int) -> NewEvent:
    """The event, with the digest of the document that it records."""
    return event._replace(data={**event.data, RECORD_DIGEST: document.digest(revision)}, durable=True)


def not_found(graph_id: str) -> GraphError:
    return GraphError(
        "TASK_NOT_FOUND",
        f"There is no graph {graph_id!r} in this repository.",
        kept="everything as it is",
        next="coordinate-agents graph-list",
        stage="store",
        facts={"taskId": graph_id},
    )


def id_taken(graph_id: str, taken: str) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"The id {graph_id!r} is taken by graph {taken!r} (ids are compared without regard to case).",
        kept="the graph that has the id, unchanged",
        next="coordinate-agents graph-create FILE --as ANOTHER_ID",
        stage="store",
        facts={"taskId": taken},
    )


def revision_moved(graph_id: str, current: int, wanted: int) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Graph {graph_id} is at revision {current}; revision {wanted} does not follow it.",
        kept=f"revision {current}",
        next=f"coordinate-agents graph-inspect {graph_id}",
        stage="store",
        facts={"taskId": graph_id, "revision": current},
    )


def _put_detail(connection: sqlite3.Connection, kind: str, text: str) -> str:
    if len(text) > MAX_DETAIL_BYTES:
        raise ValueError(f"event {kind!r} has {len(text)} bytes; the limit is {MAX_DETAIL_BYTES}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    connection.execute("INSERT OR IGNORE INTO details (digest, text) VALUES (?, ?)", (digest, text))
    return digest


def _graph(where: StatePlace, row: tuple[Any, ...]) -> GraphRow:
    *columns, data, recorded_for = row
    graph = GraphRow(*columns)
    if recorded_for != graph.id or graph.document is None:
        raise failures.tampered(where.database, f"the document or the first event of graph {graph.id!r} is missing")
    document = NewDocument(graph.title, graph.base_commit, graph.document, graph.content_digest, graph.config)
    if _parse(where, data, "a recording event").get(RECORD_DIGEST) != document.digest(graph.revision):
        raise failures.tampered(where.database, f"the document of graph {graph.id!r} is not the one that was recorded")
    return graph


def _event(where: StatePlace, row: tuple[Any, ...]) -> EventRow:
    seq, time, generation, graph_id, subtask_id, session_id, kind, data, detail, text, new_hash = row
    if detail is not None and (text is None or hashlib.sha256(text.encode()).hexdigest() != detail):
        raise failures.tampered(where.database, f"the detail of event {seq} is missing or was changed")
    parsed = _parse(where, data if detail is None else text, f"event {seq}")
    return EventRow(seq, time, generation, graph_id, subtask_id, session_id, kind, parsed, new_hash)


def _parse(where: StatePlace, text: str, what: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, TypeError) as error:
        raise failures.tampered(where.database, f"{what} is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise failures.tampered(where.database, f"{what} is no JSON object")
    return value
