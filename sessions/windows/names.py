"""What a path may be called on Windows, and how a long one is said."""

from pathlib import PureWindowsPath
from typing import Final

# Source: Microsoft, "Naming Files, Paths, and Namespaces". The superscript digits count as digits there.
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"]
)
_FORBIDDEN: Final = frozenset('<>:"|?*')
# A folder's own limit leaves room for a file name of the old form (8.3).
MAX_PLAIN_PATH: Final = 247
# Source: CreateProcessW, lpCurrentDirectory: MAX_PATH - 2, and no prefix helps.
MAX_FOLDER_OF_PROCESS: Final = 258


def name_problem(name: str) -> str | None:
    """Why one part of a path cannot be used, or None. A name that Windows would change counts as a problem."""
    if not name:
        return "is empty"
    if any(letter in _FORBIDDEN or ord(letter) < 32 for letter in name):
        return "contains a character that Windows forbids in names"
    if name[-1] in ". ":
        return "ends with a dot or a blank, which Windows leaves out"
    if name.partition(".")[0].rstrip(" ").lower() in _DEVICES:
        return "is the name of a device"
    return None


def path_problem(path: str) -> str | None:
    """Why an absolute path cannot be used as it is written, or None."""
    pure = PureWindowsPath(path)
    if not pure.is_absolute():
        return "is not absolute: it needs a drive or a server"
    if path.startswith(("\\\\.\\", "//./")):
        return "names a device"
    for name in pure.parts[1:]:
        problem = name_problem(name)
        if problem is not None:
            return f"{name!r} {problem}"
    return None


def folder_problem(path: str) -> str | None:
    """Why no process can be started in this folder, or None."""
    if _units(path) > MAX_FOLDER_OF_PROCESS:
        return f"is longer than {MAX_FOLDER_OF_PROCESS} characters, and Windows starts no process in such a folder"
    return path_problem(path)


def extended(path: str) -> str:
    r"""An absolute path that may be longer than MAX_PATH: `\\?\C:\…` or `\\?\UNC\server\…`; a short one as it is.

    Behind the prefix Windows takes nothing for `..`, `.` or `/`, so they are resolved here.
    """
    if path.startswith("\\\\?\\") or _units(path) <= MAX_PLAIN_PATH:
        return path
    pure = PureWindowsPath(path)
    parts: list[str] = []
    for name in pure.parts[1:]:
        if name == "..":
            del parts[-1:]
        elif name != ".":
            parts.append(name)
    drive = pure.drive
    root = f"\\\\?\\UNC\\{drive[2:]}" if drive.startswith("\\\\") else f"\\\\?\\{drive}"
    return "\\".join([root, *parts])


def _units(path: str) -> int:
    """Length as Windows counts, in UTF-16."""
    return len(path.encode("utf-16-le", "surrogatepass")) // 2
