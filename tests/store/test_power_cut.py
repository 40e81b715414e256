"""However the log file was cut or spoilt, the store opens with a beginning of what was recorded, and goes on."""

import shutil
from pathlib import Path

import pytest
import stores
from stores import GRAPH

from coordinate_agents.graph.store.rows import NewEvent, RunRow
from coordinate_agents.graph.store.store import Store

APPENDS = 8
# Appends, says the size of the log after each one, and dies.
_WRITER = f"""
store = Store.open(state)
for number in range({APPENDS}):
    event = NewEvent("Noted", {{"n": number, "text": "x" * 700 * number}}, durable=number % 3 == 0)
    store.append("checkout", 1, [event], runs=[RunRow("s0", str(number))], summary=str(number), now=2.0)
    say((state / "state.db-wal").stat().st_size)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def interrupted(tmp_path: Path) -> tuple[Path, list[int]]:
    """A state whose writer was killed, and the size of its log after each append."""
    state = stores.seeded(tmp_path)
    with stores.child(state, _WRITER) as writer:
        sizes = [int(line) for line in writer.end()[1].split()]
    assert len(sizes) == APPENDS
    return state, sizes


def _recovered(state: Path) -> int:
    """The number of appends that a new writer finds, after checking that log and cache agree and go on."""
    with Store.open(state) as store:
        store.verify_chain(full=True)
        numbers = [row.data["n"] for row in store.events(after=1)]
        assert numbers == list(range(len(numbers)))
        last = numbers[-1] if numbers else None
        graph = store.graph(GRAPH)
        assert graph is not None
        assert graph.summary == ("{}" if last is None else str(last))
        assert store.runs(GRAPH) == (RunRow("s0", '{"state":"WAITING"}' if last is None else str(last)),)
        store.append(GRAPH, 1, [NewEvent("Next", {})], now=3.0)
    with Store.open_readonly(state) as reader:
        reader.verify_chain(full=True)
    return len(numbers)


def test_cut_log_keeps_every_append_that_lies_before_the_cut(
    interrupted: tuple[Path, list[int]], tmp_path: Path
) -> None:
    state, sizes = interrupted
    cuts = sorted({0, 1, 31, 32, *range(100, sizes[-1], 5003), *sizes, *(size - 1 for size in sizes)})
    for number, cut in enumerate(cuts):
        copy = tmp_path / f"cut-{number}"
        shutil.copytree(state, copy)
        with (copy / "state.db-wal").open("r+b") as log:
            log.truncate(cut)
        assert _recovered(copy) == sum(size <= cut for size in sizes), cut


def test_spoilt_log_keeps_every_append_that_lies_before_the_spoilt_byte(
    interrupted: tuple[Path, list[int]], tmp_path: Path
) -> None:
    state, sizes = interrupted
    for number, place in enumerate(range(40, sizes[-1], 6007)):
        copy = tmp_path / f"spoilt-{number}"
        shutil.copytree(state, copy)
        with (copy / "state.db-wal").open("r+b") as log:
            log.seek(place)
            byte = log.read(1)
            log.seek(place)
            log.write(bytes([byte[0] ^ 0x40]))
        assert _recovered(copy) == sum(size <= place for size in sizes), place


def test_index_full_of_rubbish_is_made_again(interrupted: tuple[Path, list[int]]) -> None:
    state, _ = interrupted
    (state / "state.db-shm").write_bytes(b"\xa5" * 32768)
    with Store.open_readonly(state) as reader:
        assert len(list(reader.events())) == 1 + APPENDS
    assert _recovered(state) == APPENDS
