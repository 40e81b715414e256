"""The hash that links every event to its predecessor, and the check that no event was changed, added or removed.

Proves that the log is as one writer after another left it; proves nothing against somebody who recomputes every
hash (there is no secret). The rows are read as the database has them, before any JSON is parsed.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from typing import Final

GENESIS: Final = "0" * 64
# Above this many events, opening checks only the newest ones (about 4 µs each); graph-verify checks all.
CHECKED_ON_OPEN: Final = 10_000

# seq, time, generation, graph_id, subtask_id, session_id, type, data, detail, cache, hash
Raw = tuple[int, float, int, str, str | None, str | None, str, str, str | None, str, str]

_COLUMNS: Final = "seq, time, generation, graph_id, subtask_id, session_id, type, data, detail, cache, hash"


def link(
    previous: str, seq: int, time: float, generation: int, graph_id: str, subtask_id: str | None,
    session_id: str | None, kind: str, data: str, detail: str | None, cache: str,
) -> str:  # fmt: skip
    """The hash of one event. All fields but the last are free of newlines (`has_break`): no two rows share a text."""
    text = (
        f"{previous}\n{seq}\n{time!r}\n{generation}\n{graph_id}\n{subtask_id or ''}\n{session_id or ''}\n{kind}\n"
        f"{detail or ''}\n{cache}\n{data}"
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def has_break(*fields: str | None) -> bool:
    """Whether a field could be taken for two, or an empty one for an absent one."""
    return any(field is not None and ("\n" in field or not field) for field in fields)


def damage(connection: sqlite3.Connection, *, newest: int | None) -> str | None:
    """None when the chain is intact; else what is wrong, in words. `newest` None checks every event."""
    tip = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
    anchors = connection.execute("SELECT coalesce(max(last_seq), 0) FROM graphs").fetchone()[0]
    if tip != anchors:
        return f"the log ends at event {tip}, its graphs at event {anchors}"
    after = 0 if newest is None else max(0, tip - newest)
    previous = GENESIS
    if after:
        row = connection.execute("SELECT hash FROM events WHERE seq = ?", (after,)).fetchone()
        if row is None:
            return f"event {after} is missing"
        previous = row[0]
    rows = connection.execute(f"SELECT {_COLUMNS} FROM events WHERE seq > ? ORDER BY seq", (after,))
    wrong = _walk(rows, after, previous)
    return wrong or _loose_ends(connection, full=newest is None)


def _walk(rows: Iterable[Raw], seq: int, previous: str) -> str | None:
    for row in rows:
        seq += 1
        if row[0] != seq:
            return f"event {seq} is missing"
        if has_break(row[3], row[4], row[5], row[6], row[8], row[9]) or link(previous, *row[:10]) != row[10]:
            return f"event {seq} was changed"
        previous = row[10]
    return None


def _loose_ends(connection: sqlite3.Connection, *, full: bool) -> str | None:
    """What the chain itself does not hold: each graph's last event and, when `full`, the details beside the log."""
    wrong = connection.execute(
        "SELECT g.id FROM graphs g WHERE g.last_seq <>"
        " coalesce((SELECT max(e.seq) FROM events e WHERE e.graph_id = g.id), 0)"
        " OR g.generation < (SELECT e.generation FROM events e WHERE e.seq = g.last_seq) LIMIT 1"
    ).fetchone()
    if wrong is not None:
        return f"the last event or the generation of graph {wrong[0]!r} is not the one that was recorded"
    if not full:
        return None
    for digest, text in connection.execute("SELECT digest, text FROM details"):
        if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != digest:
            return f"detail {digest[:12]} was changed"
    missing = connection.execute(
        "SELECT e.seq FROM events e LEFT JOIN details d ON d.digest = e.detail"
        " WHERE e.detail IS NOT NULL AND d.digest IS NULL LIMIT 1"
    ).fetchone()
    return None if missing is None else f"the detail of event {missing[0]} is missing"
