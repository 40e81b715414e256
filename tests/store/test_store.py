"""What goes into the store comes out of it, in one transaction or not at all."""

import sqlite3
import stat
from pathlib import Path

import pytest
import stores
from stores import DOCUMENT, GRAPH

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import chain
from coordinate_agents.graph.store.rows import GraphRow, NewDocument, NewEvent, RunRow
from coordinate_agents.graph.store.store import Store


def test_new_state_folder_is_private(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    with Store.open(state) as store:
        stores.create_graph(store)
        modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in [state, *state.iterdir()]}
    assert modes == {
        "coordinate-agents": 0o700,
        "leases": 0o700,
        "state.db": 0o600,
        "state.db-shm": 0o600,
        "state.db-wal": 0o600,
        "state.id": 0o600,
        "state.lock": 0o600,
    }


def test_open_folder_that_is_open_to_others_closes_it(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    state.mkdir(parents=True, mode=0o755)
    Store.open(state).close()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_created_graph_is_read_back(tmp_path: Path) -> None:
    with Store.open(stores.state_of(tmp_path)) as store:
        stores.create_graph(store, subtasks=2)
        expected = GraphRow(GRAPH, "Build the checkout", 1, "0" * 40, '{"tasks":[]}', "digest-1", "{}", 1.0, 0, 1, "{}")
        assert store.graph(GRAPH) == expected
        assert store.graphs() == (expected,)
        assert store.runs(GRAPH) == (RunRow("s0", '{"state":"WAITING"}'), RunRow("s1", '{"state":"WAITING"}'))
        assert store.graph("other") is None


def test_create_returns_what_graph_reads(tmp_path: Path) -> None:
    with Store.open(stores.state_of(tmp_path)) as store:
        made = store.create_graph(
            "g", DOCUMENT, first_event=NewEvent("GraphCreated", {}), runs=[], summary='{"a":1}', now=5.5
        )
        assert made == store.graph("g")


@pytest.mark.parametrize("other", ["checkout", "Checkout"])
def test_taken_id_is_refused_and_changes_nothing(tmp_path: Path, other: str) -> None:
    with Store.open(stores.state_of(tmp_path)) as store:
        stores.create_graph(store)
        with pytest.raises(GraphError) as refused:
            stores.create_graph(store, other)
        assert refused.value.code == "TASK_STATE_CONFLICT"
        assert [row.id for row in store.graphs()] == ["checkout"]
        assert len(list(store.events())) == 1


def test_append_stores_events_runs_and_summary_together(tmp_path: Path) -> None:
    with Store.open(stores.state_of(tmp_path)) as store:
        stores.create_graph(store)
        generation = store.next_generation(GRAPH)
        events = [
            NewEvent("TaskClaimed", {"attempt": 1}, subtask_id="s0", durable=True),
            NewEvent("SessionStarted", {"pid": 7}, subtask_id="s0", session_id="session-1"),
        ]
        stored = store.append(
            GRAPH, generation, events, runs=[RunRow("s0", '{"state":"RUNNING"}')], summary='{"n":1}', now=2.0
        )
        assert tuple(store.events(after=1)) == stored
        assert [(row.seq, row.time, row.generation, row.task_id, row.subtask_id, row.session_id, row.type, row.data)
                for row in stored] == [
            (2, 2.0, 1, GRAPH, "s0", None, "TaskClaimed", {"attempt": 1}),
            (3, 2.0, 1, GRAPH, "s0", "session-1", "SessionStarted", {"pid": 7}),
        ]  # fmt: skip
        assert store.runs(GRAPH) == (RunRow("s0", '{"state":"RUNNING"}'),)
        graph = store.graph(GRAPH)
        assert graph is not None
        assert (graph.last_seq, graph.summary) == (3, '{"n":1}')
        assert store.last_event_hash() == stored[-1].hash


def test_every_event_covers_its_predecessor(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path, events=3)) as store:
        with store.statement() as connection:
            row_sums = dict(connection.execute("SELECT seq, cache FROM events"))
        previous = chain.GENESIS
        for row in store.events():
            data = "{" + ",".join(f'"{key}":{_json(value)}' for key, value in sorted(row.data.items())) + "}"
            expected = chain.link(
                previous, row.seq, row.time, row.generation, row.task_id, row.subtask_id, row.session_id, row.type,
                data, None, row_sums[row.seq],
            )  # fmt: skip
            assert row.hash == expected
            previous = row.hash
        assert store.last_event_hash() == previous


