"""Ports of this user, in numbered blocks: each block is of one running subtask, whatever graph or repository it is of.

A lock on a range of bytes of one file in the runtime folder stands for the ports of the same numbers, so blocks of
other sizes exclude each other, too. A driver takes a block alone, then shares it with the hosts of the agents that it
starts: they go on without it, and a block is free when the last of them has ended, however that was.
"""

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from coordinate_agents.graph.config import Ports
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.locks import RangeLocks

_FOLDER: Final = "coordinate-agents"
_FILE: Final = "ports"


class PortBlocks:
    """The blocks that one drive holds."""

    def __init__(self, ports: Ports) -> None:
        """Raises: REPOSITORY_UNSUPPORTED when there is no place for the locks."""
        self.path = _file()
        self.ports = ports
        try:
            self._locks = RangeLocks(self.path)
        except OSError as error:
            raise _no_place(self.path, error.strerror or str(error)) from error
        self._held: set[int] = set()

    def claim(self, number: int, *, is_shared: bool = False) -> bool:
        """Hold the block from now on; False when somebody else does, or when it would pass the last port.

        `is_shared`: a process that this graph started has it and lives.
        """
        if number > self.ports.last_block:
            return False
        if number not in self._held:
            if not is_shared and not self._locks.take(*self.range_of(number), mode="exclusive"):
                return False
            if not self._locks.take(*self.range_of(number), mode="shared"):
                return False
            self._held.add(number)
        return True

    def is_free(self, number: int) -> bool:
        """Whether `claim` would succeed now."""
        return number <= self.ports.last_block and (number in self._held or self._locks.is_free(*self.range_of(number)))

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Give the others back."""
        gone = self._held.difference(numbers)
        for number in gone:
            self._locks.let_go(*self.range_of(number))
        self._held -= gone

    def range_of(self, number: int) -> tuple[int, int]:
        """The first port of the block, and how many it has."""
        return self.ports.first_of(number), self.ports.size

    def close(self) -> None:
        self._locks.release()


def _file() -> Path:
    """The one file of this user on this machine, in a folder that nobody else can write."""
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.geteuid()}"):
        if base.startswith("/") and _is_private(Path(base)):
            return _made(Path(base) / _FOLDER) / _FILE
    return _made(Path(tempfile.gettempdir()) / f"{_FOLDER}-{os.geteuid()}") / _FILE


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _no_place(folder, error.strerror or str(error)) from error
    if not _is_private(folder):
        raise _no_place(folder, "other users can write there")
    return folder


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _no_place(place: Path, why: str) -> GraphError:
    return GraphError(
        "REPOSITORY_UNSUPPORTED",
        f"The ports of running subtasks cannot be kept apart: {place}: {why}.",
        kept="everything as it is; nothing was started",
        next="set XDG_RUNTIME_DIR to a private folder",
        stage="configuration",
    )
