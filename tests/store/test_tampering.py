"""A state that is not as the Runtime left it is refused, named, and kept byte for byte."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import stores
from stores import GRAPH

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.rows import NewEvent
from coordinate_agents.graph.store.store import Store


def _sql(*statements: str) -> Callable[[Path], None]:
    def change(state: Path) -> None:
        database = sqlite3.connect(state / "state.db", isolation_level=None)
        for statement in statements:
            database.execute(statement)
        database.close()

    return change


def _cut(count: int) -> Callable[[Path], None]:
    def change(state: Path) -> None:
        size = (state / "state.db").stat().st_size
        os.truncate(state / "state.db", size - count)

    return change


def _write(text: bytes) -> Callable[[Path], None]:
    def change(state: Path) -> None:
        (state / "state.db").write_bytes(text)

    return change


def _link(state: Path) -> None:
    (state / "state.db").rename(state.parent / "elsewhere.db")
    (state / "state.db").symlink_to(state.parent / "elsewhere.db")


def _other_database(state: Path) -> None:
    other = state.parent / "other"
    Store.open(other).close()
    shutil.copy(other / "state.db", state / "state.db")


_ONE_MORE = (
    "INSERT INTO events SELECT 7, time, generation, graph_id, NULL, NULL, type, data, NULL, cache, hash"
    " FROM events WHERE seq = 6"
)
# Refused by writers and readers alike.
_DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "event changed": (_sql("UPDATE events SET data = '{}' WHERE seq = 3"), "event 3 was changed"),
    "event moved in time": (_sql("UPDATE events SET time = time + 1 WHERE seq = 3"), "event 3 was changed"),
    "generation changed": (_sql("UPDATE events SET generation = 9 WHERE seq = 3"), "event 3 was changed"),
    "event given to another subtask": (_sql("UPDATE events SET subtask_id = 'x' WHERE seq = 3"), "event 3 was changed"),
    "generation of the graph set back": (
        _sql("UPDATE graphs SET generation = 0"),
        "the last event or the generation of graph 'checkout' is not the one that was recorded",
    ),
    "event deleted": (_sql("DELETE FROM events WHERE seq = 3"), "event 3 is missing"),
    "last event deleted": (_sql("DELETE FROM events WHERE seq = 6"), "the log ends at event 5, its graphs at event 6"),
    "event added": (
        _sql(_ONE_MORE),
        "the log ends at event 7, its graphs at event 6",
    ),
    "event added, graph too": (
        _sql(_ONE_MORE, "UPDATE graphs SET last_seq = 7"),
        "event 7 was changed",
    ),
    "trigger": (
        _sql("CREATE TRIGGER quiet AFTER INSERT ON events BEGIN DELETE FROM runs; END"),
        "it has a trigger named 'quiet'",
    ),
    "view": (_sql("CREATE VIEW shown AS SELECT * FROM runs"), "it has a view named 'shown'"),
    "table added": (_sql("CREATE TABLE mine (x)"), "'mine' was added"),
    "index added": (_sql("CREATE INDEX mine ON events (type)"), "'mine' was added"),
    "index dropped": (_sql("DROP INDEX events_by_graph"), "'events_by_graph' is missing"),
    "column added": (_sql("ALTER TABLE runs ADD COLUMN more"), "'runs' was changed"),
    "events replaced by a view": (
        _sql("ALTER TABLE events RENAME TO kept", "CREATE VIEW events AS SELECT * FROM kept"),
        "it has a view named 'events'",
    ),
    "another application": (_sql("PRAGMA application_id = 7"), "it is another program's database"),
    "version 0": (_sql("PRAGMA user_version = 0"), "it has no tables of ours"),
    "seven bytes cut": (_cut(7), "its last page was cut short"),
    "a page cut": (_cut(4096), "SQLite says database disk image is malformed"),
    "half a page left": (
        lambda state: os.truncate(state / "state.db", 2000),
        "SQLite says database disk image is malformed",
    ),
    "empty": (_write(b""), "it is empty"),
    "text": (_write(b"# not a database\n" * 400), "SQLite says file is not a database"),
    "link": (_link, "it is a symbolic link or no regular file"),
    "missing": (lambda state: (state / "state.db").unlink(), "it is missing, but a run left state.id"),
}  # fmt: skip


@pytest.mark.parametrize("opened", [Store.open, Store.open_readonly], ids=["writing", "reading"])
@pytest.mark.parametrize("name", _DAMAGE)
def test_damaged_state_is_refused_and_kept(tmp_path: Path, name: str, opened: Callable[[Path], Store]) -> None:
    """RC-02."""
    state = stores.seeded(tmp_path, events=5)
    damage, words = _DAMAGE[name]
    damage(state)
    before = stores.digests(state)
    with pytest.raises(GraphError) as refused:
        opened(state)
    assert refused.value.code == "STATE_TAMPERED"
    assert words in refused.value.message
    assert refused.value.kept == "every file as it is; nothing is written to it"
    assert not refused.value.recoverable
    assert _content(stores.digests(state)) == _content(before)


@pytest.mark.parametrize("opened", [Store.open, Store.open_readonly], ids=["writing", "reading"])
def test_newer_version_is_refused_and_kept(tmp_path: Path, opened: Callable[[Path], Store]) -> None:
    """RC-02."""
    state = stores.seeded(tmp_path)
    _sql("PRAGMA user_version = 999")(state)
    before = stores.digests(state)
    with pytest.raises(GraphError) as refused:
        opened(state)
    assert refused.value.code == "REPOSITORY_UNSUPPORTED"
    assert refused.value.message == (
        f"The state database {state / 'state.db'} has format 999; this version of coordinate-agents knows 1."
    )
    assert _content(stores.digests(state)) == _content(before)


@pytest.mark.parametrize("column", ["title", "base_commit", "document", "content_digest", "config"])
def test_changed_document_is_refused_when_it_is_read(tmp_path: Path, column: str) -> None:
    state = stores.seeded(tmp_path)
    _sql(f"UPDATE documents SET {column} = '{{\"evil\":1}}'")(state)
    with Store.open_readonly(state) as store, pytest.raises(GraphError) as refused:
        store.graph(GRAPH)
    assert refused.value.code == "STATE_TAMPERED"
    assert "the document of graph 'checkout' is not the one that was recorded" in refused.value.message


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE runs SET row = '{"state":"SUCCEEDED"}'""",
        "DELETE FROM runs",
        "INSERT INTO runs VALUES ('checkout', 's9', '{}')",
        "UPDATE runs SET subtask_id = 's9'",
        """UPDATE graphs SET summary = '{"state":"APPROVED"}'""",
    ],
)
def test_changed_cache_is_refused_when_it_is_read(tmp_path: Path, statement: str) -> None:
    state = stores.seeded(tmp_path, events=2)
    _sql(statement)(state)
    with Store.open(state) as store:
        for read in (lambda: store.runs(GRAPH), lambda: store.verify_chain(full=True)):
            with pytest.raises(GraphError) as refused:
                read()
            assert refused.value.code == "STATE_TAMPERED"
            assert "the cached state of graph 'checkout' is not the one that was recorded" in refused.value.message


