"""What a host can see of and do to the input side of its child: a terminal, or the pipe that is its stdin.

Both are `inputs.Input`.
"""

import contextlib
import fcntl
import os
import signal
import struct
import termios

# Source: ioctl_tty(2), TIOCGPTPEER: the other end of the terminal, whatever was mounted over /dev/pts.
_PEER = getattr(termios, "TIOCGPTPEER", 0x5441)


class Terminal:
    """The host's end of a PTY. Every method works, or says that it cannot; none raises but `write`."""

    has_modes = sees_reading = answers_queries = True

    def __init__(self, descriptor: int, child_pid: int) -> None:
        self.descriptor = descriptor
        self._child_pid = child_pid

    def write(self, data: bytes) -> int:
        """How many bytes were taken; 0 when there is no room. Raises: OSError when nobody has the terminal open."""
        try:
            return os.write(self.descriptor, data)
        except BlockingIOError:
            return 0

    def is_line_mode(self) -> bool:
        return bool(self._local_modes() & termios.ICANON)

    def interrupt_byte(self) -> bytes | None:
        """What must be typed to interrupt; None when typing does not interrupt."""
        try:
            modes = termios.tcgetattr(self.descriptor)
        except termios.error:
            return None
        key: bytes = modes[6][termios.VINTR]
        return key if modes[3] & termios.ISIG and key != b"\0" else None

    def unread(self) -> int | None:
        """Bytes typed that the program has not read; in line mode of finished lines only. None: cannot be known."""
        try:
            peer = fcntl.ioctl(self.descriptor, _PEER, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return int(struct.unpack("i", fcntl.ioctl(peer, termios.FIONREAD, bytes(4)))[0])
        except OSError:
            return None
        finally:
            os.close(peer)

    def foreground(self) -> int:
        """The group that Ctrl-C would reach; the child's own when that cannot be known."""
        try:
            group = int(struct.unpack("i", fcntl.ioctl(self.descriptor, termios.TIOCGPGRP, bytes(4)))[0])
        except OSError:
            group = 0
        return group if group > 1 else self._child_pid

    def interrupt(self) -> None:
        """By the key where the terminal makes a signal of it, else by the signal. Raises: OSError."""
        key = self.interrupt_byte()
        if key is None or self.write(key) == 0:
            os.killpg(self.foreground(), signal.SIGINT)

    def redraw(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.foreground(), signal.SIGWINCH)

    def resize(self, columns: int, rows: int) -> None:
        """The kernel sends SIGWINCH when the size changes. Raises: OSError."""
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _local_modes(self) -> int:
        try:
            return int(termios.tcgetattr(self.descriptor)[3])
        except termios.error:
            return 0


class Pipe:
    """The host's end of the pipe that is the child's stdin. It has no modes and no size."""

    has_modes = answers_queries = False
    sees_reading = True

    def __init__(self, descriptor: int, child_pid: int) -> None:
        self.descriptor = descriptor
        self._child_pid = child_pid

    def write(self, data: bytes) -> int:
        try:
            return os.write(self.descriptor, data)
        except BlockingIOError:
            return 0

    def is_line_mode(self) -> bool:
        return False

    def unread(self) -> int | None:
        try:
            return int(struct.unpack("i", fcntl.ioctl(self.descriptor, termios.FIONREAD, bytes(4)))[0])
        except OSError:
            return None

    def foreground(self) -> int:
        return self._child_pid

    def interrupt(self) -> None:
        os.killpg(self._child_pid, signal.SIGINT)

    def redraw(self) -> None:
        """A pipe shows nothing."""

    def resize(self, columns: int, rows: int) -> None:
        raise OSError("a pipe has no size")
