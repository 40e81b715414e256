"""graph-create: validate a graph file, resolve its base, freeze the configuration, record the graph."""

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.differences import differences
from coordinate_agents.graph.document import Document, parse_document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import GraphCreated, event_type, to_data
from coordinate_agents.graph.model import GRAPH_ID_PATTERN, CommitId, GraphId, from_json, slug, to_json
from coordinate_agents.graph.operations.loading import is_forgotten
from coordinate_agents.graph.operations.recorded import recorded_text, worktree_root
from coordinate_agents.graph.operations.spec_files import spec_file_reader
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.slots import require_ports
from coordinate_agents.graph.snapshot import GraphSummary, TaskRun, run_to_row, summary_to_row
from coordinate_agents.graph.speaking import require_driver
from coordinate_agents.graph.store.rows import GraphRow, NewDocument, NewEvent, RunRow
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.model import PIN_PREFIX
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    file: str
    as_: str | None = None
    worktree_root: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    row, is_new = create(runtime, request)
    data: dict[str, Any] = {
        "graph": {"id": row.id, "title": row.title, "revision": row.revision, "baseCommit": row.base_commit},
        "created": is_new,
    }
    return Result(data)


def create(runtime: Runtime, request: Request) -> tuple[GraphRow, bool]:
    """The graph's row, and whether it was made now. The same content under the same id changes nothing.

    Raises: TASK_GRAPH_INVALID; TASK_STATE_CONFLICT with the differences when the id has other content.
    """
    return create_document(
        runtime,
        read_document(request.file, as_id=request.as_),
        as_id=request.as_,
        root_option=request.worktree_root,
        file=request.file,
    )


def read_document(file: str, *, as_id: str | None = None) -> Document:
    """The parsed graph file; ``-`` is standard input. `as_id` replaces a missing id. Raises: TASK_GRAPH_INVALID."""
    if file == "-":
        return parse_document(sys.stdin.buffer.read(), name="<stdin>", stem=as_id, read_spec_file=None)
    path = Path(file)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise GraphError(
            "TASK_GRAPH_INVALID", f"cannot read graph file {file}: {error.strerror}.", kept="nothing was created"
        ) from error
    return parse_document(text, name=file, stem=as_id or path.stem, read_spec_file=spec_file_reader(path.parent))


def spec_document(spec: str, *, checks: Sequence[str] = (), agent: str | None = None) -> Document:
    """A graph of one subtask with this text; its id is made from what is given, so that the same again resumes.

    Raises: TASK_GRAPH_INVALID.
    """
    words = re.findall(r"[A-Za-z0-9]+", spec)[:4]
    name = "-".join(["task", *words]).lower()[:40]
    more: dict[str, Any] = {"checks": list(checks)} if checks else {}
    more |= {"agent": agent} if agent is not None else {}
    given = f"{spec}\0{json.dumps(more, sort_keys=True)}" if more else spec
    digest = hashlib.sha256(given.encode()).hexdigest()[:6]
    title = next((line.strip() for line in spec.splitlines() if line.strip()), name)[:200]
    text = json.dumps({"id": f"{name}-{digest}", "title": title, "subtasks": [{"id": "task", "spec": spec, **more}]})
    return parse_document(text.encode(), name="--spec", stem=None, read_spec_file=None)


def create_document(
    runtime: Runtime,
    document: Document,
    *,
    as_id: str | None = None,
    root_option: str | None = None,
    file: str = "FILE",
) -> tuple[GraphRow, bool]:
    """As `create`, for a document that was parsed; `file` is how a person would name it."""
    graph = document.graph if as_id is None else replace(document.graph, id=_graph_id(as_id))
    digest = hashlib.sha256(document.canonical.encode()).hexdigest()
    existing = runtime.store.graph(graph.id)
    if existing is not None and is_forgotten(existing):
        raise _forgotten(graph.id, file)
    if existing is not None:
        if existing.content_digest == digest:
            return existing, False
        raise _other_content(existing, graph_differences=differences(from_json(existing.document), graph))
    config = runtime.config
    for name in sorted({agent_for(config, task.agent, subtask=task.id) for task in graph.tasks}):
        require_driver(runtime.agents, config, name)
    require_ports(config.ports, graph.max_concurrency)
    worktrees = runtime.worktrees
    base = CommitId(worktrees.resolve(graph.base))
    _require_no_earlier_work(worktrees.runtime_refs(graph.id), graph.id, file)
    worktrees.check_names(graph.id, [slug(task.id) for task in graph.tasks])
    frozen = worktrees.freeze()
    root = str(worktree_root(config, root_option))
    stored = NewDocument(
        title=graph.title,
        base_commit=base,
        document=to_json(graph),
        content_digest=digest,
        config=recorded_text(config, frozen=frozen, worktree_root=root),
    )
    event = GraphCreated(base, len(graph.tasks), worktrees.branch_of(graph.base) or "")
    row = runtime.store.create_graph(
        graph.id,
        stored,
        first_event=NewEvent(event_type(event), to_data(event), durable=True),
        runs=[RunRow(task.id, run_to_row(TaskRun(task.id))) for task in graph.tasks],
        summary=summary_to_row(GraphSummary(base=base, base_branch=event.branch)),
        now=runtime.clock.now(),
    )
    return row, True


def _forgotten(graph: GraphId, file: str) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Graph {graph} was forgotten: nothing of it runs or changes any more.",
        kept="its event log and certificates",
        next=_as_another(graph, file),
        stage="create",
        facts={"taskId": graph},
    )


def _as_another(graph: GraphId, file: str) -> str:
    return f"coordinate-agents graph-create {shlex.quote(file)} --as {graph}-2"


def _require_no_earlier_work(refs: Mapping[str, CommitId], graph: GraphId, file: str) -> None:
    """Raise WORKTREE_CONFLICT when refs of a graph of this id are there that no record knows, such as after the state
    folder was deleted: nobody knows any more which of its worktrees hold unsaved work.
    """
    if not any(name.startswith(f"{PIN_PREFIX}/") for name in refs):
        return
    branches = [name.removeprefix("refs/heads/") for name in sorted(refs) if name.startswith("refs/heads/")]
    there = f": {listed(branches, first=5)}" if branches else ""
    raise GraphError(
        "WORKTREE_CONFLICT",
        f"Work of an earlier graph {graph} is here, and its record is gone{there}.",
        kept="its branches, its worktrees and every commit",
        next=_as_another(graph, file),
        stage="create",
        facts={"taskId": graph},
    )


def _graph_id(text: str) -> GraphId:
    if not GRAPH_ID_PATTERN.fullmatch(text):
        raise GraphError(
            "TASK_GRAPH_INVALID", f"graph id {text!r}: a letter, then letters, digits, _ or - (128 at most)."
        )
    return GraphId(text)


def _other_content(row: GraphRow, *, graph_differences: tuple[str, ...]) -> GraphError:
    listed = "; ".join(graph_differences[:10]) or "only keys without effect differ"
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"graph {row.id} was created from other content: {listed};"
        " graph-amend takes it over, another id (graph-create --as) makes it another graph.",
        kept=f"graph {row.id} as it was created, with all verified work",
        next=f"coordinate-agents graph-run {row.id}",
        stage="create",
        facts={"taskId": row.id, "differences": list(graph_differences[:100])},
    )
