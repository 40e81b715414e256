"""Reads the file that a verb was given: a graph document with the folder of its `specFile`s, or any other text.

`-` is standard input. A file that cannot be read is an error like a file that is not valid: exit code 2, named.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.spec_files import spec_file_reader
from coordinate_agents.worktrees.values import value_class

MAX_FILE_BYTES: Final = 64 << 20
STANDARD_INPUT: Final = "-"


@value_class
class Source:
    """`name` is what messages call it; `stem` is the default of a graph's id, None for standard input."""

    text: bytes
    name: str
    stem: str | None
    read_spec_file: Callable[[str], bytes]


def read_source(file: str) -> Source:
    """The bytes of the file. `specFile`s are read from its folder (for standard input: the current one).

    Raises: TASK_GRAPH_INVALID when it cannot be read or has more than 64 MiB.
    """
    if file == STANDARD_INPUT:
        text = _bounded("standard input", sys.stdin.buffer.read(MAX_FILE_BYTES + 1))
        return Source(text, "<stdin>", None, spec_file_reader(Path()))
    path = Path(file)
    try:
        with path.open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable(file, f"cannot be read: {reason}") from error
    return Source(_bounded(file, text), file, path.stem, spec_file_reader(path.parent))


def _bounded(name: str, text: bytes) -> bytes:
    if len(text) > MAX_FILE_BYTES:
        raise _unreadable(name, f"has more than {MAX_FILE_BYTES >> 20} MiB")
    return text


def _unreadable(name: str, what: str) -> GraphError:
    return GraphError(
        "TASK_GRAPH_INVALID", f"{name} {what}.", kept="everything as it is", next="name a file that can be read",
        facts={"file": name},
    )  # fmt: skip
