"""Who a process is, who its descendants are, and how it is signalled: Linux `/proc`, `prctl` and pidfd.

A pid is only a number that may have been given to somebody else. So every look returns the start time with it, and a
signal goes through a pidfd that is opened first and compared with that start time afterwards: whatever happens in
between, the signal reaches that process or nobody. Nothing here decides what may be ended; see `strays`.

This module runs in clients and in hosts, so it imports nothing that is slow to load.
"""

import errno
import functools
import os
import signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_PIDFD = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")


class Stat:
    """One process as `/proc/<pid>/stat` shows it. `tty` is 0 without a controlling terminal."""

    __slots__ = ("group", "name", "parent", "pid", "session", "start_ticks", "state", "tty")

    def __init__(self, pid: int, name: str, fields: list[str]) -> None:
        self.pid = pid
        self.name = name
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.tty = int(fields[4])
        self.start_ticks = int(fields[19])

    @property
    def is_zombie(self) -> bool:
        return self.state in "ZX"

    def __str__(self) -> str:
        return f"{self.pid} {self.name}"


def stat(pid: int) -> Stat | None:
    """The process, or None when there is none. Source: proc(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib is slow to load)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    # The name stands in parentheses and may itself contain parentheses and spaces.
    opening, closing = text.find("("), text.rfind(")")
    return Stat(pid, text[opening + 1 : closing], text[closing + 2 :].split())


def every() -> dict[int, Stat]:
    """All processes of this pid namespace that could be read, by pid."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (seen := stat(int(name))) is not None:
            found[seen.pid] = seen
    return found


def children_of(processes: dict[int, Stat]) -> dict[int, list[Stat]]:
    """Processes by their parent's pid."""
    by_parent: dict[int, list[Stat]] = {}
    for process in processes.values():
        by_parent.setdefault(process.parent, []).append(process)
    return by_parent


def descendants(pid: int, processes: dict[int, Stat]) -> list[Stat]:
    """Living descendants, nearest first, without `pid` itself and without zombies."""
    by_parent = children_of(processes)
    order, seen = [pid], {pid}
    for parent in order:
        for child in by_parent.get(parent, ()):
            if child.pid not in seen:
                seen.add(child.pid)
                order.append(child.pid)
    return [processes[p] for p in order[1:] if not processes[p].is_zombie]


def ancestors(pid: int, processes: dict[int, Stat]) -> set[int]:
    """The pid itself and everything above it."""
    above: set[int] = set()
    while pid in processes and pid not in above:
        above.add(pid)
        pid = processes[pid].parent
    return above


def direct_children() -> list[Stat]:
    """Children of this process that were not reaped, zombies included. Their pids cannot be given away."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children", "rb") as file:  # noqa: PTH123
            pids = [int(word) for word in file.read().split()]
    except OSError:
        return children_of(every()).get(me, [])
    return [seen for pid in pids if (seen := stat(pid)) is not None]


def send(target: Stat, number: int) -> bool:
    """Signal exactly this process; False when it is gone, was replaced, or may not be signalled."""
    if not _PIDFD:
        return False
    try:
        descriptor = os.pidfd_open(target.pid)
    except OSError:
        return False
    try:
        now = stat(target.pid)
        if now is None or now.start_ticks != target.start_ticks:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def is_same(pid: int, start_ticks: int) -> bool:
    """Whether the process with this pid and start time still runs (a zombie does not)."""
    now = stat(pid)
    return now is not None and now.start_ticks == start_ticks and not now.is_zombie


def owner(pid: int) -> int | None:
    """The effective user of a process, or None when it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
    except OSError:
        return None


@functools.cache
def machine_id() -> str:
    """This machine's lasting id; its node name where there is none. Read once, in a fork server for all its hosts."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="ascii") as file:  # noqa: PTH123
                text = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    return "node:" + os.uname().nodename


@functools.cache
def boot_id() -> str:
    """Changes with every boot, so never within a process. Empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


@functools.cache
def pid_namespace() -> int:
    """Inode of the pid namespace, never another one; pids are only comparable within one. 0 where there is none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return 0


def prctl(option: int, argument: int) -> None:
    """Linux prctl(2); does nothing elsewhere. Raises: OSError."""
    try:
        import ctypes
    except ImportError:
        return
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "prctl", None)
    if call is not None and call(option, argument, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        if code != errno.EINVAL:
            raise OSError(code, os.strerror(code))
