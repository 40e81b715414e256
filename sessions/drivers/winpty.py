"""The terminal driver on Windows: a pseudo console, through pywinpty's binding. Runs in hosts, there only.

Only the binding (`winpty.PTY`) is used. The library's `PtyProcess` looks the program up again by itself, quotes for
programs only (a batch file would read other arguments), and polls.

Facts of the binding (pywinpty 3.1, winpty-rs 2.0): the name it is given becomes the beginning of the command line as it
is, so it is given in quotes; `fd` is the handle of the process; a blocking read may never return once the process
ended, so the handle is what says that it ended; what it reads is text already.
"""

import codecs
import os
import queue
import socket
import sys
import threading
from collections.abc import Callable
from errno import EAGAIN, EINVAL, EPIPE
from typing import Final, Protocol

from coordinate_agents.sessions.drivers.base import Child, NoTerminal, Start
from coordinate_agents.sessions.windows import names, programs, quoting
from coordinate_agents.sessions.windows.kernel import Kernel32

# The console may still move the last lines when the process has ended.
_DRAIN_S: Final = 0.5
# What may wait for a console that takes nothing.
_QUEUED_BYTES: Final = 64 << 10
_CONPTY: Final = 0


class Binding(Protocol):
    """What is used of `winpty.PTY`, with its names."""

    def __init__(self, cols: int, rows: int, backend: int | None = None) -> None: ...
    def spawn(
        self, appname: str, cmdline: str | None = None, cwd: str | None = None, env: str | None = None
    ) -> bool: ...
    def set_size(self, cols: int, rows: int) -> None: ...
    def read(self, blocking: bool = False) -> str: ...
    def write(self, to_write: str) -> int: ...
    def get_exitstatus(self) -> int | None: ...
    def cancel_io(self) -> bool: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def fd(self) -> int | None: ...


class Console:
    """A pseudo console whose output comes out of a socket; keeps it and its threads together. It is an `inputs.Input`.

    `output` is non-blocking and ends when the process has ended and everything it printed was read, or was given up
    on. What is typed waits in a bounded queue for a thread, since the binding may block. `exit_code` is None as long as
    the process lives.
    """

    has_modes = True
    # A program's modes and what it has read are its own console's affair, and that answers its queries too.
    sees_reading = answers_queries = False

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self.output, self._writing = socket.socketpair()
        self.output.setblocking(False)
        self._is_read = threading.Event()
        self._typed: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._lock = threading.Lock()
        self._is_closed = False
        for work in (self._pump, self._watch, self._type):
            threading.Thread(target=work, daemon=True).start()

    @property
    def exit_code(self) -> int | None:
        return self._binding.get_exitstatus()

    def read_into(self, place: memoryview) -> int | None:
        """Put what was printed and not read yet there: how many bytes, 0 at the end, None when there is nothing now."""
        try:
            return self.output.recv_into(place)
        except BlockingIOError:
            return None

    def write(self, data: bytes) -> int:
        """How many bytes were taken, to be typed in order; 0 when too many wait. Raises: OSError after the end."""
        with self._lock:
            if self._is_closed:
                raise OSError(EPIPE, os.strerror(EPIPE))
            taken = data[: _QUEUED_BYTES - self._waiting_bytes]
            self._waiting_bytes += len(taken)
        self._typed.put(taken)
        return len(taken)

    def unread(self) -> int:
        """Bytes that the console has not taken yet."""
        return self._waiting_bytes

    def is_line_mode(self) -> bool:
        """A console cuts no line silently; its mode cannot be seen from outside."""
        return False

    def foreground(self) -> None:
        """There are no process groups with a terminal."""
        return

    def interrupt(self) -> None:
        """The console makes an event of the key, unless the program took that over. Raises: OSError."""
        if self.write(b"\x03") == 0:
            raise OSError(EAGAIN, "too much input is waiting for the program already")

    def redraw(self) -> None:
        """The console draws for us; what it shows does not depend on who looks."""

    def resize(self, columns: int, rows: int) -> None:
        """Raises: OSError."""
        try:
            self._binding.set_size(columns, rows)
        except Exception as error:  # the library's own class
            raise OSError(EINVAL, str(error)) from error

    def close(self) -> None:
        """Nothing more is typed or printed. Does not end the process."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._typed.put(None)
        self._writing.shutdown(socket.SHUT_RDWR)

    def _pump(self) -> None:
        """In a thread of its own: the binding can only be waited for by blocking."""
        try:
            while True:
                text = self._binding.read(blocking=True)
                self._writing.sendall(text.encode("utf-8", "replace"))
        except Exception:  # the binding's own error says "end of file"; a closed socket that nobody reads any more
            self._is_read.set()

    def _type(self) -> None:
        """In a thread of its own: a full console blocks. A character may be cut over two pieces."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while (data := self._typed.get()) is not None:
            try:
                if text := decoder.decode(data):
                    self._binding.write(text)
            except Exception:  # the process has ended
                self._is_closed = True
            with self._lock:
                self._waiting_bytes -= len(data)

    def _watch(self) -> None:
        """End the output when the process has ended, also when the binding never says so."""
        wait_for_handle(self._binding.fd or 0)
        if not self._is_read.wait(_DRAIN_S):
            try:
                self._binding.cancel_io()
            except Exception:  # nothing was being read
                self._is_read.set()
        self.close()


