"""Runs the git program: the only place where argv[0] is git.

A call is an argument vector with a whole environment; nothing is inherited. It has its own process group, /dev/null or
the given bytes as input, a bound on output and on time; past the time the group gets TERM (a killed `pack-refs` would
leave a lock in the user's repository) and, after a grace, KILL. It decides nothing about repositories.
"""

import contextlib
import functools
import os
import re
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.process import TooLongError, TooMuchError, close_pipes, end_group, exchange
from coordinate_agents.worktrees.values import value_class

MINIMUM_VERSION: Final = (2, 38)
DEFAULT_TIMEOUT_S: Final = 60.0
DEFAULT_MAX_BYTES: Final = 64 << 20
_MAX_SAID: Final = 300
# A disk with less room than this refuses files of some size.
_FULL_BYTES: Final = 1 << 20

# What of the caller's environment reaches git: who the user is and where programs and temporary files are. No GIT_*.
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


@value_class
class GitResult:
    """Exit code and whole output of one call."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Output without its last newline; bytes that are not UTF-8 are carried by surrogateescape."""
        return os.fsdecode(self.out).removesuffix("\n")

    def lines(self) -> list[str]:
        """Output split at newlines. Use `fields` for anything that holds paths."""
        return self.text.split("\n") if self.out else []

    def fields(self) -> list[str]:
        """Output of a `-z` format, split at NUL."""
        text = os.fsdecode(self.out).removesuffix("\0")
        return text.split("\0") if self.out else []

    @property
    def said(self) -> str:
        """The last line of the error output that says something, bounded."""
        return _last_line(self.err)


@functools.cache
def git_program() -> str:
    """The absolute path of git. Raises: REPOSITORY_UNSUPPORTED when there is none, or one older than 2.38."""
    program = _find_git(os.environ.get("PATH", os.defpath))
    if program is None:
        raise WorktreeError("REPOSITORY_UNSUPPORTED", "git is not on PATH.", next="install git 2.38 or newer")
    _check_version(_version_of(program), program)
    return program


def git_version() -> str:
    """Version of `git_program`, like "2.39.5"."""
    return _version_of(git_program())


def inherited_environment() -> dict[str, str]:
    """A fresh environment: only where things are, none of git's own variables."""
    env = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    env["LC_ALL"] = "C"
    return env


def config_environment(pairs: Collection[tuple[str, str]]) -> dict[str, str]:
    """Variables that set configuration for one call. Unlike with `-c`, a key may hold any character."""
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def run(
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str = "/",
    stdin: bytes | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    max_bytes: int = DEFAULT_MAX_BYTES,
    ok: Collection[int] = (0,),
) -> GitResult:
    """Run git with these arguments and wait for it. Blocks; thread-safe.

    Raises: WorktreeError when the code is not in `ok` (with git's last line), past `timeout_s` or past `max_bytes`.
    """
    return _run(git_program(), args, env=env, cwd=cwd, stdin=stdin, timeout_s=timeout_s, max_bytes=max_bytes, ok=ok)


def start(
    args: Sequence[str], *, env: Mapping[str, str], cwd: str = "/", with_errors: bool = False
) -> subprocess.Popen[bytes]:
    """Start a git that answers questions line by line over unbuffered pipes, until its input is closed.

    `with_errors`: its error output is a pipe too, for a program that says at most one thing there, and then ends.
    """
    return _popen(
        [git_program(), *args], env, cwd, subprocess.PIPE, subprocess.PIPE if with_errors else subprocess.DEVNULL
    )


def failure(args: Sequence[str], result: GitResult, *, wrote: str | None = None) -> WorktreeError:
    """The error for a call that ended with an unexpected code. `wrote`: the folder into which it wrote files."""
    said = result.said or "no message"
    is_full = _met_full_disk(result.err, wrote)
    if is_full and not _names_full_disk(said):
        said += ": no space left"
    code = "DISK_FULL" if is_full else "INTERNAL_ERROR"
    how = f"was killed by signal {-result.code}" if result.code < 0 else f"failed with exit code {result.code}"
    return WorktreeError(code, f"git {_verb(args)} {how}: {said}")


