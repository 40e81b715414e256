"""The driver's side of requests: sleeps until somebody nudges, then reads the open ones.

Needs anyio, so it stands apart from what read verbs import. Answers either with the events that a request caused
(`Store.append(results=…)`, so that a crash never carries it out twice) or alone (`answer`).
"""

import time
import uuid
from collections.abc import Callable
from typing import Final, Self

import anyio

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.store.lease import Lease
from coordinate_agents.graph.store.requests import open_requests
from coordinate_agents.graph.store.rows import RequestResult, RequestRow
from coordinate_agents.graph.store.store import Store
from coordinate_agents.graph.store.wake import WakeSocket, remove_dead

# A cleaner may remove the socket; authors wait 5 s, so it must be back well before.
_LOOK_AFTER_SOCKET_S: Final = 2.0


class RequestInbox:
    """The requests of the graph whose lease this process holds. One per lease.

    `on_nudge`: told of every nudge, also of one that comes with no request: something else is to be looked at.
    """

    def __init__(self, store: Store, lease: Lease, *, on_nudge: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._lease = lease
        self._on_nudge = on_nudge
        self._seen: set[int] = set()
        if lease.left_socket is not None:
            remove_dead(lease.left_socket)
        self._socket = self._listen()

    @property
    def fd(self) -> int:
        """Readable when somebody nudges; for a caller that waits on descriptors itself."""
        return self._socket.fd

    def pending(self) -> tuple[RequestRow, ...]:
        """Every open request, oldest first, whether returned before or not."""
        return open_requests(self._store, self._lease.graph_id)

    async def next(self) -> tuple[RequestRow, ...]:
        """Wait for open requests that this inbox has not returned yet; never empty. May be cancelled at any time."""
        while True:
            if self._socket.drain():
                self._on_nudge()
            fresh = tuple(row for row in self.pending() if row.id not in self._seen)
            if fresh:
                self._seen.update(row.id for row in fresh)
                return fresh
            with anyio.move_on_after(_LOOK_AFTER_SOCKET_S):
                await anyio.wait_readable(self._socket.fd)
            if not self._socket.is_reachable():
                self._socket.close()
                self._socket = self._listen()

    def answer(self, result: RequestResult) -> None:
        """Answer a request that causes no event. Raises: STALE_CLAIM."""
        self._store.answer(self._lease.graph_id, self._lease.generation, result, now=time.time())
        crash_point("request.answered")

    def close(self) -> None:
        """Stop listening; open requests stay for the next driver or are withdrawn by their authors."""
        self._socket.close()
        self._lease.announce(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _listen(self) -> WakeSocket:
        # A name that nobody can guess: in a shared folder nobody can take it first.
        made = WakeSocket(f"{uuid.uuid4().hex[:16]}.sock")
        self._lease.announce(str(made.path))
        return made
