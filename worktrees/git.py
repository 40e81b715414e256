"""Runs the git program: the only place where argv[0] is git.

A call is an argument vector with a whole environment; nothing is inherited. It has its own process group, /dev/null or
the given bytes as input, a bound on output and on time; past the time the group gets TERM (a killed `pack-refs` would
leave a lock in the user's repository) and, after a grace, KILL. It decides nothing about repositories.
"""

import contextlib
import functools
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from coordinate_agents.worktrees.errors import WorktreeError

MINIMUM_VERSION: Final = (2, 38)
DEFAULT_TIMEOUT_S: Final = 60.0
DEFAULT_MAX_BYTES: Final = 64 << 20
MAX_ERROR_BYTES: Final = 64 << 10
# Long enough for git to remove its lock files, short enough for a person who pressed Ctrl-C.
TERM_GRACE_S: Final = 2.0
_CHUNK: Final = 1 << 16
# More than a pipe holds, so that the last look takes everything; bounded, since a left-behind writer may never stop.
_CHUNKS_AT_ONCE: Final = 64
_MAX_SAID: Final = 300

# What of the caller's environment reaches git: who the user is and where programs and temporary files are. No GIT_*.
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
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


def start(args: Sequence[str], *, env: Mapping[str, str], cwd: str = "/") -> subprocess.Popen[bytes]:
    """Start a git that answers questions line by line over unbuffered pipes, until its input is closed."""
    return _popen([git_program(), *args], env, cwd, subprocess.PIPE, subprocess.DEVNULL)


def end_group(child: subprocess.Popen[bytes], grace_s: float = TERM_GRACE_S) -> None:
    """TERM to the child's process group, KILL after the grace; the child is reaped. Harmless when it has ended."""
    if child.returncode is not None:
        return
    # The child is not reaped before the last signal, so its id cannot belong to another process.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
    _await_exit(child.pid, time.monotonic() + grace_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def failure(args: Sequence[str], result: GitResult) -> WorktreeError:
    """The error for a call that ended with an unexpected code."""
    said = result.said or "no message"
    code = "DISK_FULL" if "No space left on device" in said or "Disk quota" in said else "INTERNAL_ERROR"
    return WorktreeError(code, f"git {_verb(args)} failed with exit code {result.code}: {said}")


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
        out, err = _exchange(child, stdin or b"", time.monotonic() + timeout_s, max_bytes)
        code = child.wait()
    except _TooLongError:
        raise WorktreeError(
            "INTERNAL_ERROR", f"git {_verb(args)} did not end within {timeout_s:g} s and was stopped."
        ) from None
    except _TooMuchError:
        raise WorktreeError("INTERNAL_ERROR", f"git {_verb(args)} wrote more than {max_bytes} bytes.") from None
    finally:
        end_group(child)
        _close(child)
    result = GitResult(code, out, err)
    if code not in ok:
        raise failure(args, result)
    return result


class _TooLongError(Exception):
    pass


class _TooMuchError(Exception):
    pass


def _popen(
    argv: list[str], env: Mapping[str, str], cwd: str, stdin: int, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    try:
        # No preexec_fn and no user change: CPython then uses vfork, which does not copy the caller's page tables.
        return subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, bufsize=0, process_group=0
        )
    except OSError as error:
        what = f"{error.strerror}: {error.filename!s}"
        raise WorktreeError("INTERNAL_ERROR", f"git {_verb(argv[1:])} could not be started: {what}") from error
    except ValueError as error:  # a NUL in an argument or the environment
        raise WorktreeError("INTERNAL_ERROR", f"git {_verb(argv[1:])} could not be started: {error}") from error


def _exchange(child: subprocess.Popen[bytes], given: bytes, deadline: float, max_bytes: int) -> tuple[bytes, bytes]:
    """Feed and read the child until it has ended; then take what is in the pipes, without waiting for their end.

    A process that git left behind (a filter, a credential cache) may hold the pipes open for ever.
    """
    assert child.stdout is not None
    assert child.stderr is not None
    out, err = bytearray(), bytearray()
    sinks = {child.stdout.fileno(): out, child.stderr.fileno(): err}
    poll = select.poll()
    for fd in sinks:
        os.set_blocking(fd, False)
        poll.register(fd, select.POLLIN)
    rest = memoryview(given)
    if child.stdin is not None:
        os.set_blocking(child.stdin.fileno(), False)
        poll.register(child.stdin.fileno(), select.POLLOUT)
    with _exit_descriptor(child.pid) as exit_fd:
        if exit_fd is not None:
            poll.register(exit_fd, select.POLLIN)
        while not _has_exited(child.pid):
            rest = _feed(child, rest, poll)
            for fd, sink in sinks.items():
                _take(fd, sink, poll, max_bytes if sink is out else MAX_ERROR_BYTES)
            _check_bounds(out, max_bytes, deadline)
            # Without a descriptor for the exit (not Linux) a grandchild may hide it: look again every 50 ms.
            wait_s = deadline - time.monotonic() if exit_fd is not None else 0.05
            poll.poll(max(0, int(wait_s * 1000) + 1))
    for fd, sink in sinks.items():
        _take(fd, sink, None, max_bytes if sink is out else MAX_ERROR_BYTES)
    if len(out) > max_bytes:
        raise _TooMuchError
    return bytes(out), bytes(err)


def _check_bounds(out: bytearray, max_bytes: int, deadline: float) -> None:
    if len(out) > max_bytes:
        raise _TooMuchError
    if time.monotonic() >= deadline:
        raise _TooLongError


def _feed(child: subprocess.Popen[bytes], rest: memoryview, poll: "select.poll") -> memoryview:
    """Write what fits; close the input when all was written or nobody reads it."""
    if child.stdin is None or child.stdin.closed:
        return rest
    fd = child.stdin.fileno()
    try:
        while rest:
            rest = rest[os.write(fd, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        pass
    poll.unregister(fd)
    child.stdin.close()
    return rest


def _take(fd: int, sink: bytearray, poll: "select.poll | None", limit: int) -> None:
    """Read what is there, a bounded number of chunks. Bytes past the limit are dropped, one is kept to show it."""
    for _ in range(_CHUNKS_AT_ONCE):
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            if poll is not None:
                with contextlib.suppress(KeyError):
                    poll.unregister(fd)
            return
        sink += chunk[: max(0, limit + 1 - len(sink))]


@contextlib.contextmanager
def _exit_descriptor(pid: int) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends; None where the system has none."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _has_exited(pid: int) -> bool:
    """Whether the child ended; it stays unreaped, so that its group can still be signalled safely."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _await_exit(pid: int, deadline: float) -> None:
    while not _has_exited(pid) and time.monotonic() < deadline:
        with _exit_descriptor(pid) as fd:
            if fd is None:
                time.sleep(0.01)
                continue
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(0, int((deadline - time.monotonic()) * 1000) + 1))


def _close(child: subprocess.Popen[bytes]) -> None:
    pipes: tuple[IO[bytes] | None, ...] = (child.stdin, child.stdout, child.stderr)
    for pipe in pipes:
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


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
    said = next((line for line in reversed(lines) if line), "")
    return said if len(said) <= _MAX_SAID else said[:_MAX_SAID] + "…"
