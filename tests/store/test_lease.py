"""One driver per graph: a live or stopped holder keeps the lease, a dead one has lost it, a stale one is harmless."""

import json
import os
import signal
from pathlib import Path

import pytest
import stores
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import GRAPH

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import lease as lease_module
from coordinate_agents.graph.store.lease import Holder, Lease, holder, take_over
from coordinate_agents.graph.store.rows import NewEvent
from coordinate_agents.graph.store.store import Store

_HOLD = """
store = Store.open(state)
lease = Lease.acquire(store, "checkout", purpose="graph-run")
say(lease.generation)
hear()
try:
    store.append("checkout", lease.generation, [NewEvent("Late", {})], now=9.0)
    say("appended")
except GraphError as error:
    say(error.code)
lease.release()
store.close()
"""


def test_lease_raises_the_generation_each_time(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        for expected in (2, 3):
            with Lease.acquire(store, GRAPH, purpose="graph-run") as lease:
                assert lease.generation == expected
                assert store.generation(GRAPH) == expected
        assert holder(state, GRAPH) is None
        assert sorted(path.name for path in (state / "leases").iterdir()) == ["checkout.lock"]


def test_held_lease_is_refused_and_names_its_holder(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        assert driver.hear() == "2"
        found = holder(state, GRAPH)
        assert found is not None
        assert found == Holder(driver.pid, found.since, "graph-run", 2, None, "running")
        with pytest.raises(GraphError) as refused:
            Lease.acquire(store, GRAPH, purpose="graph-run")
        assert refused.value.code == "LEASE_HELD"
        assert refused.value.message.startswith(f"Graph checkout is driven by process {driver.pid} (graph-run) since ")
        assert refused.value.facts == {
            "taskId": "checkout", "pid": driver.pid, "since": found.since, "holder": "running",
        }  # fmt: skip
        assert store.generation(GRAPH) == 2


def test_leases_of_two_graphs_do_not_meet(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        stores.create_graph(store, "other")
        with Lease.acquire(store, GRAPH, purpose="a"), Lease.acquire(store, "other", purpose="b") as second:
            assert second.generation == 1


def test_stopped_holder_keeps_the_lease_and_is_named_stopped(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        driver.hear()
        driver.stop()
        found = holder(state, GRAPH)
        assert found is not None
        assert (found.pid, found.life) == (driver.pid, "stopped")
        with pytest.raises(GraphError) as refused:
            Lease.acquire(store, GRAPH, purpose="graph-run")
        assert refused.value.code == "LEASE_HELD"
        assert refused.value.message.endswith("; that process is stopped, not dead.")
        assert refused.value.next == f"kill -CONT {driver.pid}"
        driver.process.send_signal(signal.SIGCONT)
        driver.say()
        assert driver.end() == (0, "appended\n")


def test_killed_holder_has_lost_the_lease_at_once(tmp_path: Path) -> None:
    """RC-04."""
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        driver.hear()
        driver.kill()
        assert holder(state, GRAPH) is None
        with Lease.acquire(store, GRAPH, purpose="graph-recover") as lease:
            assert lease.generation == 3


def test_live_strangers_pid_in_the_record_holds_nothing(tmp_path: Path) -> None:
    """RC-04."""
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        driver.hear()
        driver.kill()
        record = state / "leases" / "checkout.json"
        raw = json.loads(record.read_text())
        raw["process"]["pid"] = os.getpid()
        record.write_text(json.dumps(raw))
        assert holder(state, GRAPH) is None
        Lease.acquire(store, GRAPH, purpose="graph-run").release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"process": {}}', "null"])
def test_held_lease_with_an_unreadable_record_stays_held(tmp_path: Path, text: str) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        driver.hear()
        (state / "leases" / "checkout.json").write_text(text)
        assert holder(state, GRAPH) == Holder(0, 0.0, "unknown", 0, None, "unknown")
        with pytest.raises(GraphError) as refused:
            Lease.acquire(store, GRAPH, purpose="graph-run")
        assert refused.value.message == "Graph checkout is driven by a process that has not said who it is."


def test_record_of_another_boot_is_shown_as_foreign(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver:
        driver.hear()
        record = state / "leases" / "checkout.json"
        raw = json.loads(record.read_text())
        raw["process"]["boot_id"] = "another"
        record.write_text(json.dumps(raw))
        found = holder(state, GRAPH)
        assert found is not None
        assert found.life == "foreign"
        with pytest.raises(GraphError) as refused:
            take_over(state, GRAPH, bound_s=1.0)
        assert refused.value.code == "LEASE_HELD"
        assert driver.process.poll() is None


def test_holder_whose_lock_file_was_removed_appends_no_more(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        driver.hear()
        (state / "leases" / "checkout.lock").unlink()
        with Lease.acquire(store, GRAPH, purpose="graph-run") as lease:
            store.append(GRAPH, lease.generation, [NewEvent("Mine", {})], now=2.0)
            driver.say()
            assert driver.hear() == "STALE_CLAIM"
        assert [row.type for row in store.events()] == ["GraphCreated", "Mine"]


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_take_over_ends_the_holder_within_its_bound(tmp_path: Path, stopped: bool) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _HOLD) as driver, Store.open(state) as store:
        driver.hear()
        if stopped:
            driver.stop()
        take_over(state, GRAPH, bound_s=10.0)
        assert holder(state, GRAPH) is None
        assert driver.process.wait(10) == -signal.SIGTERM
        Lease.acquire(store, GRAPH, purpose="graph-run").release()


def test_take_over_kills_a_holder_that_ignores_the_polite_signal(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + _HOLD) as driver:
        driver.hear()
        take_over(state, GRAPH, bound_s=1.0)
        assert driver.process.wait(10) == -signal.SIGKILL


def test_take_over_without_a_holder_does_nothing(tmp_path: Path) -> None:
    take_over(stores.seeded(tmp_path), GRAPH, bound_s=1.0)


def test_take_over_from_oneself_is_refused(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="graph-run"):
        with pytest.raises(GraphError) as refused:
            take_over(state, GRAPH, bound_s=1.0)
        assert refused.value.code == "LEASE_HELD"


# Two processes' worth of holders in one process (each lock belongs to its own open file); "lose" is a lock file that
# somebody removed while its holder lives.
_STEPS = st.lists(
    st.tuples(st.sampled_from([0, 1]), st.sampled_from(["acquire", "release", "append", "lose"])), max_size=25
)


@settings(max_examples=40, deadline=None)
@given(steps=_STEPS)
def test_leases_in_any_order_never_let_two_append(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    state = stores.seeded(tmp_path_factory.mktemp("state"))
    with Store.open(state) as first, Store.open(state) as second:
        holders = (first, second)
        leases: list[Lease | None] = [None, None]
        generations = [0, 0]
        locked: int | None = None
        appended = 0
        for who, step in steps:
            if step == "acquire" and leases[who] is None:
                if locked is None:
                    leases[who] = lease = Lease.acquire(holders[who], GRAPH, purpose=str(who))
                    generations[who], locked = lease.generation, who
                else:
                    with pytest.raises(GraphError) as refused:
                        Lease.acquire(holders[who], GRAPH, purpose=str(who))
                    assert refused.value.code == "LEASE_HELD"
            elif step == "release" and (held := leases[who]) is not None:
                held.release()
                leases[who] = None
                locked = None if locked == who else locked
            elif step == "lose" and locked is not None:
                (state / "leases" / "checkout.lock").unlink()
                locked = None
            elif step == "append":
                if generations[who] > generations[1 - who]:
                    holders[who].append(GRAPH, generations[who], [NewEvent("Noted", {})], now=2.0)
                    appended += 1
                else:
                    with pytest.raises(GraphError) as refused:
                        holders[who].append(GRAPH, generations[who], [NewEvent("Late", {})], now=2.0)
                    assert refused.value.code == "STALE_CLAIM"
        for left in leases:
            if left is not None:
                left.release()
        assert [row.type for row in first.events(after=1)] == ["Noted"] * appended


def test_forked_child_does_not_keep_the_lease(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = """
store = Store.open(state)
lease = Lease.acquire(store, "checkout", purpose="graph-run")
go_read, go_write = os.pipe()
if os.fork() == 0:
    os.close(go_write)
    os.read(go_read, 1)
    os._exit(0)
say("held")
hear()
"""
    with stores.child(state, code) as driver:
        driver.hear()
        driver.process.kill()
        driver.process.wait(10)
        assert holder(state, GRAPH) is None


def test_executed_child_does_not_keep_the_lease(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = """
import subprocess
store = Store.open(state)
lease = Lease.acquire(store, "checkout", purpose="graph-run")
agent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
say("held")
hear()
"""
    with stores.child(state, code) as driver:
        driver.hear()
        driver.process.kill()
        driver.process.wait(10)
        assert holder(state, GRAPH) is None


def test_drivers_that_start_at_once_one_wins(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    code = """
store = Store.open(state)
say("ready"); hear()
try:
    lease = Lease.acquire(store, "checkout", purpose="graph-run")
    say("driving")
except GraphError as error:
    say(error.code)
hear()
"""
    drivers = [stores.Child(state, code) for _ in range(6)]
    try:
        for driver in drivers:
            driver.hear()
        for driver in drivers:
            driver.say()
        assert sorted(driver.hear() for driver in drivers) == ["LEASE_HELD"] * 5 + ["driving"]
    finally:
        for driver in drivers:
            driver.kill()


def test_unknown_graph_has_no_lease(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        with pytest.raises(GraphError) as refused:
            Lease.acquire(store, "nowhere", purpose="graph-run")
        assert refused.value.code == "TASK_NOT_FOUND"
    assert list((state / "leases").iterdir()) == []


def test_id_that_is_no_graph_id_reaches_no_file(tmp_path: Path) -> None:
    with pytest.raises(GraphError) as refused:
        holder(tmp_path, "../../victim")
    assert refused.value.code == "TASK_NOT_FOUND"


def test_planted_link_for_the_lock_is_not_followed(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    victim = tmp_path / "victim"
    (state / "leases" / "checkout.lock").symlink_to(victim)
    with Store.open(state) as store, pytest.raises(GraphError) as refused:
        Lease.acquire(store, GRAPH, purpose="graph-run")
    assert refused.value.code == "STATE_TAMPERED"
    assert not victim.exists()


def test_released_lease_leaves_the_record_of_the_next_holder(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store:
        first = Lease.acquire(store, GRAPH, purpose="first")
        first.release()
        with Lease.acquire(store, GRAPH, purpose="second"):
            first.release()
            found = holder(state, GRAPH)
            assert found is not None
            assert found.purpose == "second"
    assert lease_module.holder(state, GRAPH) is None
