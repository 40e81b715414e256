"""What a look from outside says about a Session, without asking its host; and the end of one whose host died.

The rule for death: the folder's lock could be taken (so the host is gone) *and* nothing of its tree is found. A record
of another machine, pid namespace or user is `foreign`: never dead, never signalled. A record of an earlier boot of this
machine is of processes that cannot exist any more. A start that died before its host recorded itself left nothing that
ever ran: its Session counts as absent, and can be started. Blocking; called in worker threads.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from coordinate_agents.sessions import address as addresses
from coordinate_agents.sessions import cgroup, process, records, strays
from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.crashpoints import crash_point
from coordinate_agents.sessions.model import ProcessIdentity, SessionEnd, SessionId, SessionRecord
from coordinate_agents.worktrees.values import value_class

# held: somebody holds the lock; free: nobody does and there is no final record; absent: no host was ever there.
Custody = Literal["absent", "foreign", "ended", "held", "free"]

# Two finders of one dead host wait for each other this long at most: a search and its bound.
_FINAL_LOCK_BOUND_S: Final = 90.0
# Others hold the lock of a start that died for a look only.
_RECLAIM_BOUND_S: Final = 0.5


@value_class
class Seen:
    custody: Custody
    record: SessionRecord | None = None


def see(path: Path) -> Seen:
    """What the folder says now."""
    try:
        with _folder(path) as folder:
            return _see(folder)
    except FileNotFoundError:
        return Seen("absent")
    except OSError:
        return Seen("foreign")


def _see(folder: int) -> Seen:
    record = records.read(folder)
    if record is not None and record.end is not None:
        return Seen("ended", record)
    if record is not None and record.host is not None and _is_foreign(record.host):
        return Seen("foreign", record)
    lock = folders.lock(folder, shared=True)
    if lock is None:
        return Seen("held", record)
    try:
        # The host may have written its final record and ended between the two looks.
        record = records.read(folder)
        if record is not None and record.end is not None:
            return Seen("ended", record)
        return Seen("absent" if _never_began(folder) else "free", record)
    finally:
        os.close(lock)


def reclaim(folder: int) -> int | None:
    """The lock of a start that died before there was a host; None where a host lives, lived or may have lived."""
    until = time.monotonic() + _RECLAIM_BOUND_S
    while _never_began(folder):
        lock = folders.lock(folder)
        if lock is not None:
            if _never_began(folder):
                return lock
            os.close(lock)
        if time.monotonic() >= until:
            break
        time.sleep(0.02)
    return None


def _never_began(folder: int) -> bool:
    """A host records itself before anything else, and the file for its errors is made before it.

    Says nothing as long as somebody else holds the lock.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    if folders.RECORD not in names:
        return folders.HOST_ERRORS not in names
    record = records.read(folder)
    return record is not None and record.host is None and record.end is None


def left_of(path: Path, record: SessionRecord | None) -> strays.Found:
    """What lives of a Session whose host is gone."""
    if record is None or _is_of_earlier_boot(record):
        return strays.Found()
    return strays.search(traces_of([record], paths=own_paths(path, (record.cwd,))))


def wake(record: SessionRecord) -> None:
    """Let the host go on that is stopped (SIGSTOP), if it is still the very process of the record.

    Whether it is stopped is not asked: that may come true only now, and SIGCONT means nothing to one that runs.
    """
    host = record.host
    seen = process.stat(host.pid) if host is not None else None
    if host is not None and seen is not None and seen.start_ticks == host.start_ticks:
        process.send(seen, signal.SIGCONT)


def own_paths(below: Path, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths that can be searched: not those that contain our own state, since everybody works there."""
    state = os.path.realpath(below)
    return tuple(path for path in paths if not strays.is_below(state, (os.path.realpath(path),)))


def finish_lost(path: Path, session_id: SessionId) -> SessionEnd:
    """End what a dead host left, and complete its record; what another finder wrote meanwhile is returned as it is."""
    with _folder(path) as folder:
        lock = _wait_for_lock(folder)
        crash_point("lost.locked")
        try:
            seen = records.read(folder)
            if seen is not None and seen.end is not None:
                return seen.end
            survivors: tuple[str, ...] = ()
            if seen is not None and not _is_of_earlier_boot(seen):
                survivors = strays.end(traces_of([seen], paths=own_paths(path, (seen.cwd,))), seen.close_bound_s)
            crash_point("lost.ended")
            end = SessionEnd(
                cause="host-lost", survivors=survivors, log_path=str(path / folders.OUTPUT), error=_last_words(folder)
            )
            records.with_end(folder, end, session_id=session_id)
            crash_point("lost.recorded")
            remove_socket(seen)
            if seen is not None and seen.cgroup:
                cgroup.remove(seen.cgroup)
            return end
        finally:
            os.close(lock)


def remove_socket(record: SessionRecord | None) -> None:
    """Remove the socket of a Session that ended: a host that was killed could not."""
    if record is not None and record.socket and addresses.port_of(record.socket) is None:
        with suppress(OSError):
            os.unlink(record.socket)  # noqa: PTH108


def _last_words(folder: int) -> str:
    """Why the host died, as far as it could say so itself."""
    try:
        text = (folders.read_whole(folder, folders.HOST_ERRORS, 1 << 20) or b"").decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        text = ""
    return f"the Session's host died{': ' + text.splitlines()[-1][:500] if text else ''}; what it left was ended"


def traces_of(
    found: list[SessionRecord], *, markers: tuple[str, ...] = (), paths: tuple[str, ...] = ()
) -> strays.Traces:
    """The traces of these Sessions, as far as they ran in this boot."""
    here = [record for record in found if not _is_of_earlier_boot(record)]
    starts = [one.start_ticks for record in here for one in (record.host, record.child) if one is not None]
    return strays.Traces(
        markers=frozenset((*markers, *(record.marker for record in here if record.marker))),
        paths=paths,
        leaders=tuple((r.child.pid, r.child.start_ticks) for r in here if r.child is not None),
        since_ticks=min(starts, default=None),
        cgroups=tuple(record.cgroup for record in here if record.cgroup),
    )


def every_record(root: Path) -> list[tuple[Path, Seen]]:
    """All Sessions below the root. Reads every folder."""
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    return [(root / name, see(root / name)) for name in names]


def _is_foreign(host: ProcessIdentity) -> bool:
    if host.machine_id != process.machine_id():
        return True
    return host.boot_id == process.boot_id() and host.pid_namespace != process.pid_namespace()


def _is_of_earlier_boot(record: SessionRecord) -> bool:
    return record.host is not None and record.host.boot_id != process.boot_id()


def _wait_for_lock(folder: int) -> int:
    """The lock, exclusively. Others hold it for a look (microseconds) or to do the same work. Raises: TimeoutError."""
    until = time.monotonic() + _FINAL_LOCK_BOUND_S
    while (lock := folders.lock(folder)) is None:
        if time.monotonic() >= until:
            raise TimeoutError("the Session's folder stays locked")
        time.sleep(0.02)
    return lock


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = folders.open_folder(str(path))
    try:
        yield descriptor
    finally:
        os.close(descriptor)
