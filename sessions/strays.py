"""Finds and ends what is left of a tree whose host is gone.

A living host owns its tree as parent and reaper. When it was killed only traces are left, and each has a hole: the mark
in the environment (a program may have scrubbed it), the recorded session and group (a daemon left them), the folder
(cwd, root, program or open files below it: a person's shell may stand there too). Hence two classes:

- *proved*: carries the mark, or belongs to the recorded session whose leader is the recorded process or gone; and
  everything below such a process. It is ended.
- *in the folder*: found by path alone. It is ended only if it is a daemon (no controlling terminal), was adopted by
  init, and started after the Session; otherwise it is a person's and only named, so that nothing new starts beside it.

Never signalled: ourselves, our ancestors, another user's processes, the tree of a living host. Every signal checks the
process's start time (see `process.send`). A process of our user that cannot be read, younger than the Session and
adopted by init, counts as found but is not signalled.
"""

import os
import select
import signal
import time
from collections.abc import Iterable, Sequence

from coordinate_agents.sessions import cgroup, process
from coordinate_agents.sessions.process import Stat
from coordinate_agents.worktrees.values import value_class

MARK_VARIABLE = "COORDINATE_AGENTS_SESSION_MARK"
# Stands in the command line of every host.
HOST_WORDS = b"coordinate_agents.sessions.host.main"

_ADOPTERS = frozenset({"init", "systemd", "launchd", "tini", "dumb-init", "s6-svscan", "runit"})
_POLITE_SHARE = 0.4
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5
_MAX_ENVIRON_BYTES = 4 << 20
_MAX_DESCRIPTORS = 4096


@value_class
class Traces:
    """What to look for. `leaders`: recorded (pid, start ticks) of children, each leader of its session and group.

    `cgroups`: folders of the trees' own cgroups; what is in them is proved ours.
    `since_ticks`: start of the oldest Session concerned; None when no record says, then nothing is ended by path alone.
    """

    markers: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    leaders: tuple[tuple[int, int], ...] = ()
    since_ticks: int | None = None
    cgroups: tuple[str, ...] = ()


@value_class
class Found:
    """`ours` may be ended; `others` are named only."""

    ours: tuple[Stat, ...] = ()
    others: tuple[Stat, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(one) for one in sorted((*self.ours, *self.others), key=lambda one: one.pid))


def search(traces: Traces) -> Found:
    """Everything that lives of the traces. Blocks for a few milliseconds; needs /proc (elsewhere: finds nothing)."""
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return Found()
    processes = process.every()
    mine = process.ancestors(os.getpid(), processes)
    # A host above ourselves does not count: it adopts what our own hosts lost.
    hosts = {pid for pid in processes if pid not in mine and is_host(pid)}
    uid = os.geteuid()
    candidates = [
        one
        for one in processes.values()
        if one.pid not in mine
        and not one.is_zombie
        and process.owner(one.pid) == uid
        and hosts.isdisjoint(process.ancestors(one.pid, processes))
    ]
    marks = {f"{MARK_VARIABLE}={marker}".encode() for marker in traces.markers if marker}
    leaders = {pid for pid, ticks in traces.leaders if _leads(processes.get(pid), ticks)}
    inside = set().union(*(cgroup.members(path) for path in traces.cgroups))
    proved = {one.pid for one in candidates if one.pid in inside or _is_proved(one, marks, leaders)}
    allowed = {one.pid for one in candidates}
    for pid in tuple(proved):
        proved |= {one.pid for one in process.descendants(pid, processes) if one.pid in allowed}
    ours, others = dict.fromkeys(proved), []
    roots = tuple(os.path.realpath(path) for path in traces.paths)
    by_path = {one.pid: _in_folder(one.pid, roots) for one in candidates if roots and one.pid not in proved}
    for one in candidates:
        where = by_path.get(one.pid, False)
        if where is False:
            continue
        is_daemon = _is_adopted_daemon(one, processes, {pid for pid, seen in by_path.items() if seen} | proved, traces)
        if where and is_daemon:
            ours[one.pid] = None
        elif where or is_daemon:  # a person's, or one of ours that cannot be read
            others.append(one)
    return Found(tuple(processes[pid] for pid in ours), tuple(others))


