"""Waits until a file is there, told by the kernel as soon as it was written.

For the submit file, which an agent in a sandbox writes itself and tells nobody. Source: inotify(7).
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

_CLOSE_WRITE: Final = 0x8
_MOVED_TO: Final = 0x80
_ONLYDIR: Final = 0x01000000
_DONT_FOLLOW: Final = 0x02000000
_READ_BYTES: Final = 1 << 16


async def appears(path: Path) -> None:
    """Return once the file is there: renamed into its place, or closed by who wrote it there, be it empty.

    Returns never where no kernel tells, or has no more room to: who waits looks now and then all the same.
    """
    descriptor = _watch(path.parent)
    if descriptor is None:
        await anyio.sleep_forever()
        return
    try:
        # Watched first: what comes after the look is told.
        while not os.path.isfile(path):  # noqa: PTH113, ASYNC240 (one look, after a word)
            await anyio.wait_readable(descriptor)
            with suppress(BlockingIOError):
                os.read(descriptor, _READ_BYTES)
    finally:
        os.close(descriptor)


def _watch(folder: Path) -> int | None:
    """A descriptor that becomes readable with every file that is finished in the folder; None when there is none."""
    if sys.platform != "linux":
        return None
    import ctypes  # 5 ms, for those alone who wait

    library = ctypes.CDLL(None)
    descriptor: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None  # a user has 128 of them
    mask = _CLOSE_WRITE | _MOVED_TO | _ONLYDIR | _DONT_FOLLOW
    if library.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
        os.close(descriptor)
        return None
    return descriptor