def test_cached_rows_of_an_unknown_graph_are_refused(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    _sql("INSERT INTO runs VALUES ('nowhere', 's9', '{}')")(state)
    with Store.open(state) as store:
        assert store.runs("elsewhere") == ()
        with pytest.raises(GraphError):
            store.runs("nowhere")


def test_changed_detail_is_refused(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        store.append(GRAPH, 1, [NewEvent("Judged", {"paths": ["x" * 9000]})], now=2.0)
    _sql("UPDATE details SET text = '{\"paths\":[]}'")(state)
    with Store.open(state) as store:
        with pytest.raises(GraphError) as refused:
            list(store.events())
        assert refused.value.code == "STATE_TAMPERED"
        with pytest.raises(GraphError) as refused:
            store.verify_chain(full=True)
    assert refused.value.code == "STATE_TAMPERED"


def test_another_repositorys_database_is_refused(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    _other_database(state)
    with pytest.raises(GraphError) as refused:
        Store.open(state)
    assert refused.value.code == "STATE_TAMPERED"
    assert "it is not the database that state.id names" in refused.value.message


def test_old_event_that_was_changed_is_found_by_the_full_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = stores.seeded(tmp_path, events=20)
    _sql("UPDATE events SET data = '{}' WHERE seq = 3")(state)
    monkeypatch.setattr("coordinate_agents.graph.store.chain.CHECKED_ON_OPEN", 10)
    with Store.open(state) as store, pytest.raises(GraphError) as refused:
        store.verify_chain(full=True)
    assert "event 3 was changed" in refused.value.message


def test_trigger_added_while_open_stops_the_next_append(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        with stores.child(state, _ADD_TRIGGER) as other:
            assert other.end() == (0, "")
        with pytest.raises(GraphError) as refused:
            store.append(GRAPH, 1, [NewEvent("Noted", {})], now=2.0)
        assert refused.value.code == "STATE_TAMPERED"
        assert len(list(store.events())) == 1


def test_missing_database_with_remains_elsewhere_is_refused(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    with pytest.raises(GraphError) as refused:
        Store.open(state, remains=lambda: ("refs/coordinate-agents/checkout/schema/base-1",))
    assert refused.value.code == "STATE_TAMPERED"
    assert "a run left refs/coordinate-agents/checkout/schema/base-1" in refused.value.message
    assert not (state / "state.db").exists()


def test_missing_marker_is_made_again(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    text = (state / "state.id").read_text()
    (state / "state.id").unlink()
    Store.open(state).close()
    assert (state / "state.id").read_text() == text


def test_torn_end_of_the_log_loses_only_the_torn_transaction(tmp_path: Path) -> None:
    """RC-02."""
    state = stores.seeded(tmp_path)
    with stores.child(state, _TWO_AND_DIE) as writer:
        assert writer.end()[0] == -9
    os.truncate(state / "state.db-wal", (state / "state.db-wal").stat().st_size - 7)
    with Store.open(state) as store:
        assert [row.type for row in store.events()] == ["GraphCreated", "First"]
        store.verify_chain(full=True)
        store.append(GRAPH, 1, [NewEvent("Third", {})], now=4.0)


def test_tampered_state_can_still_be_looked_at(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path, events=2)
    _sql("UPDATE events SET data = '{\"number\":7}' WHERE seq = 2")(state)
    with Store.open_unchecked(state) as store:
        assert [row.data.get("number") for row in store.events()] == [None, 7, 1]
        with pytest.raises(GraphError):
            store.append(GRAPH, 1, [NewEvent("Noted", {})], now=2.0)


def test_state_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    state.parent.mkdir()
    (tmp_path / "victim").mkdir()
    state.symlink_to(tmp_path / "victim")
    with pytest.raises(GraphError) as refused:
        Store.open(state)
    assert refused.value.code == "STATE_TAMPERED"
    assert list((tmp_path / "victim").iterdir()) == []


@pytest.mark.parametrize("name", ["state.lock", "state.id"])
def test_planted_link_is_not_followed(tmp_path: Path, name: str) -> None:
    state = stores.state_of(tmp_path)
    Store.open(state).close()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (state / name).unlink()
    (state / name).symlink_to(victim)
    with pytest.raises(GraphError) as refused:
        Store.open(state)
    assert refused.value.code == "STATE_TAMPERED"
    assert victim.read_text() == "precious"


_ADD_TRIGGER = """
import sqlite3
database = sqlite3.connect(state / "state.db", isolation_level=None)
database.execute("CREATE TRIGGER quiet AFTER INSERT ON events BEGIN DELETE FROM runs; END")
os._exit(0)
"""
_TWO_AND_DIE = """
store = Store.open(state)
store.append("checkout", 1, [NewEvent("First", {})], now=2.0)
store.append("checkout", 1, [NewEvent("Second", {})], now=3.0)
os.kill(os.getpid(), 9)
"""


def _content(found: dict[str, str]) -> dict[str, str]:
    """Without what a refused writer may make: lock files and folders, never the database or its log."""
    return {name: value for name, value in found.items() if name.startswith("state.db")}
