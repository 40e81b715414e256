"""The starter's side of the fork server: asks it for hosts, and does without it where it is not to be had.

One server for each process that starts Sessions; made when the first is started, ended with its maker. Linux only (a
host that is not our own child is watched through a pidfd); elsewhere, and when the server fails, hosts are started the
ordinary way.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from coordinate_agents.sessions import crashpoints, strays

# As in sessions/host/forkserver.py, which is not imported here: it would load the host's modules.
LOCK_DESCRIPTOR: Final = 3
# A fork takes a millisecond; a machine that needs longer than this is not well, and a direct start may be no better.
_ANSWER_BOUND_S: Final = 10.0
_BOOTSTRAP: Final = (
    "import gc; gc.disable(); import sys; sys.path.append({base!r});"
    " from coordinate_agents.sessions.host.forkserver import main; main()  # {host}"
)


class HostProcess(Protocol):
    """What a starter may ask of a host: as of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class ForkedHost:
    """A host that the fork server reaps. Its exit code is not known here; 0 stands for "ended".

    The descriptor stays open as long as the object: one thread may wait while another looks.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = -1

    def poll(self) -> int | None:
        return self._ended(0.0)

    def kill(self) -> None:
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"host {self.pid}", timeout or 0.0)
        return code

    def _ended(self, timeout_s: float | None) -> int | None:
        if self._pidfd < 0:
            return 0
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return 0 if poller.poll(None if timeout_s is None else timeout_s * 1000) else None

    def __del__(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)


class ForkServer:
    """Threads may ask at once. A server that fails once is not asked again."""

    def __init__(self, ptyprocess_path: str) -> None:
        self._ptyprocess_path = ptyprocess_path
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_usable = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")

    def fork(self, stdin: int, stdout: int, stderr: int, lock: int) -> ForkedHost | None:
        """A host with these descriptors, or None when there is no server: the caller starts one itself."""
        with self._lock:
            if not self._is_usable:
                return None
            try:
                if self._control is None:
                    self._start()
                assert self._control is not None
                socket.send_fds(self._control, [b"f"], [stdin, stdout, stderr, lock])
                answer = self._read_answer(self._control)
                return ForkedHost(int(answer))
            except (OSError, ValueError):
                self._is_usable = False
                self._end()
                return None

    def close(self) -> None:
        """End the server; the hosts that it forked live on."""
        with self._lock:
            self._is_usable = False
            self._end()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(_ANSWER_BOUND_S)
        base = Path(__file__).absolute().parents[2]
        program = _BOOTSTRAP.format(base=str(base), host=strays.HOST_WORDS.decode())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program, self._ptyprocess_path, str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LC_ALL": "C.UTF-8", **crashpoints.environment()},
                start_new_session=True,
            )
        self._control = ours

    def _read_answer(self, control: socket.socket) -> bytes:
        answer = b""
        while not answer.endswith(b"\n"):
            piece = control.recv(32)
            if not piece:
                raise OSError("the fork server ended")
            answer += piece
        return answer

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process = None