def _names_full_disk(said: str) -> bool:
    return "No space left on device" in said or "Disk quota" in said


def _met_full_disk(err: bytes, wrote: str | None) -> bool:
    """Whether git says so; of a file whose content found no room, it says only that it could not be written."""
    if _names_full_disk(err.decode("utf-8", "replace")):
        return True
    if wrote is None or b"unable to write file" not in err:
        return False
    with contextlib.suppress(OSError):
        disk = os.statvfs(wrote)
        return disk.f_bavail * disk.f_frsize < _FULL_BYTES
    return False


def _run(
    program: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdin: bytes | None,
    timeout_s: float,
    max_bytes: int,
    ok: Collection[int],
) -> GitResult:
    child = _popen([program, *args], env, cwd, subprocess.DEVNULL if stdin is None else subprocess.PIPE)
    try:
        out, err = exchange(child, stdin or b"", time.monotonic() + timeout_s, max_bytes)
        code = child.wait()
    except TooLongError:
        raise WorktreeError(
            "INTERNAL_ERROR", f"git {_verb(args)} did not end within {timeout_s:g} s and was stopped."
        ) from None
    except TooMuchError:
        raise WorktreeError("INTERNAL_ERROR", f"git {_verb(args)} wrote more than {max_bytes} bytes.") from None
    finally:
        end_group(child)
        close_pipes(child)
    result = GitResult(code, out, err)
    if code not in ok:
        raise failure(args, result)
    return result


def _popen(
    argv: list[str], env: Mapping[str, str], cwd: str, stdin: int, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    try:
        # No preexec_fn and no user change: CPython then uses vfork, which does not copy the caller's page tables.
        return subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, bufsize=0, process_group=0
        )
    except OSError as error:
        what = f"{error.strerror}: {error.filename!s}" if error.filename else error.strerror
        raise WorktreeError("INTERNAL_ERROR", f"git {_verb(argv[1:])} could not be started: {what}") from error
    except ValueError as error:  # a NUL in an argument or the environment
        raise WorktreeError("INTERNAL_ERROR", f"git {_verb(argv[1:])} could not be started: {error}") from error


def _find_git(path: str) -> str | None:
    """The first git on an absolute PATH entry: a relative or empty one would be looked up in an agent's folder."""
    for folder in path.split(os.pathsep):
        candidate = Path(folder) / "git"
        if Path(folder).is_absolute() and candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    return None


@functools.cache
def _version_of(program: str) -> str:
    """Version text of a git program, without what vendors append."""
    result = _run(
        program, ["version"], env=inherited_environment(), cwd="/", stdin=None, timeout_s=10, max_bytes=4096, ok=(0,)
    )
    found = re.search(r"(\d+(?:\.\d+)+)", result.text)
    return found.group(1) if found else "0"


def _check_version(version: str, program: str) -> None:
    numbers = tuple(int(part) for part in version.split("."))
    if numbers[:2] < MINIMUM_VERSION:
        raise WorktreeError(
            "REPOSITORY_UNSUPPORTED",
            f"git {version} at {program} is too old: 2.38 or newer is needed.",
            kept="nothing was changed",
            next="install a newer git and put it first on PATH",
        )


def _verb(args: Sequence[str]) -> str:
    """The git command of an argument vector, past leading `-c name=value`."""
    rest = iter(args)
    for word in rest:
        if word == "-c":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return "call"


def _last_line(err: bytes) -> str:
    lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines()]
    # Advice is not what went wrong.
    said = next((line for line in reversed(lines) if line and not line.startswith("hint:")), "")
    return said if len(said) <= _MAX_SAID else said[:_MAX_SAID] + "…"