def end(traces: Traces, bound_s: float) -> tuple[str, ...]:
    """End what is ours within the bound; return what is left, and what is not ours but in the folder, as "pid name"."""
    start = time.monotonic()
    asked: set[tuple[int, int]] = set()
    pause = _FIRST_PAUSE_S
    known: dict[tuple[int, int], Stat] = {}
    while True:
        found = search(traces)
        _remember(known, found.ours)
        alive = [one for one in known.values() if process.is_same(one.pid, one.start_ticks)]
        others = [one for one in found.others if (one.pid, one.start_ticks) not in known]
        used = time.monotonic() - start
        if not alive or used >= bound_s:
            for path in traces.cgroups:
                cgroup.remove(path)
            return Found(tuple(alive), tuple(others)).names
        if used < bound_s * _POLITE_SHARE:
            _ask(alive, asked)
        else:
            for one in alive:
                process.send(one, signal.SIGKILL)
            for path in traces.cgroups:
                cgroup.kill(path)
        _wait_for_any(alive, min(pause, bound_s - used))
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _remember(known: dict[tuple[int, int], Stat], found: Iterable[Stat]) -> None:
    """Add what was found and everything below what is known: when a parent dies, its children lose their trace."""
    for one in found:
        known[one.pid, one.start_ticks] = one
    processes = process.every()
    for pid, ticks in tuple(known):
        if process.is_same(pid, ticks):
            for one in process.descendants(pid, processes):
                known.setdefault((one.pid, one.start_ticks), one)


def _ask(processes: Sequence[Stat], asked: set[tuple[int, int]]) -> None:
    for one in processes:
        if (one.pid, one.start_ticks) not in asked:
            asked.add((one.pid, one.start_ticks))
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCONT):
                process.send(one, number)


def _wait_for_any(processes: Sequence[Stat], bound_s: float) -> None:
    """Until one of them ended, at most the bound."""
    descriptors = []
    try:
        for one in processes[:64]:
            try:
                descriptors.append(os.pidfd_open(one.pid))
            except OSError:
                return
        select.select(descriptors, [], [], bound_s)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _leads(leader: Stat | None, start_ticks: int) -> bool:
    """Whether the number still means the recorded session: its leader is the recorded process, or is gone.

    The kernel gives no number away that a session or group still bears.
    """
    return leader is None or leader.start_ticks == start_ticks


def _is_proved(one: Stat, marks: set[bytes], leaders: set[int]) -> bool:
    if one.session in leaders or one.group in leaders:
        return True
    return bool(marks) and not marks.isdisjoint(_environment(one.pid))


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read(_MAX_ENVIRON_BYTES).split(b"\0")
    except OSError:
        return []


def _in_folder(pid: int, roots: tuple[str, ...]) -> bool | None:
    """Whether the process stands in, runs from or has open a file below one of the roots; None: cannot be read."""
    for name in ("cwd", "root", "exe"):
        try:
            if is_below(os.readlink(f"/proc/{pid}/{name}"), roots):  # noqa: PTH115
                return True
        except FileNotFoundError:
            continue
        except PermissionError:
            return None
        except OSError:
            return False
    try:
        names = os.listdir(f"/proc/{pid}/fd")[:_MAX_DESCRIPTORS]  # noqa: PTH208
    except OSError:
        return False
    for name in names:
        try:
            if is_below(os.readlink(f"/proc/{pid}/fd/{name}"), roots):  # noqa: PTH115
                return True
        except OSError:
            continue
    return False


def is_below(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a real path is one of the roots or below; a deleted folder counts under its old name."""
    path = path.removesuffix(" (deleted)")
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def _is_adopted_daemon(one: Stat, processes: dict[int, Stat], matched: set[int], traces: Traces) -> bool:
    """Whether it has no terminal, is younger than the Session, and so is the top of its line below init."""
    if one.tty != 0 or traces.since_ticks is None or one.start_ticks < traces.since_ticks:
        return False
    top = one
    while (parent := processes.get(top.parent)) is not None and not _adopts(parent):
        top = parent
    return top.pid == one.pid or (top.pid in matched and top.tty == 0 and top.start_ticks >= traces.since_ticks)


def _adopts(one: Stat) -> bool:
    return one.pid == 1 or one.name in _ADOPTERS or is_host(one.pid)


def is_host(pid: int) -> bool:
    """Whether the process is a host of ours, by its command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read(4096).split(b"\0")
    except OSError:
        return False
    return words[1:4] == [b"-I", b"-S", b"-c"] and len(words) > 4 and HOST_WORDS in words[4]
