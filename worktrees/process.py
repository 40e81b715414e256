"""Talks with one child process, bounded in time and output, and ends its whole process group.

Knows nothing of git. A child that ended is not waited for any longer, whatever it left behind holding its pipes.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import IO, Final

MAX_ERROR_BYTES: Final = 64 << 10
# Long enough for git to remove its lock files, short enough for a person who pressed Ctrl-C.
TERM_GRACE_S: Final = 2.0
_CHUNK: Final = 1 << 16
# More than a pipe holds, so that the last look takes everything; bounded, since a left-behind writer may never stop.
_CHUNKS_AT_ONCE: Final = 64


class TooLongError(Exception):
    """The child did not end in time."""


class TooMuchError(Exception):
    """The child wrote more than allowed."""


def exchange(child: subprocess.Popen[bytes], given: bytes, deadline: float, max_bytes: int) -> tuple[bytes, bytes]:
    """Feed and read the child until it has ended; then take what is in the pipes, without waiting for their end.

    A process that git left behind (a filter, a credential cache) may hold the pipes open for ever.
    """
    assert child.stdout is not None
    assert child.stderr is not None
    out, err = bytearray(), bytearray()
    sinks = {child.stdout.fileno(): out, child.stderr.fileno(): err}
    poll = select.poll()
    for fd in sinks:
        os.set_blocking(fd, False)
        poll.register(fd, select.POLLIN)
    rest = memoryview(given)
    if child.stdin is not None:
        os.set_blocking(child.stdin.fileno(), False)
        poll.register(child.stdin.fileno(), select.POLLOUT)
    with _exit_descriptor(child.pid) as exit_fd:
        if exit_fd is not None:
            poll.register(exit_fd, select.POLLIN)
        while not _has_exited(child.pid):
            rest = _feed(child, rest, poll)
            for fd, sink in sinks.items():
                _take(fd, sink, poll, max_bytes if sink is out else MAX_ERROR_BYTES)
            _check_bounds(out, max_bytes, deadline)
            # Without a descriptor for the exit (not Linux) a grandchild may hide it: look again every 50 ms.
            wait_s = deadline - time.monotonic() if exit_fd is not None else 0.05
            poll.poll(max(0, int(wait_s * 1000) + 1))
    for fd, sink in sinks.items():
        _take(fd, sink, None, max_bytes if sink is out else MAX_ERROR_BYTES)
    if len(out) > max_bytes:
        raise TooMuchError
    return bytes(out), bytes(err)


def end_group(child: subprocess.Popen[bytes], grace_s: float = TERM_GRACE_S) -> None:
    """TERM to the child's process group, KILL after the grace; the child is reaped. Harmless when it has ended."""
    if child.returncode is not None:
        return
    # The child is not reaped before the last signal, so its id cannot belong to another process.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
    _await_exit(child.pid, time.monotonic() + grace_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def close_pipes(child: subprocess.Popen[bytes]) -> None:
    pipes: tuple[IO[bytes] | None, ...] = (child.stdin, child.stdout, child.stderr)
    for pipe in pipes:
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _check_bounds(out: bytearray, max_bytes: int, deadline: float) -> None:
    if len(out) > max_bytes:
        raise TooMuchError
    if time.monotonic() >= deadline:
        raise TooLongError


def _feed(child: subprocess.Popen[bytes], rest: memoryview, poll: "select.poll") -> memoryview:
    """Write what fits; close the input when all was written or nobody reads it."""
    if child.stdin is None or child.stdin.closed:
        return rest
    fd = child.stdin.fileno()
    try:
        while rest:
            rest = rest[os.write(fd, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        pass
    poll.unregister(fd)
    child.stdin.close()
    return rest


def _take(fd: int, sink: bytearray, poll: "select.poll | None", limit: int) -> None:
    """Read what is there, a bounded number of chunks. Bytes past the limit are dropped, one is kept to show it."""
    for _ in range(_CHUNKS_AT_ONCE):
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            if poll is not None:
                with contextlib.suppress(KeyError):
                    poll.unregister(fd)
            return
        sink += chunk[: max(0, limit + 1 - len(sink))]


@contextlib.contextmanager
def _exit_descriptor(pid: int) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends; None where the system has none."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _has_exited(pid: int) -> bool:
    """Whether the child ended; it stays unreaped, so that its group can still be signalled safely."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _await_exit(pid: int, deadline: float) -> None:
    while not _has_exited(pid) and time.monotonic() < deadline:
        with _exit_descriptor(pid) as fd:
            if fd is None:
                time.sleep(0.01)
                continue
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(0, int((deadline - time.monotonic()) * 1000) + 1))
