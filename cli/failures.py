"""From an exception to one error: its JSON, its three lines of text, and its exit code.

Everything that goes wrong in a command passes here once. A refusal says what happened, what was kept and what to do
next. A bug of ours says where its traceback was written: a private file, since a traceback may hold anything.
"""

import contextlib
import errno
import os
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from coordinate_agents.graph.errors import (
    CODES,
    MAX_DETAIL_BYTES,
    MAX_MESSAGE_BYTES,
    GraphError,
)
from coordinate_agents.graph.text import clipped, counted, visible

# A document with ten thousand problems is told by its first ones; the JSON holds them all.
MAX_PROBLEM_LINES: Final = 100

# Refused before the verb did anything.
_BEFORE_ANYTHING: Final = frozenset(
    {
        "CONFIG_UNTRUSTED",
        "INVALID_ADAPTER_CONFIG",
        "INVALID_AGENT_CONFIG",
        "INVALID_USAGE",
        "NOT_A_REPOSITORY",
        "TASK_GRAPH_INVALID",
        "TASK_NOT_FOUND",
        "UNSUPPORTED_CAPABILITY",
    }
)
# What leads on where the error itself does not say it; None: the help of the verb.
_NEXT_OF_CODE: Final[Mapping[str, str | None]] = {
    "INVALID_USAGE": None,
    "OUTPUT_FAILED": "run the same command with an output that can be written",
    "TASK_GRAPH_INVALID": None,
    "TASK_NOT_FOUND": "coordinate-agents graph-list",
    "TASK_STATE_CONFLICT": "coordinate-agents graph-status",
    "UNSUPPORTED_CAPABILITY": None,
}


def as_graph_error(error: BaseException, argv: Sequence[str]) -> GraphError:
    """What the exception means to a user. An unexpected one is written to a file and becomes INTERNAL_ERROR.

    Of several that ended one drive together the first is told, unless one of them is unexpected.
    """
    found = [_known(each) for each in _each(error)]
    known = [each for each in found if each is not None]
    return known[0] if len(known) == len(found) else _bug(error, argv)


def _each(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for inner in error.exceptions:
        yield from _each(inner)


def _known(error: BaseException) -> GraphError | None:
    if isinstance(error, GraphError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return GraphError(
            "INTERRUPTED", "Interrupted.", kept="everything recorded so far", next="run the same command again"
        )
    code = getattr(error, "code", None)
    if isinstance(code, str) and code in CODES:  # WorktreeError, SessionError: the same three sentences
        return GraphError(
            code,
            str(error),
            kept=getattr(error, "kept", None),
            next=getattr(error, "next", None),
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return GraphError(
            "DISK_FULL",
            f"No space is left on the disk{_where(error)}.",
            kept="everything recorded before",
            next="free space on that disk, then run the same command again",
        )
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) and error.filename:
        return GraphError(
            "REPOSITORY_UNSUPPORTED",
            f"{error.filename} cannot be read or written: {error.strerror}.",
            kept="everything recorded before",
            next=f"ls -ld {shlex.quote(str(Path(os.fsdecode(error.filename)).parent))}",
        )
    return None


def with_all_sentences(error: GraphError, *, command: str | None) -> GraphError:
    """Fill in what the place that raised it left out: what was kept, and a command that leads on."""
    if error.kept is None:
        error.kept = "everything as it is" if error.code in _BEFORE_ANYTHING else "everything recorded before"
    if error.next is None:
        error.next = _NEXT_OF_CODE.get(error.code, "coordinate-agents doctor")
    if error.next is None:
        error.next = f"coordinate-agents {command} --help" if command else "coordinate-agents --help"
    return error


def to_json(error: GraphError) -> dict[str, Any]:
    """The `error` of the JSON document (contract section 11)."""
    found: dict[str, Any] = {
        "code": error.code,
        "message": clipped(error.message, MAX_MESSAGE_BYTES),
        "recoverable": error.recoverable,
        "stage": error.stage,
    }
    found.update((name, _bounded(value)) for name, value in error.facts.items())
    if error.kept is not None:
        found["kept"] = clipped(error.kept, MAX_DETAIL_BYTES)
    if error.next is not None:
        found["next"] = clipped(error.next, MAX_DETAIL_BYTES)
    if error.problems:
        found["problems"] = [
            {"line": each.line, "column": each.column, "path": each.path, "message": each.message}
            for each in error.problems
        ]
    return found


def to_lines(error: GraphError) -> list[str]:
    """What happened; every problem of a document; Kept; Next. Each one line and safe for a terminal."""
    name = visible(str(error.facts.get("file", "")))
    message = visible(error.message, limit=MAX_MESSAGE_BYTES)
    if error.problems and name:  # the message repeats the first one
        message = f"{counted(len(error.problems), 'problem')} in {name}"
    lines = [f"{error.code}: {message}"]
    for each in error.problems[:MAX_PROBLEM_LINES]:
        place = f"{each.line}:{each.column}" if each.line else ""
        lines.append(": ".join(part for part in (f"{name}:{place}".strip(":"), visible(each.message)) if part))
    if len(error.problems) > MAX_PROBLEM_LINES:
        lines.append(f"… and {len(error.problems) - MAX_PROBLEM_LINES} more problems; --json lists them all")
    if error.kept:
        lines.append(f"Kept: {visible(error.kept)}")
    if error.next:
        lines.append(f"Next: {visible(error.next)}")
    return lines


def _bounded(value: Any) -> Any:
    return clipped(value, MAX_DETAIL_BYTES) if isinstance(value, str) else value


def _where(error: OSError) -> str:
    return f" ({error.filename})" if error.filename else ""


def _bug(error: BaseException, argv: Sequence[str]) -> GraphError:
    text = "".join(traceback.format_exception(error))
    what = f"{type(error).__name__}: {visible(str(error), limit=300)}"
    try:
        path = _write_private(f"coordinate-agents {' '.join(argv)}\nPython {sys.version}\n\n{text}")
    except OSError as failed:
        sys.stderr.write(text)
        return GraphError(
            "INTERNAL_ERROR",
            f"A bug of ours: {what}. Its traceback could not be written to a file ({failed.strerror}).",
            kept="everything recorded before",
            next="report it with the traceback above",
            recoverable=False,
        )
    return GraphError(
        "INTERNAL_ERROR",
        f"A bug of ours: {what}.",
        kept="everything recorded before",
        next=f"report it with the traceback in {path}",
        recoverable=False,
        facts={"traceback": path},
    )


def _write_private(text: str) -> str:
    """Write to a file that only this user can read; returns its path."""
    folder: Path | None = None
    with contextlib.suppress(OSError, RuntimeError):  # no home folder, or one that cannot be written
        state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        wanted = Path(state, "coordinate-agents", "crashes")
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = wanted
    handle, path = tempfile.mkstemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), suffix=".txt", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path
