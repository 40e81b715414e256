"""What the doctor looks at on this machine: git, Python, terminals, descriptors, disks, folders. Changes nothing."""

import contextlib
import os
import platform
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinate_agents.cli.layout import size
from coordinate_agents.cli.setup.findings import Finding
from coordinate_agents.graph.store.filesystem import file_system_of, is_network
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.git import git_program, git_version

MIN_FREE_BYTES: Final = 2 << 30
# A Session takes about six descriptors in its host and one in the driver; fewer than these and 128 do not fit.
MIN_DESCRIPTORS: Final = 1024
MIN_FREE_TERMINALS: Final = 128


def look_at_machine() -> Iterator[Finding]:
    yield _git()
    yield Finding("ok", "Python", f"{platform.python_version()} ({sys.executable}), SQLite {sqlite3.sqlite_version}")
    yield _terminals()
    yield _descriptors()
    yield _runtime_folder()
    yield from _crash_reports()


def look_at_folder(what: str, folder: Path) -> Iterator[Finding]:
    """Whether the folder, or the nearest one above it that exists, is local, writable and has room."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    kind = file_system_of(there)
    if kind is not None and is_network(kind):
        yield Finding(
            "error", what, f"{folder} lies on a network file system ({kind})", "choose a folder on a local disk"
        )
    elif not os.access(there, os.W_OK | os.X_OK):
        yield Finding("error", what, f"{there} cannot be written", "make it writable for this user, or choose another")
    else:
        yield Finding("ok", what, f"{folder} ({kind or 'unknown file system'})")
    free = shutil.disk_usage(there).free
    if free < MIN_FREE_BYTES:
        yield Finding(
            "warn",
            f"{what}, free disk",
            f"{size(free)}; below {size(MIN_FREE_BYTES)} nothing new is started",
            "free some space, or lower minFreeDisk",
        )


def _git() -> Finding:
    try:
        return Finding("ok", "git", f"{git_version()} ({git_program()})")
    except WorktreeError as error:
        return Finding("error", "git", str(error), error.next)


def _terminals() -> Finding:
    try:
        pair = os.openpty()
    except OSError as error:
        return Finding("error", "terminals", f"no pseudo-terminal can be opened: {error.strerror}", "mount /dev/pts")
    for descriptor in pair:
        os.close(descriptor)
    try:
        used = int(Path("/proc/sys/kernel/pty/nr").read_text())
        limit = int(Path("/proc/sys/kernel/pty/max").read_text())
    except (OSError, ValueError):
        return Finding("ok", "terminals", "a pseudo-terminal can be opened")
    if limit - used < MIN_FREE_TERMINALS:
        return Finding("warn", "terminals", f"{used} of {limit} are in use", "close some, or raise kernel.pty.max")
    return Finding("ok", "terminals", f"{used} of {limit} in use")


def _descriptors() -> Finding:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return Finding("ok", "open files", "no limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < MIN_DESCRIPTORS:
        return Finding("warn", "open files", f"at most {soft} at a time", f"ulimit -n {min(hard, 4096)}")
    return Finding("ok", "open files", "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft} at a time")


def _runtime_folder() -> Finding:
    base = os.environ.get("XDG_RUNTIME_DIR")
    if not base:
        return Finding("ok", "sockets", "XDG_RUNTIME_DIR is not set; a private temporary folder is used")
    folder = Path(base, "coordinate-agents")
    if not folder.exists():
        return Finding("ok", "sockets", f"{folder} (not made yet)")
    found = folder.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        return Finding("error", "sockets", f"{folder} is not private to this user", f"chmod 700 {folder}")
    dead = [path for path in folder.iterdir() if stat.S_ISSOCK(path.lstat().st_mode) and not _answers(path)]
    if dead:
        return Finding("warn", "sockets", f"{len(dead)} in {folder} belong to nobody", "they are harmless; rm them")
    return Finding("ok", "sockets", str(folder))


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as tried:
        tried.settimeout(0.5)
        try:
            tried.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # a full queue, a slow host: somebody is there
            return True
    return True


def _crash_reports() -> Iterator[Finding]:
    with contextlib.suppress(OSError, RuntimeError):
        state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        folder = Path(state, "coordinate-agents", "crashes")
        count = len(list(folder.glob("*.txt")))
        if count:
            yield Finding("warn", "reports of our own bugs", f"{count} in {folder}", "report them, then remove them")
