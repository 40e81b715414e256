"""What another process asks of a driver is answered, refused, pending or withdrawn: never lost and never done twice."""

import os
import threading
from pathlib import Path

import anyio
import pytest
import stores
from stores import GRAPH

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import requests, wake
from coordinate_agents.graph.store.inbox import RequestInbox
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.requests import RequestAnswer, submit
from coordinate_agents.graph.store.rows import NewEvent, RequestResult
from coordinate_agents.graph.store.store import Store

_DRIVE = """
import anyio
from coordinate_agents.graph.store.inbox import RequestInbox
store = Store.open(state)
lease = Lease.acquire(store, "checkout", purpose="graph-run")
async def drive():
    with RequestInbox(store, lease) as inbox:
        say("driving")
        while True:
            for request in await inbox.next():
                if request.kind == "ignore":
                    say("ignored"); continue
                if request.kind == "leave":
                    return
                if request.kind == "refuse":
                    inbox.answer(RequestResult(request.id, "refused", "It is done already.")); continue
                event = NewEvent("StopRequested", {"who": request.who, "kind": request.kind, **request.data})
                result = RequestResult(request.id, "accepted", "Stopping.", {"seq": 2})
                store.append("checkout", lease.generation, [event], results=[result], now=2.0)
anyio.run(drive)
lease.release()
store.close()
"""


def test_accepted_request_carries_its_event_and_answer(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _DRIVE) as driver, Store.open(state) as store:
        driver.hear()
        answer = submit(store, GRAPH, "stop", {"reason": "lunch"}, who="user ann")
        assert answer == RequestAnswer(1, "accepted", "Stopping.", {"seq": 2})
        assert [(row.type, row.data) for row in store.events(after=1)] == [
            ("StopRequested", {"who": "user ann", "kind": "stop", "reason": "lunch"})
        ]
        assert requests.open_requests(store, GRAPH) == ()


def test_refused_request_says_why(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _DRIVE) as driver, Store.open(state) as store:
        driver.hear()
        assert submit(store, GRAPH, "refuse", {}, who="mcp") == RequestAnswer(1, "refused", "It is done already.", {})


def test_without_a_driver_nothing_is_recorded(tmp_path: Path) -> None:
    with Store.open(stores.seeded(tmp_path)) as store:
        assert submit(store, GRAPH, "stop", {}, who="user ann") is None
        assert requests.open_requests(store, GRAPH) == ()


def test_unanswered_request_stays_pending(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _DRIVE) as driver, Store.open(state) as store:
        driver.hear()
        answer = submit(store, GRAPH, "ignore", {}, who="user ann", timeout_s=0.05)
        assert answer is not None
        assert answer.outcome == "pending"
        assert driver.hear() == "ignored"
        assert [row.kind for row in requests.open_requests(store, GRAPH)] == ["ignore"]


def test_request_to_a_stopped_driver_stays_pending_and_is_done_when_it_continues(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _DRIVE) as driver, Store.open(state) as store:
        driver.hear()
        driver.stop()
        answer = submit(store, GRAPH, "stop", {}, who="user ann", timeout_s=0.05)
        assert answer is not None
        assert answer.outcome == "pending"
        os.kill(driver.pid, 18)
        stores.until(lambda: not requests.open_requests(store, GRAPH))
        assert [row.type for row in store.events(after=1)] == ["StopRequested"]


@pytest.mark.parametrize("end", ["dies", "leaves"])
def test_request_whose_driver_goes_is_withdrawn(tmp_path: Path, end: str) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _DRIVE) as driver, Store.open(state) as store:
        driver.hear()
        if end == "dies":
            threading.Thread(target=_kill_when_it_speaks, args=(driver,)).start()
        answer = submit(store, GRAPH, "ignore" if end == "dies" else "leave", {}, who="user ann", timeout_s=30.0)
        assert answer is None
        assert requests.open_requests(store, GRAPH) == ()
        driver.process.wait(10)
        assert holder(state, GRAPH) is None