def test_append_without_summary_keeps_the_cached_one(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        store.append(GRAPH, 1, [NewEvent("A", {})], summary='{"kept":true}', now=2.0)
        store.append(GRAPH, 1, [NewEvent("B", {})], now=3.0)
        graph = store.graph(GRAPH)
        assert graph is not None
        assert graph.summary == '{"kept":true}'


def test_stale_generation_changes_nothing(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        store.next_generation(GRAPH)
        before = (store.graphs(), store.runs(GRAPH), list(store.events()))
        with pytest.raises(GraphError) as refused:
            store.append(GRAPH, 1, [NewEvent("Late", {})], runs=[RunRow("s0", "late")], summary="late", now=9.0)
        assert refused.value.code == "STALE_CLAIM"
        assert str(refused.value) == (
            "Graph checkout is driven under generation 2 now; this caller holds generation 1."
        )
        assert (store.graphs(), store.runs(GRAPH), list(store.events())) == before


def test_unknown_graph_is_named(tmp_path: Path) -> None:
    with Store.open(stores.state_of(tmp_path)) as store, pytest.raises(GraphError) as refused:
        store.append("nowhere", 0, [NewEvent("A", {})], now=1.0)
    assert refused.value.code == "TASK_NOT_FOUND"


def test_event_that_cannot_be_json_leaves_nothing_of_its_transaction(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        for bad in (NewEvent("Bad", {"x": float("nan")}), NewEvent("Two\nlines", {}), NewEvent("A", {}, subtask_id="")):
            with pytest.raises(ValueError, match=r"JSON|event"):
                store.append(GRAPH, 1, [NewEvent("Good", {}), bad], now=2.0)
        assert [row.type for row in store.events()] == ["GraphCreated"]
        store.append(GRAPH, 1, [NewEvent("Next", {})], now=2.0)


def test_data_above_the_limit_of_an_event_is_kept_beside_the_log(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    paths = [f"src/file-{number}.py" for number in range(2000)]
    with Store.open(state) as store:
        for _ in range(2):
            store.append(GRAPH, 1, [NewEvent("Judged", {"paths": paths})], now=2.0)
        assert [row.data for row in store.events(after=1)] == [{"paths": paths}] * 2
        store.verify_chain(full=True)
    with sqlite3.connect(state / "state.db") as database:
        assert database.execute("SELECT count(*) FROM details").fetchone() == (1,)
        assert database.execute("SELECT max(length(data)) FROM events").fetchone()[0] < 8192


def test_lone_surrogates_in_data_come_back(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        store.append(GRAPH, 1, [NewEvent("Named", {"path": "bad-\udcff.txt"})], now=2.0)
        assert next(store.events(after=1)).data == {"path": "bad-\udcff.txt"}


def test_events_are_filtered_and_paged(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        stores.create_graph(store, "other")
        batch = [NewEvent("N", {"n": n}, subtask_id=f"s{n % 2}") for n in range(2500)]
        store.append(GRAPH, 1, batch, now=2.0)
        store.append("other", 0, [NewEvent("O", {})], now=3.0)
        assert [row.seq for row in store.events()] == list(range(1, 2504))
        assert [row.data["n"] for row in store.events(GRAPH, after=2, subtask="s1")] == list(range(1, 2500, 2))
        assert [row.seq for row in store.events(GRAPH, after=2, limit=1200)] == list(range(3, 1203))
        assert [row.type for row in store.events("other")] == ["GraphCreated", "O"]
        assert list(store.events("nowhere")) == []


def test_new_revision_replaces_the_document_and_names_itself_in_the_log(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        amended = NewDocument("Build more", "1" * 40, '{"tasks":[1]}', "digest-2", '{"a":1}')
        event = store.update_document(
            GRAPH, 1, amended, revision=2, event=NewEvent("GraphAmended", {"who": "ann"}), now=4.0
        )
        graph = store.graph(GRAPH)
        assert graph is not None
        assert (graph.title, graph.revision, graph.base_commit, graph.document, graph.config, graph.last_seq) == (
            "Build more", 2, "1" * 40, '{"tasks":[1]}', '{"a":1}', event.seq,
        )  # fmt: skip
        with pytest.raises(GraphError) as refused:
            store.update_document(GRAPH, 1, amended, revision=2, event=NewEvent("GraphAmended", {}), now=4.0)
        assert refused.value.code == "TASK_STATE_CONFLICT"
        store.verify_chain(full=True)


def _json(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
