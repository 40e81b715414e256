"""Where a host is asked: a socket in a folder of the owner's, or a port of this machine's loopback.

The second is for systems that give Python no sockets with a path (Windows). Anybody on the machine can reach a port, so
there the token alone says who may speak. Runs in hosts: stdlib only.
"""

import socket
import sys

LOOPBACK = "127.0.0.1"
_PREFIX = f"tcp:{LOOPBACK}:"
# Any free port; the host records which.
ANY_PORT = f"{_PREFIX}0"


def has_paths() -> bool:
    """Whether this system has sockets with a path."""
    return hasattr(socket, "AF_UNIX")


def port_of(address: str) -> int | None:
    """The port of an address on the loopback; None for a path."""
    return int(address.removeprefix(_PREFIX)) if address.startswith(_PREFIX) else None


def listen_on_port(port: int, backlog: int) -> tuple[socket.socket, str]:
    """A socket that listens, and its address with the port that it got. Raises: OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":  # else another program could listen on the same port as well
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        listener.setblocking(False)
        listener.bind((LOOPBACK, port))
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    return listener, f"{_PREFIX}{listener.getsockname()[1]}"
