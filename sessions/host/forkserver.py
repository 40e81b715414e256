"""A process that has a host's modules loaded and forks hosts on request, so that a host costs a fork, not a start.

Rule: hosts are forked from a process that never has a second thread and holds nothing: no lock, no Session's
descriptors, no event loop. The problem this causes: it must not outlive who asked for it, or idle processes pile up.
Next rule: it ends when its control socket does; its hosts live on, as any process whose parent ended.

Control socket (descriptor 0): one byte with four descriptors asks for a fork; the answer is the host's pid in ASCII and
a newline. The descriptors become the host's 0 (specification), 1 (ready), 2 (errors) and LOCK_DESCRIPTOR.
"""

import fcntl
import gc
import os
import signal
import socket
import sys
import traceback

from coordinate_agents.sessions.crashpoints import crash_point
from coordinate_agents.sessions.drivers import DRIVERS
from coordinate_agents.sessions.host import main as host
from coordinate_agents.sessions.plain import last_line, tail
from coordinate_agents.sessions.process import PR_SET_PDEATHSIG, prctl
from coordinate_agents.sessions.redact import compile_shapes

LOCK_DESCRIPTOR = 3
# Above every descriptor that is given to a host.
_FIRST_OWN = 64


def main() -> None:
    """Serve until the control socket ends. `sys.argv[1]` is where ptyprocess is."""
    for name in DRIVERS.values():
        __import__(name)
    if len(sys.argv) > 1 and sys.argv[1]:
        sys.path.append(sys.argv[1])
        __import__("ptyprocess")
    control = socket.socket(fileno=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    os.close(null)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    _warm()
    crash_point("server.begun")
    gc.freeze()  # shared pages stay shared: the collector never writes into what is loaded now
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 1, 4)
        if not request:
            os._exit(0)
        crash_point("server.asked")
        pid = os.fork()
        if pid == 0:
            _become_host(control, descriptors)
        crash_point("server.forked")
        for descriptor in descriptors:
            os.close(descriptor)
        control.sendall(b"%d\n" % pid)


def _warm() -> None:
    """Do once what every host does lazily: here it is paid for once and shared by all."""
    prctl(PR_SET_PDEATHSIG, 0)  # changes nothing here; the call is what loads the library
    compile_shapes()
    tail(last_line(b"x").encode("ascii"))


def _reap(_number: int, _frame: object) -> None:
    """Collect hosts that ended: a pid is somebody's only until then."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _become_host(control: socket.socket, descriptors: "list[int]") -> None:
    """Runs in the forked child, as a host that was started afresh would."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setsid()
        control.close()
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN) for descriptor in descriptors]
        for descriptor in descriptors:
            os.close(descriptor)
        for number, descriptor in enumerate(high):
            os.dup2(descriptor, number)
            os.close(descriptor)
        host.main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
