"""A cgroup for one tree, where one can be made: `cgroup.kill` ends what forks faster than any sweep can list.

Only an addition: where the system has no version 2 hierarchy that we may write, nothing is made and everything works as
it did. A cgroup's name is made of the Session's folder, so that a name never means another Session's tree. Runs in
hosts: stdlib only. Source: the kernel's admin guide, cgroup-v2.
"""

import contextlib
import errno
import functools
import os
import time

_MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
# Together a fifth of a second; a survivor keeps its cgroup.
_REMOVE_TRIES, _REMOVE_PAUSE_S = 20, 0.01
_OLD_S, _TIDIED_AT_ONCE = 3600, 64
_PREFIX = "coordinate-agents-"


def make(name: str) -> str:
    """The folder of a new cgroup below our own; empty when none can be made."""
    if not name.isalnum():
        return ""
    for parent in parents():
        path = f"{parent}/{_PREFIX}{name}"
        try:
            os.mkdir(path)  # noqa: PTH102
        except FileExistsError:
            if members(path):
                continue  # of a folder that was removed while its tree lived
        except OSError:
            continue
        if os.access(f"{path}/cgroup.kill", os.W_OK) and os.access(f"{path}/cgroup.procs", os.W_OK):
            return path
        remove(path)
    return ""


@functools.cache
def parents() -> tuple[str, ...]:
    """Where cgroups may be made: our own, in each hierarchy. Tidied, once: a fork server does so for all its hosts."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:  # noqa: PTH123
            own = next(line[3:].strip() for line in file if line.startswith("0::"))
    except (OSError, StopIteration):
        return ()
    found = tuple(f"{mount}{own.rstrip('/')}" for mount in _MOUNTS if os.access(f"{mount}/cgroup.controllers", os.R_OK))
    for parent in found:
        _tidy(parent)
    return found


def enter(path: str) -> None:
    """Child side, before exec: from here on everything it starts is in there. Not being allowed to is no failure."""
    with contextlib.suppress(OSError):
        _write(path, "cgroup.procs", b"0")


def kill(path: str) -> None:
    """End everything in it, whatever it does."""
    if path:
        with contextlib.suppress(OSError):
            _write(path, "cgroup.kill", b"1")


def members(path: str) -> set[int]:
    """The pids in it and below."""
    try:
        with open(f"{path}/cgroup.procs", encoding="ascii") as file:  # noqa: PTH123
            return {int(line) for line in file}
    except (OSError, ValueError):
        return set()


def remove(path: str) -> None:
    """Remove it when it is empty. What was killed needs a moment to be gone, so it is tried for a moment."""
    if not path or not os.path.basename(path).startswith(_PREFIX):  # noqa: PTH119
        return
    for _ in range(_REMOVE_TRIES):
        try:
            os.rmdir(path)  # noqa: PTH106
        except OSError as error:
            if error.errno != errno.EBUSY:
                return
            time.sleep(_REMOVE_PAUSE_S)
        else:
            return


def _tidy(parent: str) -> None:
    """Remove what hosts that were killed left empty. Only old ones: a new one waits for its child."""
    try:
        names = [name for name in os.listdir(parent) if name.startswith(_PREFIX)]  # noqa: PTH208
    except OSError:
        return
    for name in names[:_TIDIED_AT_ONCE]:
        with contextlib.suppress(OSError):
            if os.stat(f"{parent}/{name}").st_mtime < time.time() - _OLD_S:  # noqa: PTH116
                os.rmdir(f"{parent}/{name}")  # noqa: PTH106


def _write(path: str, name: str, data: bytes) -> None:
    descriptor = os.open(f"{path}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
