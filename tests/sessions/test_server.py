"""The host's socket: who may speak, how much, and that nobody can stop the host from working."""
# ruff: noqa: ASYNC110

import json
import os
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest
from hosts import launch, shell, until

from coordinate_agents.sessions import address as addresses
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import SessionId

pytestmark = pytest.mark.anyio
ID = SessionId("s1")


class Peer:
    """A client that does as it likes."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def send(self, text: str) -> None:
        self.socket.sendall(text.encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        """The next line; empty when the host hung up."""
        try:
            return json.loads(self.file.readline() or b"{}")  # type: ignore[no-any-return]
        except ConnectionResetError:
            return {}

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture
async def peers(hosts: SessionHosts):  # type: ignore[no-untyped-def]
    """Makes peers of one silent Session."""
    record = await hosts.start(launch("s1", "silent.sh"))
    made: list[Peer] = []

    def make() -> Peer:
        made.append(Peer(str(record.socket)))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture
def token(root: Path) -> str:
    return (root / "s1" / "token").read_text()


@pytest.mark.parametrize("token", ["", "wrong", None])
async def test_client_without_the_token_is_turned_away(peers: Any, token: str | None) -> None:
    peer = peers()
    peer.send(json.dumps({"v": 1, "op": "close", "token": token}))
    assert peer.answer() == {}


async def test_token_is_asked_for_once(peers: Any, token: str) -> None:
    peer = peers()
    peer.send(json.dumps({"v": 1, "id": 1, "op": "hello", "token": token}))
    assert peer.answer()["ok"] is True
    peer.send(json.dumps({"v": 1, "id": 2, "op": "look"}))
    assert peer.answer() == {
        "v": 1, "id": 2, "ok": True, "state": "running", "stalled": False, "last_line": "", "output_bytes": 0,
        "attached": False, "held": False, "quiet_s": None, "silent_s": None,
    }  # fmt: skip


@pytest.mark.parametrize("line", ["", "not json", "[]", '{"op": "look"}', '{"v": 2, "op": "look"}', "{" * 2000])
async def test_line_that_is_no_request_is_answered_and_harmless(peers: Any, hosts: SessionHosts, line: str) -> None:
    peer = peers()
    peer.send(line)
    assert peer.answer()["ok"] is False
    assert (await hosts.look(ID)).liveness == "live"


async def test_unknown_operation_is_refused_and_named(peers: Any, token: str) -> None:
    peer = peers()
    peer.send(json.dumps({"v": 1, "op": "fly", "token": token}))
    assert peer.answer()["error"] == "unknown operation 'fly'"


@pytest.mark.parametrize("field", [{"bound_s": "soon"}, {"bound_s": -5}, {"bound_s": 1e300}, {"graceful": "no"}])
async def test_odd_close_request_still_closes(peers: Any, token: str, hosts: SessionHosts, field: Any) -> None:
    peers().send(json.dumps({"v": 1, "op": "close", "token": token, **field}))
    assert (await hosts.wait(ID)).cause == "close"


async def test_endless_line_is_cut_off_and_harmless(peers: Any, hosts: SessionHosts) -> None:
    peer = peers()
    with pytest.raises(OSError):
        for _ in range(100):
            peer.socket.sendall(b"x" * 65536)
    assert (await hosts.look(ID)).liveness == "live"


async def test_client_that_never_reads_is_dropped_and_the_others_are_served(
    peers: Any, token: str, hosts: SessionHosts
) -> None:
    deaf = peers()
    request = json.dumps({"v": 1, "op": "look", "token": token}).encode() + b"\n"
    with pytest.raises(OSError):
        for _ in range(200_000):
            deaf.socket.sendall(request * 100)
    assert (await hosts.look(ID)).liveness == "live"


async def test_more_clients_than_a_host_takes_do_not_hurt_it(peers: Any, token: str, hosts: SessionHosts) -> None:
    crowd = [peers() for _ in range(80)]
    for peer in crowd[:10]:
        peer.send(json.dumps({"v": 1, "op": "hello", "token": token}))
        assert peer.answer()["ok"] is True
    for peer in crowd:
        peer.close()
    while (await hosts.look(ID)).liveness != "live":
        await anyio.sleep(0.02)


async def test_requests_in_pieces_and_several_at_once_are_answered_in_order(peers: Any, token: str) -> None:
    peer = peers()
    text = "".join(json.dumps({"v": 1, "id": n, "op": "look", "token": token}) + "\n" for n in range(5))
    for at in range(0, len(text), 7):
        peer.socket.sendall(text[at : at + 7].encode())
    assert [peer.answer()["id"] for _ in range(5)] == [0, 1, 2, 3, 4]


async def test_every_client_is_told_of_a_stall_and_of_the_end(hosts: SessionHosts, root: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    record = await hosts.start(
        shell("s1", f"while [ ! -e {go} ]; do sleep 0.02; done; echo bye; exit 2", idle_timeout_s=0.3)
    )
    several = [Peer(str(record.socket)) for _ in range(3)]
    try:
        for peer in several:
            peer.send(json.dumps({"v": 1, "op": "hello", "token": (root / "s1" / "token").read_text()}))
            assert peer.answer()["ok"] is True
        assert [peer.answer() for peer in several] == [{"v": 1, "event": "stalled", "stalled": True}] * 3
        go.touch()
        for peer in several:
            while (event := peer.answer())["event"] != "ended":
                assert event == {"v": 1, "event": "stalled", "stalled": False}
            assert (event["end"]["exit_code"], event["end"]["tail"]) == (2, "bye")
            assert peer.answer() == {}
    finally:
        for peer in several:
            peer.close()


async def test_socket_of_a_dead_host_is_removed_when_the_session_is_finished(hosts: SessionHosts) -> None:
    record = await hosts.start(launch("s1", "silent.sh"))
    assert record.host is not None
    assert record.socket is not None
    os.kill(record.host.pid, 9)
    await hosts.wait(ID)
    until(lambda: not Path(str(record.socket)).exists())


async def test_host_on_a_port_is_asked_as_one_on_a_path(
    hosts: SessionHosts, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "has_paths", lambda: False)
    record = await hosts.start(shell("s1", "read line; echo got $line; sleep 600", is_input_open=True))
    port = addresses.port_of(str(record.socket))
    assert port, record.socket
    for token, is_known in (((root / "s1" / "token").read_text(), True), ("another", False)):
        with socket.create_connection((addresses.LOOPBACK, port), timeout=10) as peer:
            peer.sendall(json.dumps({"v": 1, "id": 1, "op": "hello", "token": token}).encode() + b"\n")
            assert bool(peer.recv(4096)) == is_known
    assert (await hosts.look(ID)).liveness == "live"
    await hosts.write(ID, "a line", submit=True)
    while "got a line" not in (output := await hosts.read(ID, cursor=0)).text:
        await hosts.read(ID, cursor=output.next_cursor, wait_ms=5_000)
    assert await hosts.close(ID) == ()
    assert (await hosts.look(ID)).liveness == "ended"
    until(lambda: _is_refused(port))  # the host lets go of its port after its last record


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection((addresses.LOOPBACK, port), timeout=10).close()
    except ConnectionRefusedError:
        return True
    return False
