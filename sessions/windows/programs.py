"""Which files run on Windows, where a name is looked for, and the command line that starts one.

A name without an ending is never a file of that very name: package managers put a shell script of that name beside the
`.cmd` that is meant. The current folder is never looked at, though Windows itself would do so first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Final, Literal

from coordinate_agents.sessions.windows import names, quoting

ProgramKind = Literal["program", "batch", "powershell"]

_KINDS: Final[Mapping[str, ProgramKind]] = {
    ".exe": "program",
    ".com": "program",
    ".cmd": "batch",
    ".bat": "batch",
    ".ps1": "powershell",
}
DEFAULT_PATHEXT: Final = ".COM;.EXE;.BAT;.CMD"


@dataclass(frozen=True, slots=True)
class Found:
    """`path` None: there is none. `looked` says of every place what was there, first to last."""

    path: str | None
    looked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartLine:
    """`application` is the program that Windows starts, `rest` the text behind its name."""

    application: str
    rest: str

    @property
    def whole(self) -> str:
        return f'"{self.application}"{" " if self.rest else ""}{self.rest}'


def kind_of(path: str) -> ProgramKind | None:
    """How the file is started, by its ending; None: it is not a program.

    A name that Windows would shorten (`x.bat.`, `x.bat `) is none: it would be run as a batch file under another name.
    """
    name = PureWindowsPath(path).name
    if names.name_problem(name) is not None:
        return None
    return _KINDS.get(PureWindowsPath(name).suffix.lower())


def endings(pathext: str) -> tuple[str, ...]:
    """The endings to try behind a bare name, in order: those of PATHEXT that we can start, then PowerShell's."""
    wanted = [each.strip().lower() for each in (pathext or DEFAULT_PATHEXT).split(";")]
    return tuple(dict.fromkeys([each for each in wanted if each in _KINDS] + [".ps1"]))


def find(
    command: str,
    *,
    relative_to: str,
    path: str,
    pathext: str,
    reason_to_skip: Callable[[str], str | None],
    is_file: Callable[[str], bool],
) -> Found:
    """The file that `command` means: a path (with `/`, a backslash or a drive), or a name that is looked up in `path`.

    A command that has a runnable ending is tried as it is; any other with each of the endings. `reason_to_skip` is
    asked for every entry of the path and `is_file` for every candidate.
    """
    pure = PureWindowsPath(command)
    places: list[tuple[str, str | None]]
    if pure.name != command:
        places = [(str(PureWindowsPath(relative_to) / pure), None)]
    else:
        places = [(str(PureWindowsPath(entry) / command), _reason(entry, reason_to_skip)) for entry in path.split(";")]
    looked: list[str] = []
    for place, reason in places:
        if reason is not None:
            looked.append(f"{place}: not looked at, {reason}")
            continue
        for candidate in _candidates(place, pathext):
            if is_file(candidate):
                return Found(candidate, (*looked, f"{candidate}: is there"))
            looked.append(f"{candidate}: does not exist")
    return Found(None, tuple(looked))


def start_line(path: str, arguments: Sequence[str], *, system_root: str) -> StartLine:
    """How the file is started with these arguments. Interpreters are named by the system's folder, never by PATH.

    Raises: quoting.CannotQuote when the arguments cannot be given to it, or when it is no program.
    """
    kind = kind_of(path)
    if kind is None:
        raise quoting.CannotQuote(f"{path} is no program; one ends with {', '.join(_KINDS)}")
    system = PureWindowsPath(system_root) / "System32"
    if kind == "program":
        application, whole = path, quoting.command_line([path, *arguments])
    elif kind == "batch":
        application = str(system / "cmd.exe")
        whole = quoting.batch_line(application, path, arguments)
    else:
        application = str(system / "WindowsPowerShell" / "v1.0" / "powershell.exe")
        whole = quoting.powershell_line(application, path, arguments)
    return StartLine(application, whole[len(application) + 2 :].lstrip(" "))


def _candidates(place: str, pathext: str) -> list[str]:
    if kind_of(place) is not None:
        return [place]
    return [place + ending for ending in endings(pathext)]


def _reason(entry: str, reason_to_skip: Callable[[str], str | None]) -> str | None:
    if not entry:
        return "an empty PATH entry means the current folder"
    if not PureWindowsPath(entry).is_absolute():
        return "a relative PATH entry"
    return reason_to_skip(entry)
