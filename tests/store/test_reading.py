"""Looking changes no byte of the state folder, and works where nothing can be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stores
from stores import GRAPH

from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.rows import NewEvent
from coordinate_agents.graph.store.store import Store

_WRITE_AND_DIE = """
store = Store.open(state)
store.append("checkout", 1, [NewEvent("Noted", {"number": 99})], now=9.0)
os.kill(os.getpid(), 9)
"""
_WRITE_AND_STAY = """
store = Store.open(state)
store.append("checkout", 1, [NewEvent("Noted", {"number": 99})], now=9.0)
say("written"); hear()
store.append("checkout", 1, [NewEvent("Noted", {"number": 100})], now=9.0)
say("again"); hear()
store.close()
"""
_READ = """
store = Store.open_readonly(state)
say([row.type for row in store.events()], [row.id for row in store.graphs()], len(store.runs("checkout")))
store.close()
"""


def _numbers(state: Path) -> list[int]:
    with Store.open_readonly(state) as store:
        return [row.data["number"] for row in store.events(after=1)]


def test_absent_state_reads_as_empty_and_stays_absent(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    with Store.open_readonly(state) as store:
        assert (store.graphs(), list(store.events()), store.last_event_hash()) == ((), [], "0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_folder_without_a_database_reads_as_empty_and_stays_so(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    (state / "sessions").mkdir(parents=True)
    before = stores.digests(tmp_path)
    with Store.open_readonly(state) as store:
        assert store.graphs() == ()
    assert stores.digests(tmp_path) == before


def test_reading_a_closed_state_changes_no_byte(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path, events=3)
    before = stores.digests(state)
    assert sorted(before) == ["leases", "state.db", "state.id", "state.lock"]
    assert _numbers(state) == [0, 1, 2]
    assert stores.digests(state) == before


def test_reading_after_a_killed_writer_sees_what_it_committed_and_changes_no_byte(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _WRITE_AND_DIE) as writer:
        assert writer.end()[0] == -9
    before = stores.digests(state)
    assert "state.db-wal" in before
    assert _numbers(state) == [99]
    assert stores.digests(state) == before


def test_reading_beside_a_live_writer_changes_no_byte_and_sees_each_commit(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _WRITE_AND_STAY) as writer:
        assert writer.hear() == "written"
        before = stores.digests(state)
        assert _numbers(state) == [99]
        assert stores.digests(state) == before
        writer.say()
        assert writer.hear() == "again"
        assert _numbers(state) == [99, 100]
        writer.say()
        assert writer.end() == (0, "")


def test_log_without_its_index_is_read_elsewhere(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _WRITE_AND_DIE) as writer:
        writer.end()
    (state / "state.db-shm").unlink()
    before = stores.digests(state)
    assert _numbers(state) == [99]
    assert stores.digests(state) == before


def test_copy_without_lock_file_is_read(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path, events=1)
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(state / "state.db", copy)
    assert _numbers(copy) == [0]
    assert [path.name for path in copy.iterdir()] == ["state.db"]


def test_writer_that_closes_beside_a_reader_leaves_the_main_file_alone(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    writer = Store.open(state)
    with Store.open_readonly(state) as reader:
        before = stores.digests(state)["state.db"]
        writer.append(GRAPH, 1, [NewEvent("Noted", {"number": 5})], now=2.0)
        writer.checkpoint()
        writer.close()
        assert [row.type for row in reader.events()] == ["GraphCreated"]
        assert stores.digests(state)["state.db"] == before
    assert _numbers(state) == [5]


def test_store_that_nobody_closed_is_closed_as_carefully(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = """
store = Store.open(state)
store.append("checkout", 1, [NewEvent("Noted", {"number": 5})], now=2.0)
say("exits")
"""
    with Store.open_readonly(state) as reader, stores.child(state, code) as writer:
        before = (state / "state.db").stat()
        assert writer.end() == (0, "exits\n")
        after = (state / "state.db").stat()
        assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
        assert [row.type for row in reader.events()] == ["GraphCreated"]
    assert _numbers(state) == [5]


def test_forked_child_that_exits_disturbs_no_store(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = """
store = Store.open(state)
store.append("checkout", 1, [NewEvent("Noted", {"number": 1})], now=2.0)
if (pid := os.fork()) == 0:
    sys.exit(0)
