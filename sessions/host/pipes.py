"""The pipes of a child that is spoken to: what is written to its stdin, and its stderr.

Both without blocking: what the child does not take yet is written when it can take more. Its stdout is the custody's.
"""

import os
import selectors

from coordinate_agents.sessions.drivers.base import Child

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from collections.abc import Callable

_WRITE_BYTES = 65536
_READ_BYTES = 65536
# What is kept of the child's stderr, and what of it is shown where something failed.
_ERRORS_BYTES = 64 << 10
_SHOWN_ERRORS_BYTES = 4 << 10


class Pipes:
    """`on_room` is called when the child took what was written. `on_errors` gets its stderr; None: it is kept here."""

    def __init__(
        self,
        child: Child,
        selector: selectors.BaseSelector,
        on_room: "Callable[[], None]",
        on_errors: "Callable[[bytes], None] | None",
    ) -> None:
        self._child = child
        self._selector = selector
        self._on_room = on_room
        self._on_errors = on_errors
        self._out = memoryview(b"")
        self._errors = bytearray()
        self._is_ending = False
        selector.register(child.errors, selectors.EVENT_READ, lambda _: self._read_errors())

    @property
    def is_written(self) -> bool:
        return not self._out

    def end(self) -> None:
        """Close its stdin once everything is written."""
        self._is_ending = True
        self.write(b"")

    def write(self, data: bytes) -> bool:
        """Write it as far as the child takes it; False when it closed its stdin."""
        child = self._child
        if child.stdin < 0:
            return True
        if data:
            self._out = memoryview(bytes(self._out) + data)
        try:
            while self._out:
                self._out = self._out[os.write(child.stdin, self._out[:_WRITE_BYTES]) :]
        except BlockingIOError:
            pass
        except OSError:
            self._close()
            return False
        if self._is_ending and not self._out:
            self._close()
            return True
        is_registered = child.stdin in self._selector.get_map()
        if self._out and not is_registered:
            self._selector.register(child.stdin, selectors.EVENT_WRITE, lambda _: self._on_room())
        elif not self._out and is_registered:
            self._selector.unregister(child.stdin)
        return True

    def drain(self) -> None:
        """Read what the kernel still has of its stderr."""
        for _ in range(_ERRORS_BYTES // _READ_BYTES + 1):
            if self._child.errors >= 0:
                self._read_errors()

    def take_errors(self) -> list[str]:
        """The last lines of its stderr, each once."""
        text = bytes(self._errors[-_SHOWN_ERRORS_BYTES:]).decode("utf-8", "replace")
        self._errors.clear()
        return [line for line in text.splitlines() if line.strip()]

    def _close(self) -> None:
        if self._child.stdin in self._selector.get_map():
            self._selector.unregister(self._child.stdin)
        os.close(self._child.stdin)
        self._child.stdin = -1
        self._out = memoryview(b"")

    def _read_errors(self) -> None:
        try:
            data = os.read(self._child.errors, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._child.errors)
            os.close(self._child.errors)
            self._child.errors = -1
        elif self._on_errors is not None:
            self._on_errors(data)
        else:
            self._errors += data
            del self._errors[:-_ERRORS_BYTES]
