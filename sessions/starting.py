"""Starts a host: a fresh Session folder, the lock, the specification through a pipe, "ready" back through another.

The host is a plain child in a session of its own (no double fork): it survives its starter, and a starter that lives on
reaps it. The lock on the folder is taken here and inherited, so there is no moment at which a starting Session looks
dead. The specification, with the environment, is in no file and on no command line.
"""

import base64
import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import re
import secrets
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from coordinate_agents.sessions import address as addresses
from coordinate_agents.sessions import crashpoints, custodian, records, strays
from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.crashpoints import crash_point
from coordinate_agents.sessions.environment import secret_values
from coordinate_agents.sessions.errors import HostDiedError, SessionError
from coordinate_agents.sessions.forking import LOCK_DESCRIPTOR, ForkServer, HostProcess
from coordinate_agents.sessions.model import Launch, SessionEnd
from coordinate_agents.sessions.redact import Redactor

# A loaded machine needs a second or two for an interpreter; beyond this something is wrong.
READY_BOUND_S: Final = 30.0
# A process that ends closes its pipes a moment before it can be waited for.
_END_BOUND_S: Final = 0.5
# Source: Linux, MAX_ARG_STRLEN is 32 pages, one byte of it the terminating NUL.
MAX_ARGUMENT_BYTES: Final = 131_071

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_BOOTSTRAP = "import gc, sys; gc.disable(); sys.path.append({base!r}); from {host} import main; main()"


def start_host(
    launch: Launch, sessions_root: Path, socket_dir: Path, *, server: ForkServer | None = None
) -> HostProcess:
    """Start host and child; returns when the host said that the child was executed. Blocks.

    Raises: SESSION_STATE_CONFLICT when the Session exists; SPAWN_FAILED when the child cannot be executed;
    SESSION_START_FAILED when the host itself fails; HostDiedError when somebody killed it. After the last three the
    folder keeps a final record.
    """
    _check(launch)
    _check_private(socket_dir)
    path = sessions_root / launch.session_id
    sessions_root.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)  # may hold the prompt already
    crash_point("start.folder")
    marker = launch.marker or secrets.token_hex(16)
    launch = replace(launch, marker=marker, env={**launch.env, strays.MARK_VARIABLE: marker})
    folder = folders.open_folder(str(path))
    try:
        return _start(launch, path, folder, socket_dir, server)
    finally:
        os.close(folder)


def _start(launch: Launch, path: Path, folder: int, socket_dir: Path, server: ForkServer | None) -> HostProcess:
    token = secrets.token_hex(32)
    known = (*launch.secrets, *secret_values(launch.env))
    masked = (*known, token)
    redactor = _redactor(known)  # no word of the command can hold the token: it is a moment old
    record = records.initial(
        launch,
        command=tuple(redactor.redact_text(word) for word in launch.argv),
        socket=host_address(socket_dir, path),
        token_sha256=hashlib.sha256(token.encode()).hexdigest(),
        now=time.time(),
    )
    lock = folders.claim(folder)
    if lock is None:
        lock = custodian.reclaim(folder)
    if lock is None:
        raise SessionError(
            "SESSION_STATE_CONFLICT",
            f"Session {launch.session_id} was started before; nothing was started now.",
            kept=str(path),
            next=f"coordinate-agents session-status {launch.session_id}",
        )
    crash_point("start.claimed")
    try:
        folders.write_whole(folder, folders.TOKEN, token.encode())
        folders.write_json(folder, folders.RECORD, record)
        crash_point("start.recorded")
        spec = _specification(launch, path, record, token, masked)
        host, answer = _spawn(spec, folder, lock, launch.session_id, server)
        if not answer.get("ok"):
            _refuse(launch, path, folder, host, answer)
        return host
    finally:
        os.close(lock)


@functools.lru_cache(maxsize=8)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    """Kept, since the Sessions of one graph mostly have the same secrets."""
    return Redactor(secrets)


def host_address(socket_dir: Path, folder: Path) -> str:
    """Where the Session's host listens; on the loopback it is the host that knows the port."""
    return str(socket_path(socket_dir, folder)) if addresses.has_paths() else addresses.ANY_PORT


def socket_path(socket_dir: Path, folder: Path) -> Path:
    """Where the Session's socket is: short, since a socket's path is limited to some hundred bytes."""
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return socket_dir / f"{digest[:20]}.sock"


