"""The tables, their version, and the numbered migrations; whether a database has exactly these tables.

A migration is a list of statements that runs in one transaction. Rule: the texts that SQLite keeps in sqlite_master
after all migrations are exactly TABLES (so never ALTER; make a new table and copy), which is what `check` compares.
"""

import sqlite3
from typing import Final

# "cags" in the database header, so that a foreign SQLite file is not taken for ours.
APPLICATION_ID: Final = 0x63616773
VERSION: Final = 1

# `events` is append-only and the truth. `runs` and graphs.summary are its cache, events.cache their sum (cache.py).
# `documents` is apart from `graphs` because SQLite rewrites a whole row, and a graph's row changes at every transition.
TABLES: Final[dict[str, str]] = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "graphs": (
        "CREATE TABLE graphs (id TEXT PRIMARY KEY, folded_id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,"
        " created_at REAL NOT NULL, generation INTEGER NOT NULL, last_seq INTEGER NOT NULL,"
        " record_seq INTEGER NOT NULL, summary TEXT NOT NULL) WITHOUT ROWID"
    ),
    "documents": (
        "CREATE TABLE documents (graph_id TEXT NOT NULL, revision INTEGER NOT NULL, title TEXT NOT NULL,"
        " base_commit TEXT NOT NULL, document TEXT NOT NULL, content_digest TEXT NOT NULL, config TEXT NOT NULL,"
        " PRIMARY KEY (graph_id, revision))"
    ),
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, time REAL NOT NULL, generation INTEGER NOT NULL,"
        " graph_id TEXT NOT NULL, subtask_id TEXT, session_id TEXT, type TEXT NOT NULL, data TEXT NOT NULL,"
        " detail TEXT, cache TEXT NOT NULL, hash TEXT NOT NULL)"
    ),
    "events_by_graph": "CREATE INDEX events_by_graph ON events (graph_id)",
    "details": "CREATE TABLE details (digest TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "runs": (
        "CREATE TABLE runs (graph_id TEXT NOT NULL, subtask_id TEXT NOT NULL, row TEXT NOT NULL,"
        " PRIMARY KEY (graph_id, subtask_id)) WITHOUT ROWID"
    ),
    "requests": (
        "CREATE TABLE requests (id INTEGER PRIMARY KEY, graph_id TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,"
        " who TEXT NOT NULL, created_at REAL NOT NULL, outcome TEXT, message TEXT, answer TEXT, answered_at REAL)"
    ),
    "requests_open": "CREATE INDEX requests_open ON requests (graph_id, id) WHERE outcome IS NULL",
}

# MIGRATIONS[n] leads from version n to version n + 1.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (tuple(TABLES.values()),)


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to VERSION in one transaction; nothing when it is there already."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for number in range(version_of(connection), VERSION):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors (full disk).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def difference(connection: sqlite3.Connection) -> str | None:
    """None when the database has exactly our tables and indices; else the first thing that is wrong, in words."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        return "it is another program's database"
    found: dict[str, str] = {}
    for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name"):
        if kind in ("trigger", "view"):
            return f"it has a {kind} named {name!r}"
        if text is not None:
            found[name] = text
    if found == TABLES:
        return None
    for name in sorted(set(TABLES) | set(found)):
        if name not in found:
            return f"{name!r} is missing"
        if name not in TABLES:
            return f"{name!r} was added"
        if found[name] != TABLES[name]:
            return f"{name!r} was changed"
    return None