os.waitpid(pid, 0)
store.append("checkout", 1, [NewEvent("Noted", {"number": 2})], now=2.0)
store.verify_chain(full=True)
say("fine")
"""
    with stores.child(state, code) as writer:
        assert writer.end() == (0, "fine\n")
    assert _numbers(state) == [1, 2]


@pytest.mark.parametrize("name", ["with space", "a?b#c%d", "new\nline", "ünï", "\udcff", "q'uote\"s"])
def test_odd_folder_names_are_read_and_written(tmp_path: Path, name: str) -> None:
    state = stores.seeded(tmp_path / name, events=1)
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="x"):
        assert holder(state, GRAPH) is not None
    assert _numbers(state) == [0]


def test_last_writer_leaves_no_log(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        store.append(GRAPH, 1, [NewEvent("Noted", {"number": 5})], now=2.0)
        assert (state / "state.db-wal").stat().st_size > 0
    assert not (state / "state.db-wal").exists()


def test_log_stays_bounded_under_many_appends(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        for number in range(3000):
            store.append(GRAPH, 1, [NewEvent("Noted", {"number": number})], now=2.0)
        assert store.place.wal.stat().st_size < 16 * 1024 * 1024


@pytest.mark.parametrize("with_log", [False, True], ids=["closed", "after a killed writer"])
def test_read_only_folder_is_read_and_refused_for_writing(tmp_path: Path, with_log: bool) -> None:
    state = stores.seeded(tmp_path, events=1)
    if with_log:
        with stores.child(state, _WRITE_AND_DIE) as writer:
            writer.end()
    for path in [*state.iterdir(), state]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = stores.digests(state)
    expected = "['GraphCreated', 'Noted'" + (", 'Noted'" if with_log else "") + "] ['checkout'] 1\n"
    assert _unprivileged(state, _READ) == expected
    write = "try: Store.open(state)\nexcept GraphError as error: say(error.code, error.message)"
    assert _unprivileged(state, write) == (
        f"REPOSITORY_UNSUPPORTED The state folder {state} cannot be written: this user may not write there.\n"
    )
    assert stores.digests(state) == before
    state.chmod(0o700)
    (state / "leases").chmod(0o700)


def test_read_path_imports_nothing_heavy(tmp_path: Path) -> None:
    code = """
store = Store.open_readonly(state); store.graphs(); holder(state, "checkout"); store.close()
heavy = {"anyio", "asyncio", "pydantic", "networkx", "rich", "yaml", "git", "click", "filelock", "psutil"}
say(sorted(heavy & set(sys.modules)))
"""
    with stores.child(stores.seeded(tmp_path), code) as reader:
        assert reader.end() == (0, "[]\n")


def test_readers_beside_writers_always_see_an_intact_chain(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = """
say("ready"); hear()
for number in range(40):
    store = Store.open(state)
    for _ in range(5):
        store.append("checkout", 1, [NewEvent("Noted", {"number": number})], now=time.time())
    store.checkpoint()
    store.close()
say("done")
"""
    with stores.child(state, code) as one, stores.child(state, code) as other:
        assert (one.hear(), other.hear()) == ("ready", "ready")
        one.say()
        other.say()
        seen = 0
        while seen < 401:
            with Store.open_readonly(state) as store:
                rows = list(store.events())
                store.verify_chain(full=True)
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
            assert len(rows) >= seen
            seen = len(rows)
        assert (one.end(), other.end()) == ((0, "done\n"), (0, "done\n"))


def _unprivileged(state: Path, code: str) -> str:
    """Run the code without the right to ignore permissions; what it said."""
    command = [sys.executable, "-c", stores.PRELUDE + code, str(state)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root cannot give up its rights without setpriv")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
