"""What every driver needs: the start value, the child value, and the steps between fork and exec.

Runs in hosts: stdlib only. The steps of the child side run in the forked child, before exec; they must not raise
anything but OSError and must not touch the host's loop.
"""

import io
import os
import signal
import sys

from coordinate_agents.sessions import cgroup
from coordinate_agents.sessions.process import PR_SET_PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinate_agents.sessions.host.inputs import Input

ROWS, COLUMNS = 40, 120


class NoTerminal(OSError):
    """The system has no pseudo terminal to give."""


class Start:
    """What to execute: the file `executable`, which sees `argv`. `stdin` None: the terminal for a PTY, else empty, or a
    pipe that stays open when `is_input_open`. `size` is rows and columns of a terminal.
    """

    __slots__ = (
        "argv",
        "cgroup",
        "cwd",
        "env",
        "executable",
        "is_input_open",
        "ptyprocess_path",
        "size",
        "stdin",
        "umask",
    )

    def __init__(
        self,
        executable: str,
        argv: list[str],
        cwd: str,
        env: dict[str, str],
        stdin: bytes | None,
        umask: int,
        ptyprocess_path: str,
    ) -> None:
        self.executable = executable
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.stdin = stdin
        self.umask = umask
        self.ptyprocess_path = ptyprocess_path
        self.is_input_open = False
        self.cgroup = ""
        self.size = (ROWS, COLUMNS)


class Child:
    """A started child. `output` and `stdin` are non-blocking descriptors of the host; -1 when there is none.

    `keep` holds what must live as long as the child (a library object that owns the descriptor). `is_terminal`:
    `output` is also where input is typed. `is_input_open`: `stdin` is a pipe for input that comes later. `errors` is
    the child's stderr where the driver keeps it apart. `console`: what is typed into where the system has no terminal
    that is a descriptor.
    """

    __slots__ = ("console", "errors", "is_input_open", "is_terminal", "keep", "output", "pid", "stdin")

    def __init__(self, pid: int, output: int, stdin: int, keep: object = None) -> None:
        self.pid = pid
        self.output = output
        self.stdin = stdin
        self.keep = keep
        self.is_terminal = False
        self.is_input_open = False
        self.errors = -1
        self.console: Input | None = None

    def reader(self) -> "Callable[[memoryview], int | None]":
        """Puts output into a buffer; how many bytes: 0 at the end of all output, None when there is nothing now.

        It may raise OSError. A method of the interpreter's own, since a flood calls it for every 4 KiB.
        """
        return io.FileIO(self.output, "rb", closefd=False).readinto


# Python ignores the first two, the host some of the others, and a shell that starts graph-run in the background SIGINT
# and SIGQUIT; an ignored signal would stay ignored in the agent.
_RESET: "tuple[signal.Signals, ...]" = (
    ()
    if sys.platform == "win32"
    else (
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGCHLD,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    )
)


def prepare(start: Start, host_pid: int) -> None:
    """Child side: default signals, the user's umask, and death together with the host.

    The host may have died between fork and prctl; then no signal would ever come, hence the second look.
    """
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(start.umask)
    if start.cgroup:
        cgroup.enter(start.cgroup)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != host_pid:
        os._exit(1)


def stdin_pipe() -> tuple[int, int]:
    """A close-on-exec pipe for the child's stdin; the writing end does not block."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    return reading, writing
