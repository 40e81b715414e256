"""The socket of a killed driver goes when the next one takes its place; nothing else does."""

import signal
import socket
from pathlib import Path

import stores
from stores import GRAPH

from coordinate_agents.graph.store import wake
from coordinate_agents.graph.store.inbox import RequestInbox
from coordinate_agents.graph.store.lease import Lease
from coordinate_agents.graph.store.store import Store

_DRIVE = """
from coordinate_agents.graph.store.inbox import RequestInbox
store = Store.open(state)
lease = Lease.acquire(store, "checkout", purpose="graph-run")
inbox = RequestInbox(store, lease)
say(str(inbox._socket.path)); hear()
"""


def test_the_next_driver_removes_the_socket_of_a_killed_one(tmp_path: Path) -> None:
    state = stores.seeded(tmp_path)
    with stores.child(state, _DRIVE) as driver:
        left = Path(driver.hear())
        driver.process.send_signal(signal.SIGKILL)
        driver.process.wait(10)
    assert left.is_socket()
    with Store.open(state) as store, Lease.acquire(store, GRAPH, purpose="x") as lease, RequestInbox(store, lease):
        assert not left.exists()


def test_a_socket_that_somebody_reads_and_a_file_stay(tmp_path: Path) -> None:
    place, file = tmp_path / "s.sock", tmp_path / "file"
    file.write_text("mine")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(place))
        for path in (place, file, tmp_path / "absent"):
            wake.remove_dead(str(path))
        assert place.is_socket()
    assert file.read_text() == "mine"
    wake.remove_dead(str(place))
    assert not place.exists()
