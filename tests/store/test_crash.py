"""After the death of a process at any named point the state opens, its log is intact, and the work goes on."""

import json
import signal
from pathlib import Path

import pytest
import stores
from stores import GRAPH

from coordinate_agents.graph.crashpoints import POINTS
from coordinate_agents.graph.store import requests
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.rows import NewEvent, RunRow
from coordinate_agents.graph.store.store import Store

# Everything that the store does, once, from nothing; the named point ends it somewhere.
_LIFE = """
import anyio
from coordinate_agents.graph.store.inbox import RequestInbox
from coordinate_agents.graph.store.requests import open_requests, submit
store = Store.open(state)
document = NewDocument("t", "0" * 40, "{}", "d", "{}")
if store.graph("checkout") is None:
    store.create_graph("checkout", document, first_event=NewEvent("GraphCreated", {}),
                       runs=[RunRow("s0", "0")], summary="0", now=1.0)
lease = Lease.acquire(store, "checkout", purpose="graph-run")
with RequestInbox(store, lease) as inbox:
    done = len(list(store.events("checkout"))) - 1
    for number in range(done, 3):
        store.append("checkout", lease.generation, [NewEvent("Begun", {"n": number, "part": "a"}, durable=True)],
                     runs=[RunRow("s0", str(number + 1))], summary=str(number + 1), now=2.0)
    submit(store, "checkout", "stop", {}, who="x", timeout_s=0.0)
    for request in open_requests(store, "checkout"):
        inbox.answer(RequestResult(request.id, "accepted", "done"))
lease.release()
store.close()
say("done")
"""
# Those of a document's change are told by the stories of graph-amend.
_STORE_POINTS = [
    point
    for point in POINTS
    if point.partition(".")[0] in ("store", "lease", "request") and not point.startswith("store.document.")
]


def _consistent(state: Path) -> int:
    """Check that log and cache agree; the number of `Begun` events."""
    with Store.open(state) as store:
        store.verify_chain(full=True)
        graph = store.graph(GRAPH)
        begun = [row.data["n"] for row in store.events() if row.type == "Begun"]
        assert begun == list(range(len(begun)))
        if graph is None:
            assert begun == []
            assert store.runs(GRAPH) == ()
        else:
            assert (graph.summary, store.runs(GRAPH)) == (str(len(begun)), (RunRow("s0", str(len(begun))),))
        return len(begun)


@pytest.mark.parametrize("point", _STORE_POINTS)
def test_death_at_a_point_leaves_a_state_that_the_same_work_finishes(tmp_path: Path, point: str) -> None:
    state = stores.state_of(tmp_path)
    with stores.child(state, _LIFE, COORDINATE_AGENTS_CRASH_AT=point) as first:
        assert first.end() == (-signal.SIGKILL, "")
    assert holder(state, GRAPH) is None
    with Store.open_readonly(state) as reader:
        assert len(list(reader.events())) <= 4
    _consistent(state)
    with stores.child(state, _LIFE) as again:
        assert again.end() == (0, "done\n")
    assert _consistent(state) == 3
    with Store.open(state) as store:
        assert requests.open_requests(store, GRAPH) == ()
    assert sorted(path.name for path in state.iterdir()) == ["leases", "state.db", "state.id", "state.lock"]


@pytest.mark.parametrize(
    ("point", "kept"),
    [
        ("store.append.inserted:3", 2),
        ("store.append.cached:3", 2),
        ("store.append.finished:3", 2),
        ("store.append.committed:3", 3),
    ],
)
def test_death_inside_the_third_append_keeps_what_was_committed(tmp_path: Path, point: str, kept: int) -> None:
    state = stores.state_of(tmp_path)
    with stores.child(state, _LIFE, COORDINATE_AGENTS_CRASH_AT=point) as first:
        assert first.end()[0] == -signal.SIGKILL
    assert _consistent(state) == kept


def test_death_beside_another_writer_disturbs_it_not(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = 'store = Store.open(state)\nstore.append("checkout", 1, [NewEvent("Lost", {})], now=9.0)'
    with Store.open(state) as store:
        with stores.child(state, code, COORDINATE_AGENTS_CRASH_AT="store.append.cached") as dying:
            assert dying.end()[0] == -signal.SIGKILL
        store.append(GRAPH, 1, [NewEvent("Kept", {})], now=2.0)
        store.verify_chain(full=True)
        assert [row.type for row in store.events()] == ["GraphCreated", "Kept"]


def test_writer_stopped_inside_a_transaction_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinate_agents.graph.store.connect.BUSY_TIMEOUT_S", 0.3)
    state = stores.seeded(tmp_path)
    code = """
store = Store.open(state)
with store.transaction("progress"):
    say("inside"); hear()
"""
    with stores.child(state, code) as other, Store.open(state) as store:
        assert other.hear() == "inside"
        other.stop()
        with pytest.raises(stores.GraphError) as refused:
            store.append(GRAPH, 1, [NewEvent("Kept", {})], now=2.0)
        assert refused.value.code == "WAIT_TIMED_OUT"
        with Store.open_readonly(state) as reader:
            assert len(list(reader.events())) == 1
        other.process.kill()
        other.process.wait(10)
        store.append(GRAPH, 1, [NewEvent("Kept", {})], now=2.0)


def test_every_point_is_passed_by_a_whole_life(tmp_path: Path) -> None:
    """So that no name in POINTS is one that nothing passes any more."""
    code = f"""
from coordinate_agents.graph import crashpoints
import coordinate_agents.graph.store.inbox
seen = []
for name, module in list(sys.modules.items()):
    if name.startswith("coordinate_agents.graph.") and hasattr(module, "crash_point"):
        module.crash_point = seen.append
{_LIFE}
import json
say(json.dumps(sorted(set(seen))))
"""
    with stores.child(stores.state_of(tmp_path), code) as life:
        _, said = life.end()
    assert json.loads(said.splitlines()[-1]) == sorted(_STORE_POINTS)


def test_leases_survive_no_crash(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = 'store = Store.open(state)\nLease.acquire(store, "checkout", purpose="x")'
    with stores.child(state, code, COORDINATE_AGENTS_CRASH_AT="lease.generation") as first:
        assert first.end()[0] == -signal.SIGKILL
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="y") as lease:
        assert lease.generation == 3