def _check_private(folder: Path) -> None:
    """Make the sockets' folder; refuse one in which another user could put a socket in place of a host's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o022:
        raise SessionError(
            "SESSION_START_FAILED",
            f"The folder for sockets, {folder}, can be written by other users; nothing was started.",
            kept="nothing was started",
            next=f"set XDG_RUNTIME_DIR to a private folder, or remove {folder}",
        )


def _check(launch: Launch) -> None:
    """Refuse what could never be executed. Raises: SPAWN_FAILED."""
    problem = None
    texts = (*launch.argv, *launch.env.keys(), *launch.env.values(), launch.cwd)
    sizes = [len(os.fsencode(word)) for word in launch.argv]
    if not SESSION_ID.fullmatch(launch.session_id):
        problem = f"{launch.session_id!r} is not a Session id"
    elif not launch.argv or not launch.argv[0].startswith("/") or not (launch.executable or "/").startswith("/"):
        problem = "the command is not an absolute path"
    elif any("\0" in text for text in texts):
        problem = "an argument, a variable or the folder contains a NUL character"
    elif max(sizes) > MAX_ARGUMENT_BYTES:
        problem = f"argument {sizes.index(max(sizes))} has {max(sizes)} bytes (limit {MAX_ARGUMENT_BYTES})"
    elif any("=" in name or not name for name in launch.env):
        problem = "the name of a variable is empty or contains '='"
    elif not Path(launch.cwd).is_dir():
        problem = f"the folder {launch.cwd} does not exist"
    elif not (1 <= launch.columns <= 1000 and 1 <= launch.rows <= 1000):
        problem = "columns and rows of a terminal are 1 to 1000"
    if problem is not None:
        raise SessionError(
            "SPAWN_FAILED", f"Session {launch.session_id} did not start: {problem}.", kept="nothing was started"
        )


def _specification(
    launch: Launch, path: Path, record: dict[str, Any], token: str, masked: tuple[str, ...]
) -> dict[str, Any]:
    """What the host reads from its stdin, but for the number of the lock's descriptor."""
    return {
        "folder": str(path.absolute()),
        "record": record,
        "socket": record["socket"],
        "token": token,
        "argv": launch.argv,
        "executable": launch.executable or launch.argv[0],
        "cwd": launch.cwd,
        "env": dict(launch.env),
        "driver": launch.driver,
        "stdin": None if launch.stdin is None else base64.b64encode(launch.stdin).decode(),
        "timeout_s": launch.timeout_s,
        "idle_timeout_s": launch.idle_timeout_s,
        "on_idle": launch.on_idle,
        "close_bound_s": launch.close_bound_s,
        "ring_bytes": launch.ring_bytes,
        "log_bytes": launch.log_bytes,
        "input": None if launch.input is None else asdict(launch.input),
        "acp": None if launch.acp is None else asdict(launch.acp),
        "ports": None if launch.ports is None else asdict(launch.ports),
        "is_input_open": launch.is_input_open or launch.input is not None or launch.acp is not None,
        "columns": launch.columns,
        "rows": launch.rows,
        "secrets": masked,
        "ptyprocess_path": ptyprocess_path(),
    }


def _spawn(
    spec: dict[str, Any], folder: int, lock: int, session_id: str, server: ForkServer | None
) -> tuple[HostProcess, dict[str, Any]]:
    """The host process and its first line; an empty answer when it ended or said nothing in time.

    Each try has pipes of its own: a fork server that died may have forked a host first, which finds its specification
    empty and ends.
    """
    asked = None if server is None else _ask_host(spec, folder, lock, functools.partial(_forked_host, server))
    asked = asked or _ask_host(spec, folder, lock, functools.partial(_own_host, session_id))
    assert asked is not None, "a host of its own is made or raises"
    return asked


# Makes a host from descriptors: specification, ready, errors, lock; and the number of the lock's descriptor there.
_Start = Callable[[int, int, int, int], tuple[HostProcess, int] | None]


