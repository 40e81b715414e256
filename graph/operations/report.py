"""graph-report: a page that one can mail. What happened, what set the end, what waited for what, and the evidence.

Reads only; what it says is of the log, so the same log gives the same page. Written whole or not at all.
"""

import os
from pathlib import Path
from typing import Any, Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations import diff
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.recorded import recorded_config
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.report_html import html
from coordinate_agents.graph.report_markdown import markdown
from coordinate_agents.graph.report_model import Change, Report
from coordinate_agents.graph.reporting import Known, report
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.timeline import INTEGRATION
from coordinate_agents.graph.view import status_data
from coordinate_agents.graph.ways_out import ways_of_integration, ways_of_subtask
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.values import value_class

_MARKDOWN: Final = (".md", ".markdown")


@value_class
class Request:
    graph: str | None = None
    output: str | None = None
    format: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`lines` of the text; with `output` instead `file` and `bytes`. Raises: INVALID_USAGE for a file that cannot be
    written, UNSUPPORTED_CAPABILITY without the extra for HTML.
    """
    row = pick_graph(runtime.store, request.graph)
    form = request.format or _form_of(request.output)
    found = report_of(runtime, row.id)
    text = html(found) if form == "html" else "\n".join(markdown(found)) + "\n"
    data: dict[str, Any] = {"graph": {"id": found.graph, "state": found.state}, "format": form, "seq": found.seq}
    if request.output is None or request.output == "-":
        return Result({**data, "lines": text.splitlines()})
    path = Path(os.path.abspath(request.output))  # noqa: PTH100  a link that the caller named is theirs to follow
    size = _write(path, text.encode())
    return Result({**data, "file": str(path), "bytes": size})


def report_of(runtime: Runtime, graph: str) -> Report:
    """Of the graph as it is recorded. Raises: TASK_NOT_FOUND."""
    driver = holder(runtime.state_dir, graph)
    row, snapshot = load_snapshot(runtime.store, graph)
    events = tuple(runtime.store.events(graph))
    now = events[-1].time if events else row.created_at
    status = status_data(row, snapshot, driver=driver, now=now)
    agents = [each.name for each in recorded_config(row)[0].agents]
    ways = {str(run.id): ways_of_subtask(snapshot, run, agents=agents) for run in snapshot.runs.values()}
    ways[INTEGRATION] = ways_of_integration(snapshot)
    return report(Known(status, snapshot.graph, events, _changes(runtime, snapshot), ways))


def _form_of(output: str | None) -> str:
    return "markdown" if output is not None and output.lower().endswith(_MARKDOWN) else "html"


def _changes(runtime: Runtime, snapshot: Snapshot) -> dict[str, Change]:
    """Of each subtask that has a commit that git still knows."""
    found = {}
    for run in snapshot.runs.values():
        try:
            change = diff.counts(runtime, run)
        except WorktreeError:
            continue
        if change is not None:
            found[str(run.id)] = Change(change["files"], change["insertions"], change["deletions"])
    return found


def _write(path: Path, data: bytes) -> int:
    """Beside its place first. A link that stands there is replaced, never followed."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
            file.write(data)
        draft.replace(path)
    except OSError as error:
        raise GraphError(
            "INVALID_USAGE",
            f"The report cannot be written to {path}: {error.strerror}.",
            kept="everything as it is",
            next="coordinate-agents graph-report --output FILE",
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return len(data)
