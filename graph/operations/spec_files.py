"""Reads the `specFile`s of a graph document from the folder that the document stands in, and from nowhere else."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from coordinate_agents.graph.document_shape import MAX_SPEC_BYTES
from coordinate_agents.graph.relative_paths import path_problem


def spec_file_reader(folder: Path) -> Callable[[str], bytes]:
    """A function that returns the bytes of a file below `folder`.

    It raises ValueError for a path that is absolute or leaves the folder (also through a symbolic link), for what is
    no regular file and for what is larger than a spec may be; OSError when the file cannot be read.
    """
    top = Path(os.path.realpath(folder))

    def read(name: str) -> bytes:
        reason = path_problem(name)
        if reason:
            raise ValueError(reason)
        path = Path(os.path.realpath(top / name))
        if not path.is_relative_to(top):
            raise ValueError("it leads out of the folder of the graph file through a symbolic link")
        return _read_regular(path)

    return read


def _read_regular(path: Path) -> bytes:
    # O_NONBLOCK: opening a named pipe must not wait for a writer; O_NOFOLLOW: the path was resolved a moment ago.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("it is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        # One byte more than UTF-16 could need shows that it is too large, without reading all of it.
        data = file.read(2 * MAX_SPEC_BYTES + 3)
    if len(data) > 2 * MAX_SPEC_BYTES + 2:
        raise ValueError(f"it has more than {MAX_SPEC_BYTES} bytes (256 KiB)")
    return data
