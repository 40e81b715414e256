"""The input side of a child, as the host uses it, whatever the driver: `of` gives the one that fits.

What a system cannot tell is said by `sees_reading` and `answers_queries`, never guessed. Runs in hosts: stdlib only.
"""

from coordinate_agents.sessions.drivers.base import Child

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to load
    from typing import Protocol

    class Input(Protocol):
        """A terminal, a console, or a pipe. Every method works, or says that it cannot; none raises but where said."""

        @property
        def has_modes(self) -> bool:
            """It is a terminal: it has a size and takes keys."""

        @property
        def sees_reading(self) -> bool:
            """`unread` knows what the program has read; otherwise only what the system has taken."""

        @property
        def answers_queries(self) -> bool:
            """The host answers what the program asks its terminal; otherwise the system's console does."""

        def write(self, data: bytes) -> int:
            """How many bytes were taken; 0 when there is no room. Raises: OSError when nobody reads any more."""

        def is_line_mode(self) -> bool: ...
        def unread(self) -> int | None: ...
        def foreground(self) -> int | None:
            """The process group that Ctrl-C would reach; None where there is no such thing."""

        def interrupt(self) -> None:
            """What Ctrl-C does. Raises: OSError when there is nobody to be interrupted."""

        def redraw(self) -> None:
            """Make a program that draws a screen draw it anew, where that can be asked."""

        def resize(self, columns: int, rows: int) -> None:
            """Raises: OSError."""


# The kernel keeps so much of an unfinished line in line mode and drops the rest without a word (N_TTY_BUF_SIZE - 1).
MAX_LINE_BYTES = 4095


def of(child: Child) -> "Input | None":
    """The child's input; None when nothing can be typed into it."""
    if child.console is not None:
        return child.console
    if child.is_terminal:
        from coordinate_agents.sessions.host.terminal import Terminal

        return Terminal(child.output, child.pid)
    if child.is_input_open:
        from coordinate_agents.sessions.host.terminal import Pipe

        return Pipe(child.stdin, child.pid)
    return None