class ConsoleChild(Child):
    """A child whose output is a socket, which is no descriptor that can be read as a file on Windows."""

    __slots__ = ("_console",)

    def __init__(self, pid: int, console: Console) -> None:
        super().__init__(pid, console.output.fileno(), -1, console)
        self.console = self._console = console
        self.is_terminal = True

    def reader(self) -> Callable[[memoryview], int | None]:
        return self._console.read_into


def spawn(start: Start) -> Child:
    """Start on a pseudo console. Raises: NoTerminal; OSError when the program or its arguments cannot be started."""
    if start.stdin is not None:
        # A pseudo console gives its process no other input than the keyboard, which cuts long lines.
        raise NoTerminal(EINVAL, "a prompt on stdin needs a pipe, and a pseudo console takes none")
    problem = names.folder_problem(start.cwd)
    if problem is not None:
        raise OSError(EINVAL, problem, start.cwd)
    try:
        line = programs.start_line(start.executable, start.argv[1:], system_root=system_root(start.env))
    except quoting.CannotQuote as error:
        raise OSError(EINVAL, str(error), start.executable) from error
    rows, columns = start.size
    try:
        console = binding()(columns, rows, backend=_CONPTY)
    except Exception as error:  # the library's own class, which is not imported here
        raise NoTerminal(EINVAL, f"no pseudo console can be made: {error}") from error
    env = "".join(f"{name}={value}\0" for name, value in start.env.items())
    try:
        is_started = console.spawn(f'"{line.application}"', cmdline=line.rest or None, cwd=start.cwd, env=env)
    except Exception as error:
        raise OSError(EINVAL, str(error), start.executable) from error
    if not is_started or console.pid is None:
        raise OSError(EINVAL, "the process was not started", start.executable)
    return ConsoleChild(console.pid, Console(console))


def system_root(env: "dict[str, str]") -> str:
    """Windows' own folder, by the host's environment and not by the child's."""
    return os.environ.get("SYSTEMROOT") or env.get("SYSTEMROOT") or "C:\\Windows"


def binding() -> type[Binding]:
    """The library's class. Raises: ImportError."""
    __import__("winpty")
    found: type[Binding] = sys.modules["winpty"].PTY
    return found


def wait_for_handle(handle: int) -> None:
    """Return when the process behind the handle has ended. Source: WaitForSingleObject, INFINITE."""
    Kernel32().wait(handle, -1)
