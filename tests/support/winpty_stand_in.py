"""pywinpty's PTY with the same names and habits, over a real terminal of Linux and real children.

`C:\\some\\folder\\NAME.exe` is the file /some/folder/NAME. A host that runs `install` first uses the driver of Windows
over it (`bootstrap` is such a host's program). What is not seen this way is pywinpty itself and Windows.
"""

import codecs
import fcntl
import os
import pty
import select
import struct
import termios
import threading
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import ClassVar

from windows import split

from coordinate_agents.sessions.drivers import DRIVERS, base, winpty

BOOTSTRAP = (
    "import gc, sys; gc.disable(); sys.path.extend({path!r});"
    " import winpty_stand_in; winpty_stand_in.install(); from {host} import main; main()"
)


def on_windows(path: str) -> str:
    return "C:" + path.replace("/", "\\")


def here(path: str) -> str:
    return "/".join(["", *PureWindowsPath(path).parts[1:]]) or "/"


class StandIn:
    """`in_child` runs in the child before it becomes the program."""

    made: ClassVar[list["StandIn"]] = []
    in_child: ClassVar[Callable[[], None]] = staticmethod(lambda: None)

    def __init__(self, cols: int, rows: int, backend: int | None = None) -> None:
        self.size = (cols, rows)
        self.backend = backend
        self.pid: int | None = None
        self.fd: int | None = None
        self._never = threading.Event()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._code: int | None = None
        self.made.append(self)

    def spawn(self, appname: str, cmdline: str | None = None, cwd: str | None = None, env: str | None = None) -> bool:
        self.line, self.cwd, self.env = f"{appname} {cmdline or ''}", cwd, env
        argv = split(self.line)
        program = here(argv[0].removesuffix(".exe"))
        variables = dict(each.split("=", 1) for each in (env or "").split("\0") if each)
        failure, failing = os.pipe()
        pid, self._terminal = pty.fork()
        if pid == 0:
            try:
                self.in_child()
                os.chdir(here(cwd or "C:\\"))
                os.execve(program, [program, *argv[1:]], variables)
            except BaseException as error:
                os.write(failing, str(error).encode())
            finally:
                os._exit(127)
        os.close(failing)
        os.set_inheritable(self._terminal, False)
        with os.fdopen(failure, "rb") as file:
            message = file.read().decode()
        if message:
            os.waitpid(pid, 0)
            os.close(self._terminal)
            raise RuntimeError(message)
        self.pid, self.fd = pid, os.pidfd_open(pid)
        self.set_size(*self.size)
        return True

    def read(self, blocking: bool = False) -> str:
        """Never says that the output ended, as it may be there."""
        while True:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:
                self._never.wait()
                raise RuntimeError("Standard out reached EOF") from None
            if text := self._decoder.decode(data):
                return text

    def write(self, to_write: str) -> int:
        data = to_write.encode()
        at = 0
        while at < len(data):
            at += os.write(self._terminal, data[at:])
        return at

    def set_size(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def get_exitstatus(self) -> int | None:
        """Does not reap: a host on Linux does that."""
        try:
            seen = os.waitid(os.P_PID, self.pid or 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self._code
        if seen is not None:
            self._code = seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status
        return self._code

    def cancel_io(self) -> bool:
        self._never.set()
        return True

    def end(self) -> None:
        """For tests without a host: reap the child."""
        self.cancel_io()
        if self.pid is not None:
            os.waitpid(self.pid, 0)


def wait_for_handle(handle: int) -> None:
    select.select([handle], [], [])
    os.close(handle)


def spawn(start: base.Start) -> base.Child:
    """The driver of Windows, told a path of Windows for each of Linux. A child as every other driver's."""
    host, named = os.getpid(), (start.executable, start.cwd)
    StandIn.in_child = staticmethod(lambda: base.prepare(start, host))
    start.executable, start.cwd = on_windows(start.executable) + ".exe", on_windows(start.cwd)
    try:
        return winpty.spawn(start)
    except base.NoTerminal:
        start.executable, start.cwd = named
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, named[0]) from error


def install() -> None:
    """In a host: the driver `pty` is the one of Windows over this stand-in."""
    DRIVERS["pty"] = __name__
    winpty.binding = lambda: StandIn  # type: ignore[assignment, return-value]
    winpty.wait_for_handle = wait_for_handle


def bootstrap(base_folder: Path, host_words: str) -> str:
    """The program of a host that installs this first."""
    return BOOTSTRAP.format(path=[str(base_folder), str(Path(__file__).parent)], host=host_words)
