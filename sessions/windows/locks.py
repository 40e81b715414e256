"""The lock that says that a host lives, on Windows: a byte of the folder's `alive` file, held by the host's handle.

Rule: who starts a Session holds the first byte until its host holds the second; so there is no moment without a lock,
though nothing that is locked can be inherited there. The kernel lets go when a process ends, however it ends. Bytes
are locked behind the file's end, where nobody reads or writes. Seen on no Windows yet.
"""

import os
import sys
from typing import Final, Literal

STARTER: Final = 0
HOST: Final = 1
Place = Literal[0, 1]
_FIRST_BYTE: Final = 1 << 20


def take(descriptor: int, place: Place) -> bool:
    """Lock the byte without waiting; whether it was free. It is held until the descriptor is closed."""
    if sys.platform != "win32":
        raise OSError("bytes are locked this way on Windows only")
    import msvcrt

    os.lseek(descriptor, _FIRST_BYTE + place, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def let_go(descriptor: int, place: Place) -> None:
    """The starter's byte, once the host has its own. Raises: OSError when it is not held."""
    if sys.platform != "win32":
        raise OSError("bytes are locked this way on Windows only")
    import msvcrt

    os.lseek(descriptor, _FIRST_BYTE + place, os.SEEK_SET)
    msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)


def is_held(path: str) -> bool:
    """Whether a starter or a host holds the file. Raises: FileNotFoundError when nothing was ever started."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        return not (take(descriptor, STARTER) and take(descriptor, HOST))
    finally:
        os.close(descriptor)
