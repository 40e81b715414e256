"""graph-amend: take over a changed graph file as the next revision, under the driver that lives or under the lease.

The configuration is frozen anew with it. Git's settings and the worktree root stay those of graph-create: the worktrees
that are there were made with them and are judged by them.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

from coordinate_agents.graph.acts.amend import amend, require_agents, shown
from coordinate_agents.graph.amending import PROGRAM, plan_amendment
from coordinate_agents.graph.differences import config_differences
from coordinate_agents.graph.document import Document, parse_document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import CommitId, GraphId, TaskGraph, slug, to_json
from coordinate_agents.graph.operations.asking import by_driver_or_alone
from coordinate_agents.graph.operations.loading import load_snapshot
from coordinate_agents.graph.operations.recorded import config_of, recorded_text
from coordinate_agents.graph.operations.sources import read_source
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.slots import require_ports
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.store.rows import GraphRow
from coordinate_agents.worktrees.values import value_class

# The driver reads its configuration, and may be at a step of a worktree that others wait for.
_AMEND_WAIT_S = 15.0


@value_class
class Request:
    graph: str
    file: str
    base: str | None = None
    as_: str | None = None
    dry_run: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """`amend`: whether there is a new revision, and what it changes. The same file again changes nothing.

    Raises: TASK_GRAPH_INVALID; TASK_STATE_CONFLICT for what started; CONFIG_UNTRUSTED; INVALID_AGENT_CONFIG.
    """
    row, snapshot = load_snapshot(runtime.store, request.graph)
    document = _document(request.file, row, request.as_)
    base = _newer_base(runtime, row, request.base) if request.base is not None else None
    graph = _with_base(document.graph, snapshot, request.base)
    runtime.worktrees.check_names(row.id, [slug(task.id) for task in graph.tasks])
    record = json.loads(row.config)
    config = runtime.config
    text = recorded_text(config, frozen=record["git"], worktree_root=record["worktreeRoot"])
    configuration = config_differences(config_of(row.config), config_of(text))
    amendment = plan_amendment(snapshot, graph, base=base)
    require_agents(snapshot, amendment, config, runtime.agents)
    require_ports(config.ports, graph.max_concurrency)
    if request.dry_run:
        lines = (*amendment.lines, *configuration)
        told = {"amended": False, "revision": row.revision, **shown(amendment, lines)}
        return _result(runtime, row.id, {**told, "dryRun": True})
    asked = {
        "document": to_json(graph),
        "digest": hashlib.sha256(document.canonical.encode()).hexdigest(),
        "revision": row.revision,
        "config": text,
        "configuration": list(configuration),
        "base": base,
        "branch": runtime.worktrees.branch_of(request.base) if request.base is not None else None,
    }

    done = by_driver_or_alone(runtime, row.id, "amend", asked, amend, verb="graph-amend", wait_s=_AMEND_WAIT_S)
    return _result(runtime, row.id, {**done, "dryRun": False})


def _result(runtime: Runtime, graph: str, told: dict[str, Any]) -> Result:
    return Result({**status_of(runtime, graph), "amend": told})


def _document(file: str, row: GraphRow, as_id: str | None) -> Document:
    """The file's graph under the id of the recorded one, which it may leave out. Raises: TASK_GRAPH_INVALID."""
    if as_id is not None and as_id != row.id:
        raise GraphError(
            "INVALID_USAGE", f"--as {as_id} is not the graph that is amended, {row.id}.", kept="everything as it is"
        )
    source = read_source(file)
    document = parse_document(source.text, name=source.name, stem=row.id, read_spec_file=source.read_spec_file)
    if row.id not in (document.graph.id, as_id):
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"{source.name} is graph {document.graph.id}, not {row.id}; --as {row.id} takes it for that.",
            kept=f"graph {row.id} at revision {row.revision}",
            next=f"{PROGRAM} graph-amend {row.id} FILE --as {row.id} --dry-run",
            stage="amend",
            facts={"taskId": row.id},
        )
    return replace(document, graph=replace(document.graph, id=GraphId(row.id)))


def _with_base(graph: TaskGraph, snapshot: Snapshot, base: str | None) -> TaskGraph:
    """The base is moved by --base alone: a word in the file was resolved once, and would mean another commit today."""
    if base is not None:
        return graph
    if graph.base != snapshot.graph.base and graph.base != "HEAD":
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Graph {graph.id} cannot be amended so: base is {snapshot.graph.base!r} there and {graph.base!r} in the"
            " file; only --base moves it.",
            kept="the present revision, and everything as it is",
            next=f"{PROGRAM} graph-amend {graph.id} FILE --base {graph.base}",
            stage="amend",
            facts={"taskId": graph.id},
        )
    return replace(graph, base=snapshot.graph.base)


def _newer_base(runtime: Runtime, row: GraphRow, base: str) -> CommitId:
    """The commit that --base names. Raises: TASK_STATE_CONFLICT unless it contains the present base."""
    commit = CommitId(runtime.worktrees.resolve(base))
    if runtime.worktrees.contains(commit, [CommitId(row.base_commit)]):
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Graph {row.id} cannot move to base {commit[:12]}: it does not contain the present base"
            f" {row.base_commit[:12]}, on which verified work may stand.",
            kept="the present revision, and everything as it is",
            next=f"git merge-base {row.base_commit} {commit}",
            stage="amend",
            facts={"taskId": row.id},
        )
    return commit
