"""The live view on this process's terminal: `TerminalView` implements the port `LiveView`.

The terminal is given back as it was on every way out: the key, Ctrl-C, SIGTERM, SIGHUP, SIGINT, SIGQUIT, a bug of ours
(told like every other, with its traceback in a file), and a terminal that went away.
"""

import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from coordinate_agents.graph.errors import EXIT_INTERRUPTED, GraphError
from coordinate_agents.graph.runtime import Runtime

if TYPE_CHECKING:
    from coordinate_agents.cli.watch.app import WatchApp

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
# A terminal that takes nothing any more would hold the process for ever.
_LEAVE_BOUND_S: Final = 3.0
_DUMB: Final = ("", "dumb", "unknown")


def view_here(open_runtime: Callable[[], Runtime]) -> "TerminalView | None":
    """The view; None where standard input, output or error is no terminal, or it cannot move its cursor."""
    try:
        is_terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    except (AttributeError, ValueError):
        return None
    if not is_terminal or os.environ.get("TERM", "") in _DUMB:
        return None
    return TerminalView(open_runtime)


class TerminalView:
    def __init__(self, open_runtime: Callable[[], Runtime]) -> None:
        self._open_runtime = open_runtime

    def show(self, graph: str) -> None:
        """See the port."""
        if find_spec("textual") is None:
            raise GraphError(
                "UNSUPPORTED_CAPABILITY",
                "The live view needs the extra tui: the package textual is not installed.",
                kept="everything as it is",
                next="pip install 'coordinate-agents[tui]'",
            )
        from coordinate_agents.cli.watch.app import WatchApp

        app = WatchApp(self._open_runtime, graph)
        with _restored(), _heeding(app) as heard:
            # Its own mouse reports would take the terminal's selection away, with which commands are copied.
            app.run(mouse=False)
        if app.failure is not None:
            raise app.failure
        if heard or app.return_code:
            raise KeyboardInterrupt


@contextmanager
def _restored() -> Iterator[None]:
    """The modes of the terminal afterwards as before, whatever happened within."""
    modes = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield
    finally:
        _restore(modes)


def _restore(modes: list[Any]) -> None:
    with suppress(OSError, termios.error):
        if os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp():
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, modes)


@contextmanager
def _heeding(app: "WatchApp") -> Iterator[list[int]]:
    """Leave the view at a signal that ends programs; which ones came. The second one of a kind need not wait."""
    heard: list[int] = []
    modes = termios.tcgetattr(sys.stdin.fileno())

    def heed(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if app.joined is not None:
            with suppress(OSError):
                app.joined.send_signal(number)
        _end_in_time(modes)
        app.leave()

    before = {number: signal.signal(number, heed) for number in _ENDING}
    stop_and_go = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)}
    try:
        yield heard
    finally:
        for number, handler in (*before.items(), *stop_and_go.items()):
            signal.signal(number, handler)


def _end_in_time(modes: list[Any]) -> None:
    def end() -> None:
        _restore(modes)
        os._exit(EXIT_INTERRUPTED)

    timer = threading.Timer(_LEAVE_BOUND_S, end)
    timer.daemon = True
    timer.start()
