"""setup-configure: write an agent into the user's or the project's configuration file, whole or not at all.

The order: lock, read, edit, judge the new text, write it beside the file and rename it over, read everything back from
the disk as a run would, resolve the agent's program. Whatever fails after the rename puts the old file back. The
project's file stays trusted when it was trusted before: the rest of it is what the user had looked at already.
"""

import contextlib
import difflib
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from coordinate_agents.cli import config, custody, trust_store
from coordinate_agents.cli.setup.agents import Looked, fields_json, look_at_agents
from coordinate_agents.cli.setup.config_edit import Change, Edited, Value, edit
from coordinate_agents.graph import config_document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.sessions.environment import secret_values
from coordinate_agents.sessions.redact import Redactor
from coordinate_agents.worktrees.values import value_class

# Another one is done in milliseconds, unless it is stopped.
_LOCK_BOUND_S: Final = 10.0
_NOTHING: Final = "the configuration file as it was"


@value_class
class Request:
    agent: str | None = None
    adapter: str | None = None
    command: str | None = None
    arg: tuple[str, ...] = ()
    mode: str | None = None
    delivery: str | None = None
    driver: str | None = None
    permissions: str | None = None
    commit: str | None = None
    env: tuple[str, ...] = ()
    default_agent: str | None = None
    remove: bool = False
    project: bool = False
    user: bool = False
    dry_run: bool = False


def execute(runtime: Runtime | None, request: Request) -> Result:
    """`diff` of the file, whether it `changed`, the agent as it would be started. Raises: INVALID_USAGE,
    INVALID_AGENT_CONFIG, EXECUTABLE_NOT_FOUND, EXECUTABLE_NOT_RUNNABLE, NOT_A_REPOSITORY, AGENT_MAY_NOT."""
    custody.refuse_inside("setup-configure")
    root = runtime.root if runtime is not None else Path.cwd()
    if request.project and runtime is None:
        raise GraphError(
            "NOT_A_REPOSITORY", f"{root} is not inside a repository, so it has no project file.", kept=_NOTHING,
            next="change into the repository, or write the user's file with --user",
        )  # fmt: skip
    changes = _changes(request)
    loaded = config.load(root)  # what is broken already is told before anything is touched
    path = loaded.project_path if request.project else loaded.user_path
    with _locked(path):
        before = _bytes(path)
        edited = edit((before or b"").decode("utf-8"), changes)
        after = edited.text.encode("utf-8")
        config_document.parse(after, name=str(path), source="project" if request.project else "user")
        agent = None
        if after != (before or b"") and not request.dry_run:
            agent = _write(root, path, before, after, request, was_trusted=loaded.is_trusted)
        elif request.agent is not None and not request.remove and not request.dry_run:
            agent = _looked(root, request.agent)
    return Result(_answer(request, path, before, edited, agent, loaded.is_trusted))


def _answer(
    request: Request, path: Path, before: bytes | None, edited: Edited, agent: Looked | None, was_trusted: bool
) -> dict[str, Any]:
    old = (before or b"").decode("utf-8")
    lines = difflib.unified_diff(
        old.splitlines(), edited.text.splitlines(), str(path) if before is not None else "/dev/null", str(path),
        lineterm="",
    )  # fmt: skip
    redactor = Redactor(secret_values(_environment(request.env)))
    return {
        "file": str(path),
        "changed": edited.text != old and not request.dry_run,
        "diff": [redactor.redact_text(line) for line in lines],
        "commentsKept": edited.keeps_comments,
        "trusted": was_trusted if request.project else True,
        "agent": None
        if agent is None
        else {
            "agent": agent.agent,
            "adapter": agent.adapter,
            "command": agent.command,
            "source": agent.source,
            "fields": fields_json(agent),
        },
    }


