"""graph-run: create if needed, recover, resume interrupted subtasks, and drive the graph to its end."""

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from coordinate_agents.graph.engine import DriveOptions
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.operations.create import create_document, read_document, spec_document
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph, exit_code_of
from coordinate_agents.graph.operations.leaving import Ending
from coordinate_agents.graph.operations.loading import is_finished, pick_graph, require_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.slots import PORTS_TAKEN
from coordinate_agents.graph.store.lease import holder, take_over
from coordinate_agents.graph.store.rows import GraphRow
from coordinate_agents.worktrees.values import value_class

# Half of it for a polite end; a driver in order needs well under a second to leave.
_TAKE_OVER_S: Final = 20.0
# A driver loads, opens the repository and takes the lease in half a second; a loaded machine needs longer.
_DETACHED_S: Final = 15.0
_LOOK_EVERY_S: Final = 0.02
_DOCUMENT_SUFFIXES: Final = (".yaml", ".yml", ".json")


@value_class
class Request:
    graph: str | None = None
    spec: str | None = None
    check: tuple[str, ...] = ()
    agent: str | None = None
    as_: str | None = None
    integrate: bool = False
    until: str | None = None
    retry_failed: bool = False
    max_starts: int | None = None
    detach: bool = False
    on_input: str | None = None
    deadline: float | None = None
    stop_on_exit: bool = False
    artefacts: str | None = None
    take_over: bool = False
    nested: bool = False
    worktree_root: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    if request.artefacts is not None:
        request = replace(request, artefacts=_prepared(request.artefacts))
    row = _graph(runtime, request)
    was_finished = is_finished(runtime.store, row)
    if request.until is not None:
        require_subtask(row, request.until)
    if request.take_over:
        take_over(runtime.state_dir, row.id, bound_s=_TAKE_OVER_S)
    if request.detach:
        return _detached(runtime, row, request)
    is_ci = os.environ.get("CI") == "true"
    until = SubtaskId(request.until) if request.until is not None else None
    drive = DriveRequest(
        DriveOptions(integrate=request.integrate, until=until, max_starts=request.max_starts),
        retry_failed=request.retry_failed,
        deadline_s=request.deadline,
        stop_on_exit=request.stop_on_exit or is_ci,
        on_input="fail" if request.on_input == "fail" or (is_ci and request.on_input is None) else "wait",
    )
    try:
        snapshot, ending = drive_graph(runtime, row.id, drive)
    except BaseException:
        # What broke the drive is told by who catches it; what there is by now is still written.
        if request.artefacts is not None:
            with contextlib.suppress(Exception):
                _written(runtime, row.id, request.artefacts, status_of(runtime, row.id))
        raise
    if ending == "handover":
        start_detached(runtime, row.id, request)
    data: dict[str, Any] = status_of(runtime, row.id)
    data["ending"] = ending
    code = exit_code_of(snapshot, ending, integrate=request.integrate, until=until)
    advice = _advice(row.id, ending, is_closed=drive.stop_on_exit)
    if ending == "ended" and (snapshot.summary.ended_reason or "").startswith(("DISK_LOW", PORTS_TAKEN)):
        advice = [f"Nothing more was started: {snapshot.summary.ended_reason}."]
    if advice:
        data["advice"] = advice
    if was_finished and (again := _again(runtime, row, request)) is not None:
        data["again"] = again
    if request.artefacts is not None:
        data["artefacts"] = _written(runtime, row.id, request.artefacts, {**data, "exitCode": code})
    return Result(data, code)


def _prepared(folder: str) -> str:
    from coordinate_agents.graph.operations.artefacts import prepare  # a tenth of a run's start, for few runs

    return prepare(folder)


def _written(runtime: Runtime, graph: str, folder: str, status: Mapping[str, Any]) -> dict[str, Any]:
    from coordinate_agents.graph.operations.artefacts import write_artefacts

    return write_artefacts(runtime, graph, folder, status)