def _ask_host(spec: dict[str, Any], folder: int, lock: int, start: _Start) -> tuple[HostProcess, dict[str, Any]] | None:
    """None when no host was made this way."""
    spec_out, spec_in = os.pipe2(os.O_CLOEXEC)
    ready_out, ready_in = os.pipe2(os.O_CLOEXEC)
    with os.fdopen(spec_in, "wb") as specification, os.fdopen(ready_out, "rb") as ready:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        errors = -1
        try:
            errors = os.open(folders.HOST_ERRORS, flags, 0o600, dir_fd=folder)
            made = start(spec_out, ready_in, errors, lock)
        finally:
            for descriptor in (spec_out, ready_in, errors):
                if descriptor >= 0:
                    os.close(descriptor)
        if made is None:
            return None
        host, number = made
        crash_point("start.forked")
        with contextlib.suppress(BrokenPipeError):
            # JSON, ASCII; text that is not UTF-8 travels as lone surrogates.
            specification.write(json.dumps({**spec, "lock_fd": number}).encode("ascii"))
            specification.close()
        crash_point("start.specified")
        line = _first_line(ready.fileno(), time.monotonic() + READY_BOUND_S)
    try:
        answer = json.loads(line)
    except ValueError:
        answer = {}
    return host, answer


def _forked_host(
    server: ForkServer, spec_out: int, ready_in: int, errors: int, lock: int
) -> tuple[HostProcess, int] | None:
    forked = server.fork(spec_out, ready_in, errors, lock)
    return None if forked is None else (forked, LOCK_DESCRIPTOR)


def _own_host(session_id: str, spec_out: int, ready_in: int, errors: int, lock: int) -> tuple[HostProcess, int]:
    host = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", bootstrap(), session_id],  # the last word is for people who look at ps
        stdin=spec_out,
        stdout=ready_in,
        stderr=errors,
        cwd="/",
        env={"LC_ALL": "C.UTF-8", **crashpoints.environment()},
        start_new_session=True,
        pass_fds=(lock,),
    )
    return host, lock


def bootstrap() -> str:
    """The host's program: one absolute path behind the stdlib on the path, and nothing else of this interpreter's."""
    base = Path(__file__).absolute().parents[2]
    return _BOOTSTRAP.format(base=str(base), host=strays.HOST_WORDS.decode())


@functools.cache
def ptyprocess_path() -> str:
    """The folder that holds ptyprocess, for processes that look at no site-packages."""
    spec = importlib.util.find_spec("ptyprocess")
    return "" if spec is None or spec.origin is None else str(Path(spec.origin).absolute().parents[1])


def _first_line(descriptor: int, until: float) -> bytes:
    data = b""
    while b"\n" not in data and (left := until - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            break
        piece = os.read(descriptor, 65536)
        if not piece:
            break
        data += piece
    return data.partition(b"\n")[0]


def _refuse(launch: Launch, path: Path, folder: int, host: HostProcess, answer: dict[str, Any]) -> None:
    """End a host that did not get ready, complete its record, and raise."""
    if answer:
        host.wait(READY_BOUND_S)
        message = str(answer.get("error"))
        raise SessionError(
            "SPAWN_FAILED",
            f"Session {launch.session_id} did not start: {message}.",
            kept=str(path),
            next="check that the command exists and can be run in that folder",
        )
    has_died = _has_ended(host)
    host.kill()
    host.wait()
    # The child may run already, and have left a daemon without the mark: the host noted what it knew of it.
    seen = records.read(folder)
    traces = custodian.traces_of(
        [] if seen is None else [seen],
        markers=(launch.marker,),
        paths=custodian.own_paths(path, (launch.cwd,)) if seen is not None and seen.host is not None else (),
    )
    survivors = strays.end(traces, launch.close_bound_s)
    reason = (folders.read_whole(folder, folders.HOST_ERRORS, 1 << 20) or b"").decode("utf-8", "replace").strip()
    reason = Redactor((*launch.secrets, *secret_values(launch.env))).redact_text(reason[-1000:])
    records.with_end(
        folder,
        SessionEnd(cause="host-lost", survivors=survivors, error=reason or "the host did not get ready"),
        session_id=launch.session_id,
    )
    custodian.remove_socket(seen)
    if has_died and not reason:
        raise HostDiedError(
            "SESSION_NOT_HEALTHY", f"The host of Session {launch.session_id} was killed as it started.", kept=str(path)
        )
    raise SessionError(
        "SESSION_START_FAILED",
        f"The host of Session {launch.session_id} did not get ready: {reason or 'it said nothing'}.",
        kept=str(path),
    )


def _has_ended(host: HostProcess) -> bool:
    """Whether it ended by itself, or by another's signal, and not by ours."""
    try:
        host.wait(_END_BOUND_S)
    except subprocess.TimeoutExpired:
        return False
    return True
