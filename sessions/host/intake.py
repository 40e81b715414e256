"""How what a child prints comes into the host: straight into the ring, in rounds.

A round takes what is there. A terminal gives 4 KiB at a time, and looking after clients and deadlines costs as much as
several of those; so in a flood a round waits a moment for more, unless somebody else wants something meanwhile. It ends
after so many bytes or milliseconds: nobody who asks the host waits longer than that.
"""

import select
import time

from coordinate_agents.sessions.drivers.base import Child
from coordinate_agents.sessions.host.output import Output

_ROUND_BYTES = 256 << 10
# Below notice for whoever asks, and some hundred reads of a terminal.
_ROUND_S = 0.004
# What a terminal gives at most in one read: less than that is no flood, and is shown at once.
_FLOOD_BYTES = 4095
# A program that floods has more to print within this; one that paused is not kept waiting for longer.
_PAUSE_S = 0.001
_PIECE_BYTES = 65536
_PIECES = 64


class Intake:
    """Reads one child's output; what it could not read yet stays with the kernel."""

    def __init__(self, child: Child, output: Output, others: "int | None" = None) -> None:
        """`others`: a descriptor that is readable when anybody else wants something of the host."""
        self._descriptor = child.output
        self._watched = [child.output] if others is None else [child.output, others]
        self._read = child.reader()
        self._output = output
        self._most = min(_ROUND_BYTES, output.ring.size)

    def take(self) -> bool:
        """Take one round into the output. False: nothing more comes, unless the child opens its terminal again."""
        output, begin = self._output, self._output.total
        until = float("inf")
        try:
            while (size := output.ring.fill(self._read, begin + self._most - output.total)) is None:
                if output.total - begin < _FLOOD_BYTES:
                    return True
                now = time.monotonic()
                until = min(until, now + _ROUND_S)
                if now >= until or self._descriptor not in select.select(self._watched, [], [], _PAUSE_S)[0]:
                    return True
        except OSError:  # EIO: the last process closed the terminal
            return False
        finally:
            output.took(begin)
        return size > 0

    def pieces(self) -> tuple[bytes, bool]:
        """One round for who makes something else of it, and whether more may come."""
        place = memoryview(bytearray(_PIECE_BYTES))
        found: list[bytes] = []
        size: int | None = 0
        try:
            for _ in range(_PIECES):
                if not (size := self._read(place)):
                    break
                found.append(bytes(place[:size]))
        except OSError:
            size = 0
        return b"".join(found), size != 0

    def wait(self, bound_s: float) -> bool:
        """Whether there is something to read, or the end, within the bound."""
        return bool(select.select([self._descriptor], [], [], bound_s)[0])
