"""Which processes use a folder: working directory, root, program or an open file in it. Linux; elsewhere none is seen.

Every process is looked at whose entries may be read, of whatever user; this process itself is not, since the Runtime
relies on no working directory. A process sees a folder under its real path also after the folder was renamed.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.values import value_class

MAX_NAMED: Final = 10
_MAX_NAME_BYTES: Final = 256
_DELETED: Final = " (deleted)"


@value_class
class User:
    """A process, and what of it lies in the folder: "stands in", "is chrooted into", "runs" or "has open"."""

    pid: int
    name: str
    how: str
    path: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name}) {self.how} {self.path}"


def users_of(paths: Sequence[str], *, limit: int = MAX_NAMED) -> tuple[User, ...]:
    """At most `limit` processes that use one of the folders or something below, by process id."""
    roots = tuple(os.path.realpath(path) for path in paths)
    found: list[User] = []
    for pid in _pids():
        used = next((use for use in _uses(pid) if _is_below(use[1], roots)), None)
        if used is not None:
            found.append(User(pid, _name(pid), *used))
            if len(found) >= limit:
                break
    return tuple(found)


def mounts_below(path: str) -> tuple[str, ...]:
    """File systems that are mounted at the folder or below it. Source: proc_pid_mountinfo(5)."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return ()
    fields = (line.split(b" ") for line in lines)
    points = (os.fsdecode(_unescaped(parts[4])) for parts in fields if len(parts) > 4)
    return tuple(sorted(point for point in points if _is_below(point, (path,))))


def _pids() -> list[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 (names alone)
    except OSError:
        return []
    me = os.getpid()
    return sorted(int(name) for name in names if name.isdigit() and int(name) != me)


def _uses(pid: int) -> Iterator[tuple[str, str]]:
    for entry, how in (("cwd", "stands in"), ("root", "is chrooted into"), ("exe", "runs")):
        target = _link(f"/proc/{pid}/{entry}")
        if target is not None:
            yield how, target
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except OSError:
        return
    for name in names:
        target = _link(f"/proc/{pid}/fd/{name}")
        if target is not None:
            yield "has open", target


def _link(path: str) -> str | None:
    """Where the link leads; None when the process is gone, or is not for us to look at."""
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return None


def _is_below(path: str, roots: Sequence[str]) -> bool:
    path = path.removesuffix(_DELETED)
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:  # noqa: PTH123
            return file.read(_MAX_NAME_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return "gone"


def _unescaped(field: bytes) -> bytes:
    r"""A field of mountinfo, where space, tab, newline and backslash are written as \ooo."""
    head, *rest = field.split(b"\\")
    return head + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)