def _graph(runtime: Runtime, request: Request) -> GraphRow:
    if request.spec is not None:
        if request.graph is not None:
            raise GraphError("INVALID_USAGE", "give a graph or --spec, not both.")
        document = spec_document(request.spec, checks=request.check, agent=request.agent)
        return create_document(runtime, document, as_id=request.as_, root_option=request.worktree_root)[0]
    if request.check or request.agent is not None:
        raise GraphError(
            "INVALID_USAGE",
            "--check and --agent belong to --spec; a graph names its own.",
            kept="everything as it is; nothing was started",
            next="coordinate-agents graph-run --help",
        )
    if request.graph is not None and is_document(runtime, request.graph):
        document = read_document(request.graph, as_id=request.as_)
        return create_document(
            runtime, document, as_id=request.as_, root_option=request.worktree_root, file=request.graph
        )[0]
    if request.as_ is not None:
        raise GraphError(
            "INVALID_USAGE",
            f"--as {request.as_} names a new graph of a file; {request.graph or 'the graph that runs'} is recorded.",
            kept="everything as it is; nothing was started",
            next="coordinate-agents graph-run FILE --as ID",
        )
    return pick_graph(runtime.store, request.graph)


def _again(runtime: Runtime, row: GraphRow, request: Request) -> str | None:
    """The words that run the same file once more, as a graph of its own; None for what was not given as one."""
    if request.graph is None or request.graph == "-" or not is_document(runtime, request.graph):
        return None
    number = next(number for number in count(2) if runtime.store.graph(f"{row.id}-{number}") is None)
    return f"coordinate-agents graph-run {shlex.quote(request.graph)} --as {row.id}-{number}"


def is_document(runtime: Runtime, word: str) -> bool:
    """Whether the word means a graph file: a path, a known suffix, or an existing file that is no graph's id."""
    if word == "-" or "/" in word or word.endswith(_DOCUMENT_SUFFIXES):
        return True
    return Path(word).is_file() and runtime.store.graph(word) is None


def _advice(graph: str, ending: Ending, *, is_closed: bool) -> list[str]:
    """`is_closed`: no agent outlived the run, so what ran is stopped and begins another attempt."""
    if ending in ("interrupted", "deadline") and is_closed:
        what = "The deadline passed, and the" if ending == "deadline" else "The"
        return [f"{what} agents were closed. Go on: coordinate-agents graph-run {graph} --retry-failed"]
    if ending == "interrupted":
        return [
            "The agents go on in their Sessions; nothing new starts.",
            f"Come back: coordinate-agents graph-run {graph}",
            f"Stop them: coordinate-agents graph-stop {graph}",
        ]
    if ending == "deadline":
        return [f"The deadline passed. Go on: coordinate-agents graph-run {graph}"]
    return []


def _detached(runtime: Runtime, row: GraphRow, request: Request) -> Result:
    current = holder(runtime.state_dir, row.id)
    if current is None:
        once = [("--retry-failed", request.retry_failed), ("--stop-on-exit", request.stop_on_exit)]
        driver = start_detached(runtime, row.id, request, [name for name, wanted in once if wanted])
        await_driver(runtime, row.id, driver)
    else:
        raise GraphError(
            "LEASE_HELD",
            f"graph {row.id} is driven by process {current.pid} already.",
            next=f"coordinate-agents graph-status {row.id}",
            facts={"taskId": row.id, "pid": current.pid},
        )
    data = status_of(runtime, row.id)
    data["cursor"] = row.last_seq
    return Result(data)


def start_detached(
    runtime: Runtime,
    graph: str,
    request: Request,
    more: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """A driver in a session of its own, with its output in a private file; it takes the lease itself.

    `more`: options that a driver that only takes over is not given; what was to be done once was done.
    `environment`: None is this process's own.
    """
    words = [sys.executable, "-P", "-m", "coordinate_agents.cli.main", "graph-run", graph, "--root", str(runtime.root)]
    for name, value in (
        ("--until", request.until),
        ("--max-starts", request.max_starts),
        ("--deadline", request.deadline),
        ("--on-input", request.on_input),
        ("--artefacts", request.artefacts),
    ):
        if value is not None:
            words += [name, str(value)]
    for name, wanted in (("--integrate", request.integrate), ("--nested", request.nested)):
        if wanted:
            words.append(name)
    words += more
    log_path = runtime.state_dir / f"driver-{graph}.log"
    descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with contextlib.closing(os.fdopen(descriptor, "wb")) as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
            start_new_session=True,
            close_fds=True,
        )


def await_driver(runtime: Runtime, graph: str, driver: subprocess.Popen[bytes]) -> None:
    """Return when it drives, or has ended: until then a graph-stop would find nobody to tell, and stop nothing."""
    bound = time.monotonic() + _DETACHED_S
    while holder(runtime.state_dir, graph) is None and driver.poll() is None and time.monotonic() < bound:
        time.sleep(_LOOK_EVERY_S)
