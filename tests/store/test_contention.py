"""Processes that write at once lose nothing, and a stale one writes nothing."""

from pathlib import Path

import pytest
import stores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import GRAPH

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.rows import NewEvent, RunRow
from coordinate_agents.graph.store.store import Store

WRITERS = 6
EVENTS_EACH = 150

_WRITER = """
store = Store.open(state)
say("ready"); hear()
me = os.getpid()
for number in range(150):
    event = NewEvent("Noted", {"pid": me, "number": number})
    store.append("checkout", 1, [event], runs=[RunRow(f"s{me}", str(number))], now=time.time())
say("done")
store.close()
"""


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    writers = [stores.Child(state, _WRITER) for _ in range(WRITERS)]
    try:
        for writer in writers:
            assert writer.hear() == "ready"
        for writer in writers:
            writer.say()
        for writer in writers:
            assert writer.end() == (0, "done\n")
    finally:
        for writer in writers:
            writer.kill()
    with Store.open(state) as store:
        store.verify_chain(full=True)
        rows = list(store.events(after=1))
        assert [row.seq for row in rows] == list(range(2, 2 + WRITERS * EVENTS_EACH))
        for writer in writers:
            mine = [row.data["number"] for row in rows if row.data["pid"] == writer.pid]
            assert mine == list(range(EVENTS_EACH))
            assert RunRow(f"s{writer.pid}", str(EVENTS_EACH - 1)) in store.runs(GRAPH)


def test_processes_that_open_a_new_state_at_once_share_one_database(tmp_path: Path) -> None:
    state = stores.state_of(tmp_path)
    code = 'hear()\nStore.open(state).close()\nsay((state / "state.id").read_text().strip())'
    openers = [stores.Child(state, code) for _ in range(WRITERS)]
    try:
        for opener in openers:
            opener.say()
        said = {opener.end() for opener in openers}
    finally:
        for opener in openers:
            opener.kill()
    assert said == {(0, (state / "state.id").read_text())}
    assert sorted(path.name for path in state.iterdir()) == ["leases", "state.db", "state.id", "state.lock"]


# Two holders, each with the generation that it took last; a step is (who, take the lease or append).
_STEPS = st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from(["take", "append"])), max_size=30)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_two_holders_in_any_order_only_the_last_one_appends(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    state = stores.seeded(tmp_path_factory.mktemp("state"))
    with Store.open(state) as first, Store.open(state) as second:
        holders, held, last = (first, second), [0, 0], -1
        expected = ["GraphCreated"]
        for number, (who, step) in enumerate(steps):
            if step == "take":
                held[who] = holders[who].next_generation(GRAPH)
                last = who
                continue
            event = NewEvent(f"By{who}", {"number": number})
            if who == last:
                holders[who].append(GRAPH, held[who], [event], now=2.0)
                expected.append(event.type)
            else:
                with pytest.raises(GraphError) as refused:
                    holders[who].append(GRAPH, held[who], [event], runs=[RunRow("s0", "stale")], now=2.0)
                assert refused.value.code == "STALE_CLAIM"
        assert [row.type for row in first.events()] == expected
        assert first.runs(GRAPH) == (RunRow("s0", '{"state":"WAITING"}'),)
        first.verify_chain(full=True)
