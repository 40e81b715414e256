"""From a configured command to the one file that is executed, or the reason why there is none.

Exact and closed: what was configured is found or refused, never replaced by another agent's program or by a file that
lies in the repository by accident. Every refusal names every place that was looked at. Blocking: reads the file system.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.sessions.agent import ResolvedExecutable
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.windows import names, programs

# Source: Linux, BINPRM_BUF_SIZE; the kernel reads no more of a first line.
_SHEBANG_BYTES: Final = 256


def resolve(command: str, *, relative_to: str, path: str, skip_below: Sequence[str], source: str) -> ResolvedExecutable:
    """The executable that `command` means.

    With a slash it is a path, relative to `relative_to` (`~/` is the user's home). Without one it is looked up in
    `path`; entries that are empty, relative, or at or below one of `skip_below` are left out, since what lies there
    comes from a repository. Raises: EXECUTABLE_NOT_FOUND, EXECUTABLE_NOT_RUNNABLE; the first candidate that exists
    decides, so a broken one is told and never skipped silently.
    """
    if not command or "\0" in command:
        raise _error("EXECUTABLE_NOT_FOUND", command, source, ["the command is empty or contains a NUL character"])
    if os.name == "nt":
        return _resolve_windows(command, relative_to, path, skip_below, source)
    if "/" in command:
        wanted = Path(command).expanduser() if command.startswith("~/") else Path(relative_to) / command
        places: list[tuple[Path, str | None]] = [(wanted, None)]
    else:
        places = [(Path(entry) / command, _reason_to_skip(entry, skip_below)) for entry in path.split(os.pathsep)]
    return _first(command, places, source)


def _resolve_windows(
    command: str, relative_to: str, path: str, skip_below: Sequence[str], source: str
) -> ResolvedExecutable:
    found = programs.find(
        command,
        relative_to=relative_to,
        path=path,
        pathext=os.environ.get("PATHEXT", ""),
        reason_to_skip=lambda entry: _reason_below(entry, skip_below),
        is_file=lambda place: Path(names.extended(place)).is_file(),
    )
    if found.path is None:
        raise _error("EXECUTABLE_NOT_FOUND", command, source, list(found.looked))
    # Links are not followed: what a package manager's shim is called decides how it is started.
    return ResolvedExecutable(command, path=found.path, source=source, name=found.path)


def _first(command: str, places: list[tuple[Path, str | None]], source: str) -> ResolvedExecutable:
    looked: list[str] = []
    broken: list[str] = []
    for place, skip in places:
        if skip is not None:
            looked.append(f"{place}: not looked at, {skip}")
            continue
        problem = problem_of(place)
        if problem is None:
            return ResolvedExecutable(command, path=str(place.resolve()), source=source, name=str(place.absolute()))
        looked.append(f"{place}: {problem}")
        if os.path.lexists(place):
            broken.append(looked[-1])
            if "/" not in command and not place.is_file():
                continue  # a folder of that name on PATH is not what was meant; a file without the right to run is
            raise _error("EXECUTABLE_NOT_RUNNABLE", command, source, looked)
    raise _error("EXECUTABLE_NOT_RUNNABLE" if broken else "EXECUTABLE_NOT_FOUND", command, source, looked)


def problem_of(place: Path) -> str | None:
    """Why the file cannot be executed, or None. Asked again just before a start."""
    try:
        seen = place.stat()
    except FileNotFoundError:
        return "a symbolic link to nothing" if place.is_symlink() else "does not exist"
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISREG(seen.st_mode):
        return "is not a regular file"
    if not os.access(place, os.X_OK):
        return "is not executable"
    if seen.st_size == 0:
        return "is empty"
    return _shebang_problem(place)


def _shebang_problem(place: Path) -> str | None:
    try:
        with place.open("rb") as file:
            start = file.read(_SHEBANG_BYTES)
    except OSError:
        return None  # may be executed without being readable
    if not start.startswith(b"#!"):
        return None
    words = start[2:].split(b"\n", 1)[0].split()
    if not words:
        return "names no interpreter in its first line"
    interpreter = Path(os.fsdecode(words[0]))
    if start[2:].split(b"\n", 1)[0].endswith(b"\r"):
        return "has a carriage return in its first line, so its interpreter cannot be found"
    if not interpreter.is_file() or not os.access(interpreter, os.X_OK):
        return f"needs the interpreter {interpreter}, which is missing"
    return None


def _reason_to_skip(entry: str, skip_below: Sequence[str]) -> str | None:
    if not entry:
        return "an empty PATH entry means the current folder"
    if not entry.startswith("/"):
        return "a relative PATH entry"
    return _reason_below(entry, skip_below)


def _reason_below(entry: str, skip_below: Sequence[str]) -> str | None:
    real = Path(entry).resolve()
    for root in skip_below:
        top = Path(root).resolve()
        if real == top or top in real.parents:
            return f"below {root}"
    return None


def _error(code: str, command: str, source: str, looked: list[str]) -> SessionError:
    what = "was not found" if code == "EXECUTABLE_NOT_FOUND" else "cannot be run"
    places = "; ".join(looked) or "PATH is empty"
    return SessionError(
        code,
        f"The command {command!r} ({source}) {what}. Looked at: {places}.",
        kept="nothing was started",
        next="coordinate-agents setup-discover",
    )
