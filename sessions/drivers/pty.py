"""The preferred driver: the child leads a session of its own on a pseudo terminal. Runs in hosts.

A prompt given as stdin does not go through the terminal: the kernel's line discipline keeps the first 4095 bytes of an
unread line and drops the rest without a word. It goes through a pipe, and only output and the controlling terminal are
the PTY.
"""

import os
import sys
from collections.abc import Callable
from errno import EINVAL
from types import ModuleType

from coordinate_agents.sessions.drivers.base import Child, NoTerminal, Start, prepare, stdin_pipe


def spawn(start: Start) -> Child:
    """Fork a PTY and execute. Blocks until exec succeeded or failed. Raises: NoTerminal; OSError from chdir or exec."""
    _try_terminal()
    library = load_library(start.ptyprocess_path)
    child_in = host_in = -1
    if start.stdin is not None:
        child_in, host_in = stdin_pipe()
    try:
        terminal = library.PtyProcess.spawn(
            [start.executable],
            dimensions=start.size,
            preexec_fn=_execution(start, child_in, os.getpid()),
            pass_fds=(child_in,) if child_in >= 0 else (),
        )
    except Exception as error:
        if host_in >= 0:
            os.close(host_in)
        # The library carries a failure of the child as text.
        raise OSError(EINVAL, str(error)) from error
    finally:
        if child_in >= 0:
            os.close(child_in)
    os.set_blocking(terminal.fd, False)
    # Its destructor would wait, and signal a pid that may be somebody else's by then.
    terminal.closed = True
    child = Child(terminal.pid, terminal.fd, host_in, terminal)
    child.is_terminal = True
    return child


def _try_terminal() -> None:
    """The library does not say why it failed, so a terminal is made once before. Raises: NoTerminal."""
    try:
        for descriptor in os.openpty():
            os.close(descriptor)
    except OSError as error:
        raise NoTerminal(error.errno, f"no terminal can be made: {error}") from error


def _execution(start: Start, child_in: int, host: int) -> Callable[[], None]:
    """The child's steps, in the library's hook and up to exec: it would not report a folder that cannot be entered, and
    cannot execute a file under another name. A failure in the hook reaches the host as an exception.
    """

    def execute() -> None:
        prepare(start, host)
        if child_in >= 0:
            os.dup2(child_in, 0)
        os.chdir(start.cwd)
        os.execve(start.executable, start.argv, start.env)

    return execute


def load_library(path: str) -> ModuleType:
    """ptyprocess from its recorded place, behind the stdlib on the path."""
    if path not in sys.path:
        sys.path.append(path)
    # It wants one small function of shutil, and brings its own where shutil cannot be imported. shutil costs a quarter
    # of the host's start (bz2, lzma, zlib).
    hide = "shutil" not in sys.modules
    if hide:
        sys.modules["shutil"] = None  # type: ignore[assignment]
    try:
        import ptyprocess
    finally:
        if hide:
            del sys.modules["shutil"]
    library: ModuleType = ptyprocess
    return library
