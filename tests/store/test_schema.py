"""The migrations lead to exactly the tables that are checked, one version at a time, all or nothing."""

import sqlite3
from pathlib import Path

import pytest
import stores

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import connect, schema
from coordinate_agents.graph.store.store import Store


def test_all_migrations_lead_to_the_checked_tables() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(database)
    assert schema.difference(database) is None
    assert schema.version_of(database) == schema.VERSION == len(schema.MIGRATIONS)


def test_migrating_twice_changes_nothing() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(database)
    schema.migrate(database)
    assert schema.difference(database) is None


def _next_version(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """As if the next version of the program had one more table."""
    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, statements))
    monkeypatch.setattr(schema, "TABLES", {**schema.TABLES, "extra": "CREATE TABLE extra (x)"})


def test_older_database_is_migrated_by_a_writer_and_refused_unchanged_by_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = stores.seeded(tmp_path, events=2)
    before = stores.digests(state)
    _next_version(monkeypatch, "CREATE TABLE extra (x)")
    with pytest.raises(GraphError) as refused:
        Store.open_readonly(state)
    assert refused.value.code == "REPOSITORY_UNSUPPORTED"
    assert "has the older format 1" in refused.value.message
    assert stores.digests(state) == before
    with Store.open(state) as store:
        assert len(list(store.events())) == 3
    with Store.open_readonly(state) as store:
        store.verify_chain(full=True)


def test_failed_migration_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = stores.seeded(tmp_path)
    with monkeypatch.context() as changed:
        _next_version(changed, "CREATE TABLE extra (x)", "INSERT INTO extra VALUES (nothing)")
        with pytest.raises(GraphError):
            Store.open(state)
    with Store.open(state) as store:
        assert len(list(store.events())) == 1


def test_database_half_made_by_a_dead_process_is_made_anew(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    state.mkdir(parents=True)
    for name in ("state.db.new", "state.db.new-journal"):
        (state / name).write_bytes(b"half")
    with Store.open(state) as store:
        stores.create_graph(store)
    assert sorted(path.name for path in state.iterdir()) == ["leases", "state.db", "state.id", "state.lock"]


def test_settings_of_a_writer_are_as_promised(tmp_path: Path) -> None:
    connection = connect.open_writable(stores.StatePlace(stores.seeded(tmp_path)), tuple)
    names = ("journal_mode", "wal_autocheckpoint", "synchronous", "trusted_schema")
    found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}
    connection.close()
    assert found == {"journal_mode": "wal", "wal_autocheckpoint": 0, "synchronous": 1, "trusted_schema": 0}