def test_request_of_an_author_that_died_is_found_by_the_next_driver(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    ask = """
from coordinate_agents.graph.store.requests import submit
submit(Store.open(state), "checkout", "stop", {}, who="x")
"""
    with Store.open(state) as store:
        dies = {"COORDINATE_AGENTS_CRASH_AT": "request.submitted"}
        with Lease.acquire(store, GRAPH, purpose="graph-run"), stores.child(state, ask, **dies) as author:
            assert author.end()[0] == -9
        with Lease.acquire(store, GRAPH, purpose="graph-run") as lease, RequestInbox(store, lease) as inbox:
            assert [row.kind for row in anyio.run(inbox.next)] == ["stop"]
            assert [row.kind for row in inbox.pending()] == ["stop"]


def test_stale_driver_answers_nothing(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="graph-run") as lease:
        pending = submit(store, GRAPH, "stop", {}, who="x", timeout_s=0.0)
        assert pending is not None
        with RequestInbox(store, lease) as inbox:
            store.next_generation(GRAPH)
            with pytest.raises(GraphError) as refused:
                inbox.answer(RequestResult(pending.id, "accepted", "late"))
            assert refused.value.code == "STALE_CLAIM"
            assert len(inbox.pending()) == 1


def test_answer_with_a_failed_append_is_not_given(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="graph-run") as lease:
        pending = submit(store, GRAPH, "stop", {}, who="x", timeout_s=0.0)
        assert pending is not None
        bad = [NewEvent("StopRequested", {"x": float("inf")})]
        with pytest.raises(ValueError, match="JSON"):
            store.append(GRAPH, lease.generation, bad, results=[RequestResult(pending.id, "accepted", "no")], now=2.0)
        assert len(requests.open_requests(store, GRAPH)) == 1


def test_many_authors_at_once_are_all_answered(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    ask = """
from coordinate_agents.graph.store.requests import submit
with Store.open(state) as store:
    for number in range(10):
        answer = submit(store, "checkout", "stop", {"n": number}, who=str(os.getpid()), timeout_s=60.0)
        assert answer.outcome == "accepted", answer
"""
    with stores.child(state, _DRIVE) as driver:
        driver.hear()
        authors = [stores.Child(state, ask) for _ in range(4)]
        try:
            for author in authors:
                assert author.end() == (0, "")
        finally:
            for author in authors:
                author.kill()
    with Store.open(state) as store:
        for author in authors:
            mine = [row.data["n"] for row in store.events(after=1) if row.data["who"] == str(author.pid)]
            assert mine == list(range(10))


def test_removed_socket_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinate_agents.graph.store.inbox._LOOK_AFTER_SOCKET_S", 0.02)
    state = stores.seeded(tmp_path)

    async def drive(store: Store, lease: Lease) -> None:
        with RequestInbox(store, lease) as inbox:
            first = _socket(state)
            first.unlink()
            pending = submit(store, GRAPH, "stop", {}, who="x", timeout_s=0.0)
            assert pending is not None
            assert [row.id for row in await inbox.next()] == [pending.id]
            async with anyio.create_task_group() as group:
                group.start_soon(inbox.next)
                await anyio.to_thread.run_sync(lambda: stores.until(lambda: _socket(state).exists()))
                group.cancel_scope.cancel()
            assert _socket(state) != first
            assert wake.wake(str(_socket(state)))

    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="graph-run") as lease:
        anyio.run(drive, store, lease)


def test_socket_folder_is_private_and_left_clean(tmp_path: Path) -> None:
    runtime = Path(os.environ["XDG_RUNTIME_DIR"]) / "coordinate-agents"
    state = stores.seeded(tmp_path)
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="graph-run") as lease:
        with RequestInbox(store, lease):
            path = _socket(state)
            assert path.parent == runtime
            assert (runtime.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
        assert list(runtime.iterdir()) == []
        assert not path.exists()
        found = holder(state, GRAPH)
        assert found is not None
        assert found.socket is None
        assert not wake.wake(str(path))


@pytest.mark.parametrize("kind", ["absent", "long", "open to others", "link"])
def test_unfit_runtime_folder_gives_a_fresh_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    base = tmp_path / ("x" * 120 if kind == "long" else "run")
    base.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "" if kind == "absent" else str(base))
    if kind == "open to others":
        (base / "coordinate-agents").mkdir(mode=0o777)
        (base / "coordinate-agents").chmod(0o777)
    if kind == "link":
        (tmp_path / "victim").mkdir(mode=0o700)
        (base / "coordinate-agents").symlink_to(tmp_path / "victim")
    made = wake.WakeSocket("0123456789abcdef.sock")
    folder = made.path.parent
    assert base not in folder.parents
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(made.path)) <= 100
    assert wake.wake(str(made.path))
    made.close()
    assert not folder.exists()


def _kill_when_it_speaks(driver: stores.Child) -> None:
    driver.hear()
    driver.process.kill()


def _socket(state: Path) -> Path:
    found = holder(state, GRAPH)
    assert found is not None
    assert found.socket is not None
    return Path(found.socket)


def test_a_nudge_without_a_request_is_told_to_who_wants_to_look(tmp_path: Path) -> None:
    async def drive(store: Store, lease: Lease) -> None:
        told = anyio.Event()
        with RequestInbox(store, lease, on_nudge=told.set) as inbox, anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(inbox.next)
                by = holder(store.place.folder, GRAPH)
                assert by is not None
                assert by.socket is not None
                assert wake.wake(by.socket)
                await told.wait()
                group.cancel_scope.cancel()

    with Store.open(stores.seeded(tmp_path)) as store, Lease.acquire(store, GRAPH, purpose="x") as lease:
        anyio.run(drive, store, lease)
