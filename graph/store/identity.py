"""Which process a record means: boot, pid namespace, pid and start ticks; and what became of it.

A pid alone is never believed. Elsewhere than on Linux only the pid can be asked for, and "stopped" is not seen.
"""

import os
from pathlib import Path
from typing import Final, Literal, NamedTuple

ProcessLife = Literal["running", "stopped", "gone", "foreign"]

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE: Final = "/proc/self/ns/pid"


class ProcessIdentity(NamedTuple):
    """`start_ticks` counts clock ticks since boot (0: unknown); `pid_namespace` is an inode (0: unknown)."""

    pid: int
    start_ticks: int
    boot_id: str
    pid_namespace: int


def own_identity() -> ProcessIdentity:
    """The identity of this process."""
    pid = os.getpid()
    found = _stat(pid)
    return ProcessIdentity(pid, 0 if found is None else found[1], _boot_id(), _namespace())


def life_of(identity: ProcessIdentity) -> ProcessLife:
    """What the process is doing now. "foreign": another boot or pid namespace, so its pid means nothing here."""
    if identity.boot_id != _boot_id() or identity.pid_namespace != _namespace():
        return "foreign"
    found = _stat(identity.pid)
    if found is None:
        return "gone" if identity.start_ticks or not _exists(identity.pid) else "running"
    state, start_ticks = found
    if start_ticks != identity.start_ticks or state in "ZX":
        return "gone"
    return "stopped" if state in "Tt" else "running"


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start ticks. Source: proc_pid_stat(5); the name in parentheses may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> int:
    try:
        return os.stat(_PID_NAMESPACE).st_ino  # noqa: PTH116 - a link into nsfs, followed on purpose
    except OSError:
        return 0
