"""A process that has a host's modules loaded and forks hosts on request, so that a host costs a fork, not a start.

Rule: hosts are forked from a process that never has a second thread and holds nothing: no lock, no Session's
descriptors, no event loop. The problem this causes: it must not outlive who asked for it, or idle processes pile up.
Next rule: it ends when its control socket does, and also when its maker did: the maker's end of the socket may have
been copied into a process that lives on. Its hosts live on, as any process whose parent ended.

Control socket (descriptor 0): one byte with four descriptors asks for a fork; the answer is the host's pid in ASCII and
a newline. The descriptors become the host's 0 (specification), 1 (ready), 2 (errors) and LOCK_DESCRIPTOR.
"""

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import sys

from coordinate_agents.sessions import cgroup
from coordinate_agents.sessions.crashpoints import crash_point
from coordinate_agents.sessions.drivers import DRIVERS, pty
from coordinate_agents.sessions.host import main as host
from coordinate_agents.sessions.host import terminal  # noqa: F401 (loaded here, or by every host with one)
from coordinate_agents.sessions.plain import last_line, tail
from coordinate_agents.sessions.process import PR_SET_PDEATHSIG, boot_id, machine_id, prctl
from coordinate_agents.sessions.shapes import compile_shapes

LOCK_DESCRIPTOR = 3
# Above every descriptor that is given to a host.
_FIRST_OWN = 64


def main() -> None:
    """Serve until the control socket or the maker ends. `sys.argv`: where ptyprocess is, and the maker's pid."""
    for name in DRIVERS.values():
        __import__(name)
    if len(sys.argv) > 1 and sys.argv[1]:
        pty.load_library(sys.argv[1])
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
    _call_itself("cag-forkserver")
    maker = _open_maker(int(sys.argv[2]))
    events = select.poll()
    events.register(control, select.POLLIN)
    events.register(maker, select.POLLIN)
    while True:
        if any(descriptor == maker for descriptor, _ in events.poll()):
            os._exit(0)
        request, descriptors, _, _ = socket.recv_fds(control, 1, 4)
        if not request:
            os._exit(0)
        crash_point("server.asked")
        pid = os.fork()
        if pid == 0:
            _become_host(control, maker, descriptors)
        crash_point("server.forked")
        for descriptor in descriptors:
            os.close(descriptor)
        control.sendall(b"%d\n" % pid)


def _open_maker(pid: int) -> int:
    """A pidfd of who made this server, which is still our parent; when it is not, it has ended already."""
    try:
        maker = os.pidfd_open(pid)
    except ProcessLookupError:
        os._exit(0)
    if os.getppid() != pid:
        os._exit(0)
    own = fcntl.fcntl(maker, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN)
    os.close(maker)
    return own


def _call_itself(name: str) -> None:
    """For people who look at ps: the command line of a forked host is this server's."""
    with contextlib.suppress(OSError):
        descriptor = os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, name.encode("ascii"))
        finally:
            os.close(descriptor)


def _warm() -> None:
    """Do once what every host does lazily: here it is paid for once and shared by all."""
    prctl(PR_SET_PDEATHSIG, 0)  # changes nothing here; the call is what loads the library
    compile_shapes()
    tail(last_line(b"x").encode("ascii"))
    machine_id()
    boot_id()
    cgroup.parents()


def _reap(_number: int, _frame: object) -> None:
    """Collect hosts that ended: a pid is somebody's only until then."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _become_host(control: socket.socket, maker: int, descriptors: "list[int]") -> None:
    """Runs in the forked child, as a host that was started afresh would."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setsid()
        control.close()
        os.close(maker)
        _call_itself("cag-host")
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN) for descriptor in descriptors]
        for descriptor in descriptors:
            os.close(descriptor)
        for number, descriptor in enumerate(high):
            os.dup2(descriptor, number)
            os.close(descriptor)
        host.main()
    except BaseException:
        import traceback  # a third of what all else takes to load, and in each fork's memory

        traceback.print_exc()
    finally:
        os._exit(1)
