"""When the disk takes no more: DISK_FULL, nothing half recorded, and the same append works after space was freed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import stores
from stores import GRAPH

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.place import write_whole
from coordinate_agents.graph.store.rows import NewEvent, RunRow
from coordinate_agents.graph.store.store import Store


def test_full_database_keeps_what_was_recorded(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        with store.statement() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 4}")
        refused = _fill(store)
        assert refused.code == "DISK_FULL"
        assert refused.kept == "everything recorded before; this step was not recorded, not even in part"
        assert refused.next == "free space on that disk, then run the same verb again"
        _log_and_cache_agree(store)
        with store.statement() as connection:
            connection.execute("PRAGMA max_page_count=1000000")
        last = len(list(store.events()))
        store.append(GRAPH, 1, [NewEvent("Noted", {"n": last})], runs=[RunRow("s0", str(last))], now=2.0)
        _log_and_cache_agree(store)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_full_disk_keeps_what_was_recorded_and_goes_on_after_space_was_freed(small_disk: Path) -> None:
    state = stores.seeded(small_disk)
    with Store.open(state) as store:
        assert _fill(store).code == "DISK_FULL"
        _log_and_cache_agree(store)
        recorded = list(store.events())
    with Store.open_readonly(state) as reader:
        assert list(reader.events()) == recorded
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    with Store.open(state) as store:
        store.append(GRAPH, 1, [NewEvent("Next", {})], now=3.0)
        assert list(store.events())[:-1] == recorded
        store.verify_chain(full=True)


def test_a_file_that_found_no_room_leaves_no_part_of_itself(small_disk: Path) -> None:
    path = small_disk / "record"
    write_whole(path, "old")
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert sorted(small_disk.iterdir()) == [filler, path]


def test_state_that_finds_no_room_is_not_half_made(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (_free(small_disk) - 16384))
    with pytest.raises(GraphError) as refused:
        Store.open(small_disk / "state")
    assert refused.value.code == "DISK_FULL"
    assert not (small_disk / "state" / "state.db").exists()
    filler.unlink()
    with Store.open(small_disk / "state") as store:
        stores.create_graph(store)


def _free(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def _fill(store: Store) -> GraphError:
    """Append until it is refused."""
    for number in range(1, 2000):
        events = [NewEvent("Noted", {"n": number, "text": "x" * 1000}, durable=number % 2 == 0)]
        try:
            store.append(GRAPH, 1, events, runs=[RunRow("s0", str(number))], now=2.0)
        except GraphError as error:
            return error
    raise AssertionError("never full")


def _log_and_cache_agree(store: Store) -> None:
    store.verify_chain(full=True)
    last = list(store.events())[-1]
    graph = store.graph(GRAPH)
    assert graph is not None
    assert graph.last_seq == last.seq
    if last.type == "Noted":
        assert store.runs(GRAPH) == (RunRow("s0", str(last.data["n"])),)
