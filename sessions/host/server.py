"""The host's socket: one JSON object per line, version first, for the owner of the Session alone.

Many clients; each has bounded buffers, and one that does not read is dropped, so nobody can stop the host from draining
the terminal. What a request means is decided by the function given to the server.
"""

import contextlib
import json
import os
import selectors
import socket
import struct
from collections.abc import Callable

from coordinate_agents.sessions import address as addresses

VERSION = 1
MAX_LINE_BYTES = 1 << 20
MAX_BACKLOG_BYTES = 4 << 20
MAX_CLIENTS = 256
# Connections the kernel keeps while the host is busy; it takes them in one go.
_BACKLOG = 512

Message = dict[str, object]


class Client:
    """One connection. Answers and events are queued; `is_known` after a right token. `wants_activity`: is told when
    something was printed.
    """

    __slots__ = ("events", "incoming", "is_known", "outgoing", "socket", "wants_activity")

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.events = selectors.EVENT_READ  # what the selector was told to look for
        self.is_known = False
        self.wants_activity = False


class Server:
    """Listens at `address`, which holds the port once one was given.

    `handle(client, message)` returns the answer's fields, or None: it is given by `reply` later, or never.
    `on_gone(client)` is called for a client that hung up or was dropped; `on_room(client)` when all that was queued for
    it is sent.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        address: str,
        token: str,
        handle: Callable[[Client, Message], Message | None],
    ) -> None:
        self._selector = selector
        self.address = self._path = address
        self._token = token
        self._handle = handle
        self.on_gone: Callable[[Client], None] = lambda client: None
        self.on_room: Callable[[Client], None] = lambda client: None
        self._clients: set[Client] = set()
        self._listener: socket.socket | None = None
        self._inode = 0
        self.listen()

    def listen(self) -> None:
        """Make the socket, or make it again after a cleaner removed it."""
        port = addresses.port_of(self.address)
        if port is not None:
            if self._listener is None:
                self._listener, self.address = addresses.listen_on_port(port, _BACKLOG)
                self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
            return
        try:
            if self._listener is not None and os.stat(self._path).st_ino == self._inode:  # noqa: PTH116
                return
        except OSError:
            pass
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)  # noqa: PTH103, PTH120
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.setblocking(False)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)  # noqa: PTH108
            listener.bind(self._path)
            listener.listen(_BACKLOG)
            inode = os.stat(self._path).st_ino  # noqa: PTH116
        except OSError:
            if self._listener is None:
                raise
            return  # tried again later
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
        self._listener, self._inode = listener, inode
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def broadcast(self, message: Message, *, activity: bool = False) -> None:
        """Tell every known client; of activity only those that want to know."""
        for client in list(self._clients):
            if client.is_known and (client.wants_activity or not activity):
                self.send(client, message)

    def reply(self, client: Client, request: object, message: Message) -> None:
        """The answer to a request that was not answered at once; nothing when the client is gone."""
        self.send(client, {"id": request, **message})

    def has_listeners_for_activity(self) -> bool:
        return any(client.wants_activity for client in self._clients)

    def hide(self) -> None:
        """Remove the socket; clients that are connected stay."""
        if addresses.port_of(self.address) is not None:
            if self._listener is not None:
                self._selector.unregister(self._listener)
                self._listener.close()
            return
        with contextlib.suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108

    def close(self, bound_s: float) -> None:
        """Remove the socket and give what is queued to clients that take it within the bound."""
        self.hide()
        for client in list(self._clients):
            try:
                client.socket.settimeout(bound_s)
                client.socket.sendall(client.outgoing)
            except OSError:
                pass
            client.socket.close()

    def _accept(self, mask: int) -> None:
        assert self._listener is not None
        for _ in range(_BACKLOG):
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            if len(self._clients) >= MAX_CLIENTS or not _is_owner(connection):
                connection.close()
            else:
                self._add(Client(connection))

    def _add(self, client: Client) -> None:
        client.socket.setblocking(False)
        self._clients.add(client)
        self._selector.register(client.socket, selectors.EVENT_READ, lambda events: self._serve(client, events))

    def _serve(self, client: Client, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush(client)
            if client in self._clients and not client.outgoing:
                self.on_room(client)
        if events & selectors.EVENT_READ and client in self._clients:
            try:
                data = client.socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._drop(client)
                return
            client.incoming += data
            self._lines(client)

    def _lines(self, client: Client) -> None:
        while client in self._clients and (end := client.incoming.find(b"\n")) >= 0:
            line = bytes(client.incoming[:end])
            del client.incoming[: end + 1]
            self._request(client, line)
        if len(client.incoming) > MAX_LINE_BYTES:
            self._drop(client)

    def _request(self, client: Client, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or message.get("v") != VERSION:
            self.send(client, {"ok": False, "error": f"expected one JSON object per line with v={VERSION}"})
            return
        if not client.is_known:
            client.is_known = message.get("token") == self._token
            if not client.is_known:
                self._drop(client)
                return
        answer = self._handle(client, message)
        if answer is not None and not message.get("quiet"):
            self.send(client, {"id": message.get("id"), **answer})

    def send(self, client: Client, message: Message) -> None:
        """Queue one line. A client that let too much pile up is dropped."""
        if client not in self._clients:
            return
        client.outgoing += json.dumps({"v": VERSION, **message}, separators=(",", ":")).encode("ascii") + b"\n"
        if len(client.outgoing) > MAX_BACKLOG_BYTES:
            self._drop(client)
        else:
            self._flush(client)

    def _flush(self, client: Client) -> None:
        try:
            sent = client.socket.send(client.outgoing)
            del client.outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.outgoing else 0)
        if events != client.events:
            client.events = events
            self._selector.modify(client.socket, events, lambda seen: self._serve(client, seen))

    def _drop(self, client: Client) -> None:
        if client not in self._clients:
            return
        self._clients.discard(client)
        self.on_gone(client)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.socket)
        client.socket.close()


def _is_owner(connection: socket.socket) -> bool:
    """Whether the peer runs as our own user, where that can be known. Source: unix(7), SO_PEERCRED."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or connection.family == socket.AF_INET:
        return True
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return bool(uid == os.geteuid())