def _changes(request: Request) -> list[Change]:
    """What was asked for as changes of the file. Raises: INVALID_USAGE."""
    given: dict[str, Value] = {
        "adapter": request.adapter,
        "command": request.command,
        "args": request.arg or None,
        "mode": request.mode,
        "delivery": request.delivery,
        "driver": request.driver,
        "permissions": request.permissions,
        "commit": request.commit,
        "env": _environment(request.env) or None,
    }
    values = {name: value for name, value in given.items() if value is not None}
    problem = None
    if request.project and request.user:
        problem = "Give --project or --user, not both."
    elif request.agent is None and (values or request.remove):
        problem = "Name the agent with --agent."
    elif request.agent is None and request.default_agent is None:
        problem = "There is nothing to write: give --agent with its settings, or --default-agent."
    elif request.remove and values:
        problem = "--remove takes the whole agent away; give no settings with it."
    elif request.agent is not None and not request.remove and not values and request.default_agent is None:
        problem = f"There is nothing to write for agent {request.agent}: give --adapter, --command or another setting."
    if problem is not None:
        raise GraphError("INVALID_USAGE", problem, kept=_NOTHING, next="coordinate-agents setup-configure --help")
    changes = []
    if request.default_agent is not None:
        changes.append(Change(("defaultAgent",), request.default_agent))
    if request.agent is not None and request.remove:
        changes.append(Change(("agents", request.agent), None))
    if request.agent is not None:
        changes += [Change(("agents", request.agent, name), value) for name, value in values.items()]
    return changes


def _environment(words: tuple[str, ...]) -> Mapping[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise GraphError("INVALID_USAGE", f"--env takes NAME=VALUE, not {word.partition('=')[0]!r}.", kept=_NOTHING)
        found[name] = value
    return found


def _write(
    root: Path, path: Path, before: bytes | None, after: bytes, request: Request, *, was_trusted: bool
) -> Looked | None:
    """Replace the file and look at it as a run would; on any failure the old one is put back before it is raised."""
    _replace(path, after)
    try:
        if request.project and was_trusted:
            trust_store.record(Path(os.path.realpath(root)), hashlib.sha256(after).hexdigest())
        loaded = config.load(root)
        for name in (request.default_agent, None if request.remove else request.agent):
            if name is not None and loaded.is_trusted:
                loaded.config.settings_of(name)
        if request.agent is None or request.remove or not loaded.is_trusted:
            return None
        return _looked(root, request.agent)
    except BaseException as error:
        _restore(path, before)
        if isinstance(error, GraphError):
            error.kept = f"{path} as it was: the change was rolled back"
        raise


def _looked(root: Path, name: str) -> Looked:
    """The agent as it would be started. Raises: what keeps it from being started."""
    loaded = config.load(root)
    found = next((each for each in look_at_agents(loaded.config, loaded.root) if each.agent == name), None)
    if found is None or found.command is None:
        raise GraphError(
            found.code if found is not None and found.code else "INVALID_AGENT_CONFIG",
            (found.error if found is not None else None) or f"Agent {name} is not configured.",
            kept=_NOTHING,
            next=found.next if found is not None else "coordinate-agents setup-discover",
            facts={"agent": name},
        )
    return found


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time: a lock on the folder itself, so that no lock file is left in anybody's repository."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        until = time.monotonic() + _LOCK_BOUND_S
        while not _has_lock(descriptor):
            if time.monotonic() >= until:
                raise _unwritable(path, OSError(f"another setup-configure writes it since {_LOCK_BOUND_S:g} s"))
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _has_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _replace(path: Path, data: bytes) -> None:
    """The file with this content, or the old one: never a part, also after a power cut. A link stays a link."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        folder = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _unwritable(path, error) from error


def _restore(path: Path, before: bytes | None) -> None:
    if before is None:
        Path(os.path.realpath(path)).unlink(missing_ok=True)
    else:
        _replace(path, before)


def _unwritable(path: Path, error: OSError) -> GraphError:
    return GraphError(
        "INVALID_AGENT_CONFIG",
        f"The configuration {path} cannot be written: {error.strerror or error}.",
        kept=_NOTHING,
        next="make the folder writable, or choose the other file with --user or --project",
        facts={"file": str(path)},
    )
