"""The store of one repository: appends events with their cache rows in one transaction, and reads both.

Decides nothing about graphs; never waits for a process inside a transaction. The newcomer's rule: a holder of an old
generation can call everything here and change nothing, because the statement that inserts checks the generation.
"""

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NoReturn, Self

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import cache, chain, connect, failures, locks, records
from coordinate_agents.graph.store.place import StatePlace
from coordinate_agents.graph.store.rows import EventRow, GraphRow, NewDocument, NewEvent, RequestResult, RunRow

# A reader checks only the end of the chain, so that looking costs the same in an old repository.
_CHECKED_BY_READERS: Final = 64
# Appends between two attempts to move the write-ahead log into the main file (about 8 MiB of log, two fsyncs).
_CHECKPOINT_EVERY: Final = 512
_PAGE_OF_EVENTS: Final = 1000


class Store:
    """One connection to the state database. Not for more than one thread."""

    def __init__(self, where: StatePlace, connection: sqlite3.Connection, reading: connect.Reading | None) -> None:
        self.place = where
        self._database = where.database
        self._connection = connection
        self._reading = reading
        self._committing: Literal["durable", "progress"] = "progress"
        self._schema_version = self._pragma("schema_version")
        self._appends = 0
        # Runs once: at `close`, or when a store that nobody closed is collected or its process exits.
        self._closing = weakref.finalize(self, _close, where, connection, reading, os.getpid())

    @classmethod
    def open(cls, state_dir: Path, *, remains: connect.Remains = tuple) -> "Store":
        """Open for writing, checked; made when there never was a database.

        `remains` is asked only before making one: what the caller knows of an earlier run (worktrees, refs). Anything
        there means that the database was lost. Raises: STATE_TAMPERED, REPOSITORY_UNSUPPORTED, DISK_FULL,
        WAIT_TIMED_OUT.
        """
        where = StatePlace(state_dir)
        connection = connect.open_writable(where, remains)
        store = cls(where, connection, None)
        try:
            store.verify_chain_end(chain.CHECKED_ON_OPEN)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_readonly(cls, state_dir: Path) -> "Store":
        """Open without changing a byte in the folder; empty when there never was a database. Close it soon.

        Raises: as `open`, but never for a folder that cannot be written.
        """
        store = cls.open_unchecked(state_dir)
        try:
            with store._explained():
                connect.check_shape(store.place, store._connection)
            store.verify_chain_end(_CHECKED_BY_READERS)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_unchecked(cls, state_dir: Path) -> "Store":
        """As `open_readonly`, for looking at a STATE_TAMPERED state: what can be read is shown, nothing is proved."""
        where = StatePlace(state_dir)
        reading = connect.open_for_reading(where) or connect.nothing_to_read()
        return cls(where, reading.connection, reading)

    # Reading

    def graphs(self) -> tuple[GraphRow, ...]:
        """Every graph, in the order of creation."""
        with self._explained():
            return records.read_graphs(self.place, self._connection, graph_id=None)

    def graph(self, graph_id: str) -> GraphRow | None:
        """The graph; None when there is none. Raises: STATE_TAMPERED when its document is not the recorded one."""
        with self._explained():
            found = records.read_graphs(self.place, self._connection, graph_id=graph_id)
        return found[0] if found else None

    def runs(self, graph_id: str) -> tuple[RunRow, ...]:
        """The cache rows of a graph, in id order. Raises: STATE_TAMPERED when they are not those of the log."""
        with self.snapshot(), self._explained():
            rows = cache.read(self._connection, graph_id)
        if rows is None:
            raise failures.tampered(
                self.place.database, f"the cached state of graph {graph_id!r} is not the one that was recorded"
            )
        return rows

    def events(
        self, graph_id: str | None = None, *, after: int = 0, limit: int | None = None, subtask: str | None = None
    ) -> Iterator[EventRow]:
        """Events with seq > `after`, oldest first, read in pages: no transaction stays open between two."""
        left = limit
        while left is None or left > 0:
            count = _PAGE_OF_EVENTS if left is None else min(left, _PAGE_OF_EVENTS)
            with self._explained():
                page = records.read_events(self.place, self._connection, graph_id, subtask, after=after, limit=count)
            yield from page
            if len(page) < count:
                return
            after = page[-1].seq
            left = None if left is None else left - count

    def last_event_hash(self) -> str:
        """The hash that the next event will cover; zeroes in an empty log."""
        with self._explained():
            return self._tip()[1]

    def generation(self, graph_id: str) -> int:
        """The current generation. Raises: TASK_NOT_FOUND."""
        with self._explained():
            row = self._connection.execute("SELECT generation FROM graphs WHERE id = ?", (graph_id,)).fetchone()
        if row is None:
            raise records.not_found(graph_id)
        return int(row[0])

    def check_generation(self, graph_id: str, generation: int) -> None:
        """Raise STALE_CLAIM unless `generation` still holds the graph: asked just before an act outside."""
        if self.generation(graph_id) != generation:
            self._refuse(graph_id, generation)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside the block is of one moment. Keep it short: no checkpoint passes it."""
        if self._connection.in_transaction:
            yield
            return
        with self._explained():
            self._connection.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def verify_chain(self, *, full: bool) -> None:
        """Raise STATE_TAMPERED unless the log is as it was written. `full`: every event, detail and page."""
        if not full:
            self.verify_chain_end(chain.CHECKED_ON_OPEN)
            return
        with self.snapshot(), self._explained():
            check = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            wrong = chain.damage(self._connection, newest=None) if check == "ok" else str(check)
            if wrong is not None:
                raise failures.tampered(self.place.database, wrong)
            for graph in self.graphs():
                self.runs(graph.id)

    def verify_chain_end(self, newest: int) -> None:
        """Raise STATE_TAMPERED unless the newest events are as they were written."""
        with self.snapshot(), self._explained():
            wrong = chain.damage(self._connection, newest=newest)
        if wrong is not None:
            raise failures.tampered(self.place.database, wrong)

    # Writing

    def create_graph(
        self, graph_id: str, document: NewDocument, *, first_event: NewEvent, runs: Iterable[RunRow], summary: str,
        now: float,
    ) -> GraphRow:  # fmt: skip
        """Record a graph at revision 1 and generation 0, in one durable transaction.

        The stored event carries `recordDigest` besides its own data. Raises: TASK_STATE_CONFLICT when the id is taken,
        also by one that differs only in case.
        """
        with self.transaction("durable"):
            taken = self._connection.execute(
                "SELECT id FROM graphs WHERE folded_id = ?", (graph_id.lower(),)
            ).fetchone()
            if taken is not None:
                raise records.id_taken(graph_id, taken[0])
            records.insert_graph(self._connection, graph_id, document, summary=summary, now=now)
            crash_point("store.graph.inserted")
            cached = self._cache(graph_id, runs, summary)
            event = self._insert(graph_id, 0, records.with_digest(first_event, document, 1), cached, now)
            records.set_record(self._connection, graph_id, 1, event.seq)
        crash_point("store.graph.committed")
        return GraphRow(
            graph_id, document.title, 1, document.base_commit, document.document, document.content_digest,
            document.config, now, 0, event.seq, summary,
        )  # fmt: skip

    def update_document(
        self, graph_id: str, generation: int, document: NewDocument, *, revision: int, event: NewEvent,
        runs: Iterable[RunRow] = (), dropped: Iterable[str] = (), summary: str | None = None,
        results: Iterable[RequestResult] = (), now: float,
    ) -> EventRow:  # fmt: skip
        """Record a new revision, in one durable transaction; `revision` must be the current one plus 1.

        The cache rows of `dropped` subtasks go; the requests are answered.

        Raises: STALE_CLAIM; TASK_STATE_CONFLICT when another revision came first.
        """
        with self.transaction("durable"):
            cached = self._cache(graph_id, runs, summary, dropped)
            crash_point("store.document.cached")
            stored = self._insert(graph_id, generation, records.with_digest(event, document, revision), cached, now)
            current = self._connection.execute("SELECT revision FROM graphs WHERE id = ?", (graph_id,)).fetchone()[0]
            if current + 1 != revision:
                raise records.revision_moved(graph_id, current, revision)
            records.insert_document(self._connection, graph_id, document, revision)
            records.set_record(self._connection, graph_id, revision, stored.seq)
            records.put_results(self._connection, results, now)
            crash_point("store.document.inserted")
        crash_point("store.document.committed")
        return stored

    def append(
        self, graph_id: str, generation: int, events: Sequence[NewEvent], *, runs: Iterable[RunRow] = (),
        summary: str | None = None, results: Iterable[RequestResult] = (), now: float,
    ) -> tuple[EventRow, ...]:  # fmt: skip
        """Append the events, rewrite the cache rows and answer the requests, in one transaction.

        Durable when one of the events is. Raises: STALE_CLAIM, TASK_NOT_FOUND, DISK_FULL, WAIT_TIMED_OUT; then nothing
        was changed.
        """
        assert events, "cache rows change only with an event"
        with self.transaction("durable" if any(event.durable for event in events) else "progress"):
            crash_point("store.append.begun")
            cached = self._cache(graph_id, runs, summary)
            crash_point("store.append.cached")
            stored = tuple(self._insert(graph_id, generation, event, cached, now) for event in events)
            crash_point("store.append.inserted")
            records.set_last(self._connection, graph_id, stored[-1].seq)
            records.put_results(self._connection, results, now)
            crash_point("store.append.finished")
        crash_point("store.append.committed")
        self._appends += 1
        if self._appends % _CHECKPOINT_EVERY == 0:
            self.checkpoint()
        return stored

    def answer(self, graph_id: str, generation: int, result: RequestResult, *, now: float) -> None:
        """Answer a request that caused no event. Raises: STALE_CLAIM."""
        with self.transaction("durable"):
            self.check_generation(graph_id, generation)
            records.put_results(self._connection, [result], now)

    def next_generation(self, graph_id: str) -> int:
        """Raise the generation by one, durably, and return it: every older holder is stale. For the lease holder."""
        with self.transaction("durable"):
            self._connection.execute("UPDATE graphs SET generation = generation + 1 WHERE id = ?", (graph_id,))
            return self.generation(graph_id)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the main file; does nothing when somebody reads or does the same."""
        with self._explained():
            held = locks.try_lock(self.place.lock, mode="exclusive")
            if held is None:
                return
            try:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                held.release()

    def close(self) -> None:
        """Close. Twice is no error. Never waits."""
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # For the other modules of this package

    @contextlib.contextmanager
    def statement(self) -> Iterator[sqlite3.Connection]:
        """The connection for one statement that reads, with its errors explained."""
        with self._explained():
            yield self._connection

    @contextlib.contextmanager
    def transaction(self, kind: Literal["durable", "progress"]) -> Iterator[sqlite3.Connection]:
        """The connection inside one writing transaction: all or nothing. "durable": on disk when the block ends."""
        with self._explained():
            if kind != self._committing:
                self._connection.execute(f"PRAGMA synchronous={'FULL' if kind == 'durable' else 'NORMAL'}")
                self._committing = kind
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if self._pragma("schema_version") != self._schema_version:
                    connect.check_shape(self.place, self._connection)
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back by itself after some errors (full disk).
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _cache(self, graph_id: str, runs: Iterable[RunRow], summary: str | None, dropped: Iterable[str] = ()) -> str:
        total = cache.change(self._connection, graph_id, runs, summary=summary, dropped=dropped)
        if total is None:
            raise records.not_found(graph_id)
        return total

    def _insert(self, graph_id: str, generation: int, event: NewEvent, cached: str, now: float) -> EventRow:
        seq, previous = self._tip()
        stored = records.insert_event(
            self._connection, graph_id, generation, event, seq=seq + 1, previous=previous, cache=cached, now=now
        )
        if stored is None:
            self._refuse(graph_id, generation)
        return stored

    def _tip(self) -> tuple[int, str]:
        row = self._connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
        return (0, chain.GENESIS) if row is None else (row[0], row[1])

    def _refuse(self, graph_id: str, generation: int) -> NoReturn:
        current = self.generation(graph_id)
        raise GraphError(
            "STALE_CLAIM",
            f"Graph {graph_id} is driven under generation {current} now; this caller holds generation {generation}.",
            kept="everything that was recorded; this caller changed nothing",
            next=f"coordinate-agents graph-status {graph_id}",
            stage="store",
            facts={"taskId": graph_id, "generation": current},
        )

    def _explained(self) -> contextlib.AbstractContextManager[None]:
        return failures.explained(self._database, waited_s=connect.BUSY_TIMEOUT_S)

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])


def _close(where: StatePlace, connection: sqlite3.Connection, reading: connect.Reading | None, owner: int) -> None:
    """Close what a store opened; not in a forked child, which shares file and locks with its parent."""
    if os.getpid() != owner:
        return
    if reading is not None:
        reading.close()
    else:
        connect.close_writable(where, connection)
