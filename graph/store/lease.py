"""The right to drive one graph: a kernel lock, and a generation that makes every older holder harmless.

The lock file is never unlinked and holds nothing; the record beside it says who holds the lock and is believed only
while the lock is held. There is no expiry: a killed holder frees the lock at once, a stopped one keeps it and is named.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.names import GRAPH_ID_PATTERN
from coordinate_agents.graph.store import failures, identity, locks, place
from coordinate_agents.graph.store.identity import ProcessIdentity
from coordinate_agents.graph.store.place import StatePlace
from coordinate_agents.graph.store.store import Store

# A holder that just released, or that has not written its record yet, is given so long.
_SETTLE_S: Final = 0.25
_SETTLE_PAUSE_S: Final = 0.005
_MAX_RECORD_BYTES: Final = 4096
# Part of a bound that goes to the polite signal when a holder is ended.
_POLITE_SHARE: Final = 0.5


class Holder(NamedTuple):
    """Who drives a graph now. `pid` 0: it holds the lock but has left no record that fits.

    `since` is seconds since the epoch; `socket` is where requests wake it. `life` is never "gone".
    """

    pid: int
    since: float
    purpose: str
    generation: int
    socket: str | None
    life: Literal["running", "stopped", "foreign", "unknown"]


class _Record(NamedTuple):
    process: ProcessIdentity
    since: float
    purpose: str
    generation: int
    socket: str | None


class Lease:
    """The lease of one graph, held by this process until `release` or its death."""

    def __init__(
        self, where: StatePlace, graph_id: str, lock: locks.KernelLock, record: _Record, *, left_socket: str | None
    ) -> None:
        self.graph_id = graph_id
        # Where a holder that died without `release` was to be woken.
        self.left_socket = left_socket
        self._place = where
        self._lock = lock
        self._record = record

    @classmethod
    def acquire(cls, store: Store, graph_id: str, *, purpose: str) -> "Lease":
        """Take the lease and raise the generation. Waits at most a quarter of a second for a holder that is leaving.

        `purpose` is shown to others (the verb). Raises: LEASE_HELD naming the holder, TASK_NOT_FOUND.
        """
        store.generation(graph_id)
        lock = _lock(store.place, graph_id)
        crash_point("lease.locked")
        try:
            generation = store.next_generation(graph_id)
            # A crash here frees the lock; the generation that nobody used does no harm.
            crash_point("lease.generation")
            record = _Record(identity.own_identity(), time.time(), purpose, generation, None)
            left = _read(store.place, graph_id)
            lease = cls(store.place, graph_id, lock, record, left_socket=left.socket if left is not None else None)
            lease._write()
            crash_point("lease.recorded")
        except BaseException:
            lock.release()
            raise
        return lease

    @property
    def generation(self) -> int:
        return self._record.generation

    def announce(self, socket: str | None) -> None:
        """Say in the record where requests wake this process; nothing after `release`."""
        if self._lock.fd < 0:
            return
        self._record = self._record._replace(socket=socket)
        self._write()

    def release(self) -> None:
        """Give the lease back. Twice is no error. The generation stays: the next holder raises it."""
        if self._lock.fd < 0:
            return
        # Before the lock: afterwards the record could be the next holder's.
        _record_path(self._place, self.graph_id).unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()

    def _write(self) -> None:
        path = _record_path(self._place, self.graph_id)
        try:
            place.write_whole(path, json.dumps({**self._record._asdict(), "process": self._record.process._asdict()}))
        except OSError as error:
            raise failures.explain_os(path, error) from error


def holder(state_dir: Path, graph_id: str) -> Holder | None:
    """Who drives the graph now; None when nobody does. Takes no lock and writes nothing; a killed holder is None."""
    where = StatePlace(state_dir)
    deadline = time.monotonic() + _SETTLE_S
    while True:
        if not _is_locked(where, graph_id):
            return None
        found = _believe(_read(where, graph_id))
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            return Holder(0, 0.0, "unknown", 0, None, "unknown")
        time.sleep(_SETTLE_PAUSE_S)


def take_over(state_dir: Path, graph_id: str, *, bound_s: float) -> None:
    """End the process that drives the graph, so that its lease can be taken; nothing when nobody drives.

    A polite signal first (to a stopped one too), then SIGKILL, within `bound_s`. Raises: LEASE_HELD when the holder
    cannot be proved to be ours to end (another namespace or boot, no record), is this process, or outlives the bound.
    """
    where = StatePlace(state_dir)
    found = holder(state_dir, graph_id)
    record = _read(where, graph_id)
    if found is None:
        return
    is_ours = record is not None and found.life in ("running", "stopped") and record.process.pid == found.pid
    if record is None or not is_ours or found.pid == os.getpid() or not hasattr(os, "pidfd_open"):
        raise _held(graph_id, found)
    try:
        pidfd = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return
    try:
        # Asked again now that the descriptor pins the process: a pid used again would have other start ticks.
        if identity.life_of(record.process) == "gone":
            return
        deadline = time.monotonic() + bound_s
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
        if _is_freed(where, graph_id, bound_s * _POLITE_SHARE):
            return
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        if not _is_freed(where, graph_id, deadline - time.monotonic()):
            raise _held(graph_id, found)
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)


def _lock(where: StatePlace, graph_id: str) -> locks.KernelLock:
    path = _lock_path(where, graph_id)
    deadline = time.monotonic() + _SETTLE_S
    while True:
        try:
            lock = locks.try_lock(path, mode="exclusive")
        except OSError as error:
            raise failures.explain_os(path, error) from error
        if lock is not None:
            return lock
        found = holder(where.folder, graph_id)
        if found is not None:
            raise _held(graph_id, found)
        if time.monotonic() >= deadline:
            raise _held(graph_id, Holder(0, 0.0, "unknown", 0, None, "unknown"))


def _held(graph_id: str, by: Holder) -> GraphError:
    who = f"process {by.pid}" if by.pid else "a process that has not said who it is"
    words = f"Graph {graph_id} is driven by {who}"
    if by.since:
        words += f" ({by.purpose}) since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(by.since))}"
    advice = f"coordinate-agents graph-status {graph_id}"
    if by.life == "stopped":
        words += "; that process is stopped, not dead"
        advice = f"kill -CONT {by.pid}"
    elif by.life == "foreign":
        words += ", in another container or on another boot"
    return GraphError(
        "LEASE_HELD",
        words + ".",
        kept="the running driver and everything it does",
        next=advice,
        stage="lease",
        facts={"taskId": graph_id, "pid": by.pid, "since": by.since, "holder": by.life},
    )


def _is_freed(where: StatePlace, graph_id: str, bound_s: float) -> bool:
    deadline = time.monotonic() + bound_s
    while _is_locked(where, graph_id):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_SETTLE_PAUSE_S)
    return True


def _is_locked(where: StatePlace, graph_id: str) -> bool:
    path = _lock_path(where, graph_id)
    try:
        return locks.is_locked(path)
    except OSError as error:
        raise failures.explain_os(path, error) from error


def _believe(record: _Record | None) -> Holder | None:
    """The holder that the record names; None when that process cannot hold the lock that is held now."""
    if record is None:
        return None
    life = identity.life_of(record.process)
    if life == "gone":
        return None
    return Holder(record.process.pid, record.since, record.purpose, record.generation, record.socket, life)


def _read(where: StatePlace, graph_id: str) -> _Record | None:
    try:
        fd = os.open(_record_path(where, graph_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            raw = json.loads(file.read(_MAX_RECORD_BYTES))
        return _Record(**{**raw, "process": ProcessIdentity(**raw["process"])})
    except (OSError, ValueError, TypeError, KeyError):
        # Whatever it is, it says nothing: the lock alone decides whether somebody drives.
        return None


def _lock_path(where: StatePlace, graph_id: str) -> Path:
    return where.leases / f"{_file_name(graph_id)}.lock"


def _record_path(where: StatePlace, graph_id: str) -> Path:
    return where.leases / f"{_file_name(graph_id)}.json"


def _file_name(graph_id: str) -> str:
    if GRAPH_ID_PATTERN.fullmatch(graph_id) is None:
        raise GraphError("TASK_NOT_FOUND", f"{graph_id!r} is no graph id.", next="coordinate-agents graph-list")
    return graph_id
