"""The sum that ties the cache rows to the log: each event carries it, and its hash covers it.

One number per graph: the sum of the digests of its cached runs and of its summary. Changing one row changes the sum by
(new - old), so a transition costs the same in any graph; reading all rows adds them up again and compares. A row that
was changed without an event no longer adds up. Nothing here says what a row means.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from typing import Final

from coordinate_agents.graph.store.rows import RunRow

EMPTY: Final = "0" * 32
# The sum is one of 128 bits: it shows changes, and is no defence against somebody who computes all of it anew.
_MODULUS: Final = 1 << 128
# No subtask has this id.
_SUMMARY: Final = ""

_PUT_RUN: Final = (
    "INSERT INTO runs (graph_id, subtask_id, row) VALUES (?, ?, ?)"
    " ON CONFLICT (graph_id, subtask_id) DO UPDATE SET row = excluded.row"
)


def change(
    connection: sqlite3.Connection, graph_id: str, runs: Iterable[RunRow], *, summary: str | None,
    dropped: Iterable[str] = (),
) -> str | None:  # fmt: skip
    """Rewrite cache rows, inside the caller's transaction; the graph's new sum. None when there is no such graph.

    `summary` None keeps the cached one. The rows of `dropped` subtasks go.
    """
    found = connection.execute(
        "SELECT g.summary, e.cache FROM graphs g LEFT JOIN events e ON e.seq = g.last_seq WHERE g.id = ?", (graph_id,)
    ).fetchone()
    if found is None:
        return None
    total = int(found[1] or EMPTY, 16)
    for run in runs:
        old = connection.execute(
            "SELECT row FROM runs WHERE graph_id = ? AND subtask_id = ?", (graph_id, run.subtask_id)
        ).fetchone()
        if old is not None:
            total -= _weight(run.subtask_id, old[0])
        total += _weight(run.subtask_id, run.row)
        connection.execute(_PUT_RUN, (graph_id, run.subtask_id, run.row))
    for subtask_id in dropped:
        key = (graph_id, subtask_id)
        old = connection.execute("SELECT row FROM runs WHERE graph_id = ? AND subtask_id = ?", key).fetchone()
        if old is not None:
            total -= _weight(subtask_id, old[0])
            connection.execute("DELETE FROM runs WHERE graph_id = ? AND subtask_id = ?", key)
    if summary is not None:
        # Before its first event a graph has no sum, so nothing of it is in there to be taken out.
        if found[1] is not None:
            total -= _weight(_SUMMARY, found[0])
        total += _weight(_SUMMARY, summary)
        connection.execute("UPDATE graphs SET summary = ? WHERE id = ?", (summary, graph_id))
    return f"{total % _MODULUS:032x}"


def read(connection: sqlite3.Connection, graph_id: str) -> tuple[RunRow, ...] | None:
    """The cached runs in id order; None when they or the summary are not those that the last event recorded.

    The caller holds a snapshot. Empty for a graph that does not exist.
    """
    rows = tuple(
        RunRow(*row)
        for row in connection.execute(
            "SELECT subtask_id, row FROM runs WHERE graph_id = ? ORDER BY subtask_id", (graph_id,)
        )
    )
    found = connection.execute(
        "SELECT g.summary, e.cache FROM graphs g LEFT JOIN events e ON e.seq = g.last_seq WHERE g.id = ?", (graph_id,)
    ).fetchone()
    if found is None:
        return None if rows else ()
    total = sum((_weight(run.subtask_id, run.row) for run in rows), _weight(_SUMMARY, found[0]))
    return rows if f"{total % _MODULUS:032x}" == found[1] else None


def _weight(key: str, text: object) -> int:
    return int.from_bytes(hashlib.sha256(f"{key}\n{text}".encode()).digest()[:16], "big")
