"""Cost of storing one transition (one event, one cache row, the summary) beside 1,000 to 100,000 cached runs.

Prints CPU microseconds on a tmpfs, beside the floor of the same run: one bare INSERT in a transaction of its own.
A benchmark, never a test. Reach: 100 µs a transition, independent of the number of runs.
Run it as ``python benchmarks/store_append.py``.
"""

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from coordinate_agents.graph.store.rows import NewDocument, NewEvent, RunRow
from coordinate_agents.graph.store.store import Store

SIZES = (1_000, 10_000, 100_000)
APPENDS = 3_000
# About what a TaskRun takes as JSON.
ROW = '{"state":"RUNNING","phase":"working","attempt":1,"worktree":"' + "x" * 240 + '"}'


def measure(act: Callable[[], object]) -> float:
    started = time.process_time_ns()
    act()
    return (time.process_time_ns() - started) / 1000


def floor(folder: Path) -> list[float]:
    """A bare INSERT of the same bytes by sqlite3, WAL, synchronous NORMAL."""
    database = sqlite3.connect(folder / "floor.db", isolation_level=None)
    for statement in (
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=NORMAL",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b)",
    ):
        database.execute(statement)

    def insert() -> None:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO t (b) VALUES (?)", (ROW,))
        database.execute("COMMIT")

    costs = [measure(insert) for _ in range(APPENDS)]
    database.close()
    return costs


def transitions(state: Path, runs: int) -> tuple[list[float], float]:
    """CPU of each append, and of opening such a store for writing again."""
    with Store.open(state) as store:
        store.create_graph(
            "bench",
            NewDocument("bench", "0" * 40, "{}", "digest", "{}"),
            first_event=NewEvent("GraphCreated", {}),
            runs=(RunRow(f"t{number:06d}", ROW) for number in range(runs)),
            summary="{}",
            now=1.0,
        )
        generation = store.next_generation("bench")

        def append(number: int) -> Callable[[], object]:
            # A prime step, so that neighbours in time are not neighbours in the table.
            name = f"t{number * 7919 % runs:06d}"
            event = NewEvent("TaskClaimed", {"attempt": 1, "base": "0" * 40}, subtask_id=name)
            return lambda: store.append(
                "bench", generation, [event], runs=[RunRow(name, ROW)], summary='{"state":"RUNNING"}', now=2.0
            )

        costs = [measure(append(number)) for number in range(APPENDS)]
    return costs, measure(lambda: Store.open(state).close())


def main() -> None:
    shm = Path("/dev/shm")
    parent = shm if shm.is_dir() else None
    print("runs      median µs   p99 µs   floor µs   open again ms")
    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            bare = floor(Path(folder))
            costs, opening = transitions(Path(folder) / "state", size)
            p99 = statistics.quantiles(costs, n=100)[98]
            median, lowest = statistics.median(costs), statistics.median(bare)
            print(f"{size:<9} {median:<11.0f} {p99:<8.0f} {lowest:<10.0f} {opening / 1000:.1f}")


if __name__ == "__main__":
    main()
