"""Holds the lock that says that a child has ports, until this process ends. Runs in hosts: stdlib only.

Who gives ports to another child asks for them alone, and is refused while any such lock stands. Where the system has no
locks of open files nothing is held: the driver's own lock is all there is then.
"""

import fcntl
import os
import struct

# struct flock on 64-bit Linux, as in graph/store/locks.py, which is not imported here. Source: fcntl(2).
_FLOCK = "hhqqi4x"


def hold(ports: "dict[str, object]") -> None:
    """Hold the range `{path, first, count}`. A lock that cannot be had stops nobody's work."""
    if not hasattr(fcntl, "F_OFD_SETLK"):
        return
    try:
        # Never closed: the kernel lets go of it with this process.
        descriptor = os.open(str(ports["path"]), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        wanted = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, ports["first"], ports["count"], 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
    except OSError:
        return
