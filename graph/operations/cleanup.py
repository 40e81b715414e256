"""graph-cleanup: remove the worktrees of ended subtasks, decided from git at that moment; what holds something stays.

By the driver if there is one, else under the lease. One item for each worktree; one that stays is no error of the
others, but of the exit code.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio

from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED, GraphError
from coordinate_agents.graph.operations.asking import by_driver_or_lease
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.loading import pick_graph, pick_subtask, require_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.removal_requests import serve_cleanup
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.model import INTEGRATION_SLUG
from coordinate_agents.worktrees.values import value_class

# Rework after a review would need a new worktree.
_BEFORE_APPROVAL: Final = frozenset({"INTEGRATED", "REVIEWING", "CHANGES_REQUESTED"})
# Teardown, closing and deleting many files; a driver that needs longer has recorded the request.
_WAIT_S: Final = 120.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    dry_run: bool = False
    branches: bool = False
    all: bool = False
    early: bool = False
    discard: str | None = None
    confirm: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Exit code 1 when something asked for stayed. Raises: TASK_STATE_CONFLICT before the review of an integration."""
    if request.confirm is not None and request.discard is None:
        raise GraphError("INVALID_USAGE", "--confirm belongs to --discard SUBTASK.")
    graph, subtask = _names(runtime, request)
    state = status_of(runtime, graph)["graph"]["state"]
    if state in _BEFORE_APPROVAL and not (request.early or request.dry_run or request.discard):
        raise _too_early(graph, state, request)
    asked = {
        "subtask": subtask,
        "branches": request.branches,
        "all": request.all or subtask == INTEGRATION_SLUG,
        "discard": request.discard,
        "confirm": request.confirm,
    }
    if request.dry_run:
        items = anyio.run(_look, runtime, graph, asked)
    else:
        try:
            items = by_driver_or_lease(runtime, graph, "cleanup", asked, serve_cleanup, wait_s=_WAIT_S)
        finally:
            runtime.progress.notice("")
    items["items"] = [_leave_first(runtime, item) for item in items["items"]]
    data = {"graph": graph, "dryRun": request.dry_run, **items}
    has_refused = any(item["outcome"] == "refused" for item in data["items"])
    return Result(data, EXIT_REFUSED if has_refused and not request.dry_run else EXIT_DONE)


def _leave_first(runtime: Runtime, item: dict[str, Any]) -> dict[str, Any]:
    """The item; where the caller's own shell stands in the worktree it has to leave, not to be killed."""
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone already
        return item
    if item["reason"] != "in-use" or not here.is_relative_to(item["worktree"]):
        return item
    away = "" if runtime.root.is_relative_to(item["worktree"]) else f" {shlex.quote(str(runtime.root))}"
    return {**item, "next": f"cd{away}"}


async def _look(runtime: Runtime, graph: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    context = open_context(runtime, graph, runtime.store.generation(graph), needs="records")
    return await serve_cleanup(context, {**asked, "dry": True})


def _names(runtime: Runtime, request: Request) -> tuple[str, str | None]:
    """The graph and the one subtask that is meant; the integration has its reserved name."""
    names = (request.subtask, request.discard)
    if INTEGRATION_SLUG in names:
        return pick_graph(runtime.store, request.graph).id, request.subtask
    row, subtask = pick_subtask(runtime.store, request.graph, request.subtask)
    if request.discard is not None:
        require_subtask(row, request.discard)
        if subtask not in (None, request.discard):
            raise GraphError("INVALID_USAGE", f"--discard {request.discard} is about another subtask than {subtask}.")
    return row.id, subtask


def _too_early(graph: str, state: str, request: Request) -> GraphError:
    words = [graph, *([request.subtask] if request.subtask else [])]
    options = [f"--{name}" for name in ("branches", "all") if getattr(request, name)]
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Graph {graph} is {state} and was not approved yet: rework would need its worktrees again.",
        kept="every worktree",
        next=f"coordinate-agents graph-cleanup {' '.join([*words, '--early', *options])}",
        stage="cleanup",
        facts={"taskId": graph},
    )
