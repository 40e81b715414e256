"""Writes what a run leaves for a CI server to keep: status, events, JUnit XML, check logs, patches, a report, a bundle.

Whatever ended the drive. A file that cannot be written is named among the problems and changes nothing of the result.
Every file is made beside its place and renamed; nothing else in the folder is touched.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from coordinate_agents.graph import report_html
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.junit import junit
from coordinate_agents.graph.operations.events import event_json
from coordinate_agents.graph.operations.report import report_of
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import clipped
from coordinate_agents.worktrees.errors import WorktreeError

MAX_LOG_BYTES: Final = 8 << 20
_MAX_PROBLEMS: Final = 50
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(slots=True)
class _Written:
    files: int = 0
    problems: list[str] = field(default_factory=list)


def prepare(folder: str) -> str:
    """Make the folder and see that it takes a file, before anything is started; its absolute path.

    Raises: INVALID_USAGE.
    """
    path = Path(os.path.abspath(folder))  # noqa: PTH100  a link that the caller named is theirs to follow
    probe = path / f".coordinate-agents-{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        _write(probe, b"")
        probe.unlink()
    except OSError as error:
        raise GraphError(
            "INVALID_USAGE",
            f"Artefacts cannot be written to {path}: {error.strerror}.",
            kept="everything as it is; nothing was started",
            next="coordinate-agents graph-run --help",
        ) from error
    return str(path)


def write_artefacts(runtime: Runtime, graph: str, folder: str, status: Mapping[str, Any]) -> dict[str, Any]:
    """Write everything; `{folder, files, problems}`. Never raises for a file that cannot be written."""
    top, written = Path(folder), _Written()
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(runtime.clock.now()))
    _try(written, "status.json", lambda: _write(top / "status.json", _json(status)))
    _try(written, "events.jsonl", lambda: _write_events(runtime, graph, top / "events.jsonl"))
    _try(written, "junit.xml", lambda: _write(top / "junit.xml", junit(status, timestamp=now).encode()))
    for owner, name, source in _logs(status):
        _try(written, f"checks/{owner}/{name}", partial(_copy, source, top / "checks" / owner / name))
    for subtask in status["subtasks"]:
        base, head = subtask["base"], subtask["verifiedCommit"] or subtask["head"]
        if head and base and head != base:
            name = f"{_safe(subtask['id'])}.patch"
            _try(written, f"patches/{name}", partial(_patch, runtime, base, head, top / "patches" / name))
    if report_html.is_available():
        _try(written, "report.html", lambda: _write(top / "report.html", _report(runtime, graph)))
    _try(written, "pins.bundle", lambda: _bundle(runtime, graph, status, top / "pins.bundle"))
    return {"folder": folder, "files": written.files, "problems": written.problems[:_MAX_PROBLEMS]}


def _try(written: _Written, name: str, act: Callable[[], object]) -> None:
    try:
        if act() is not False:
            written.files += 1
    except (OSError, WorktreeError) as error:
        written.problems.append(clipped(f"{name}: {error}", 300))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, indent=1).encode() + b"\n"


def _write(path: Path, data: bytes) -> None:
    _write_all(path, [data])


def _write_all(path: Path, parts: "Iterator[bytes] | list[bytes]") -> None:
    """Whole or not at all. A link in the place of the file or its folder, which an agent may have put there, is never
    written through."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.is_symlink():
        raise OSError(f"{path.parent} is a link")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
            file.writelines(parts)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write_events(runtime: Runtime, graph: str, path: Path) -> None:
    _write_all(path, (json.dumps(event_json(event)).encode() + b"\n" for event in runtime.store.events(graph)))


def _report(runtime: Runtime, graph: str) -> bytes:
    return report_html.html(report_of(runtime, graph)).encode()


def _patch(runtime: Runtime, base: str, head: str, target: Path) -> None:
    _write(target, runtime.worktrees.patch(base, head))


def _copy(source: str, target: Path) -> None:
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        _write(target, file.read(MAX_LOG_BYTES))


def _logs(status: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Of every check that ran: whose it is, the name of its file, where its log is."""
    owners = [(each["id"], (each["evidence"] or {}).get("checks", ())) for each in status["subtasks"]]
    owners.append(("integration", (status["integration"] or {}).get("checks") or ()))
    for owner, checks in owners:
        for number, check in enumerate(checks, 1):
            if check["logPath"]:
                yield _safe(owner), f"{number:02}-{_safe(check['name'])}.log", check["logPath"]


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", name)[:100].lstrip(".") or "-"


def _bundle(runtime: Runtime, graph: str, status: Mapping[str, Any], path: Path) -> bool:
    """False when there is nothing beyond the base. git writes it whole or not at all."""
    return runtime.worktrees.bundle(graph, status["graph"]["baseCommit"], str(path))
