"""task-create: record one piece of work as a graph of one subtask. Starts nothing.

The same store, checks, evidence and verbs as for every graph; what a graph file can say beyond these options is said by
a file with one subtask and graph-create.
"""

import json
from typing import Any, Final, Literal

from coordinate_agents.graph.document import Document, parse_document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.create import create_document, spec_document
from coordinate_agents.graph.operations.session_write import given_text
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.task_shape import PROGRAM, task_data
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

SUBTASK: Final = "task"


@value_class
class Request:
    spec: str | None = None
    title: str | None = None
    as_: str | None = None
    agent: str | None = None
    base: str | None = None
    writes: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    isolation: Literal["worktree", "checkout"] = "worktree"
    worktree_root: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`created`: whether it was made now; the same content again changes nothing.

    Raises: INVALID_USAGE without spec and title; UNSUPPORTED_CAPABILITY for the checkout; as graph-create.
    """
    if request.isolation == "checkout":
        raise _no_checkout()
    document = _document(request)
    row, is_new = create_document(
        runtime, document, as_id=request.as_, root_option=request.worktree_root, file="GRAPH.yaml"
    )
    data = task_data(runtime, row.id)
    return Result({**data, "created": is_new, "advice": [f"Next: {data['task']['next']}"]})


def _document(request: Request) -> Document:
    spec = given_text(request.spec)
    if spec is None and not (request.title or "").strip():
        raise GraphError(
            "INVALID_USAGE",
            "Say what is to be done: a text (- reads standard input), or at least --title.",
            kept="everything as it is; nothing was created",
            next=f"{PROGRAM} task-create --help",
        )
    subtask: dict[str, Any] = {"id": SUBTASK}
    given = {"spec": spec, "title": request.title, "agent": request.agent}
    subtask |= {key: value for key, value in given.items() if value is not None}
    subtask |= {key: list(value) for key, value in (("writes", request.writes), ("checks", request.check)) if value}
    graph: dict[str, Any] = {"id": request.as_ or spec_document(spec or request.title or "").graph.id}
    graph |= {"title": request.title or _first_line(spec or "")}
    graph |= {"base": request.base} if request.base is not None else {}
    text = json.dumps({**graph, "subtasks": [subtask]})
    return parse_document(text.encode(), name="<task-create>", stem=None, read_spec_file=None)


def _first_line(spec: str) -> str:
    return next((line.strip() for line in spec.splitlines() if line.strip()), SUBTASK)[:200]


def _no_checkout() -> GraphError:
    """Why work in the user's own checkout is no Task; `docs/tasks.md` says more.

    What a Task promises rests on a place that only the Runtime and its one agent write to: the base is known, what is
    there is the agent's, a failed attempt is kept by pins and cleared, and the result stands on a branch of its own.
    In a checkout the user edits, commits, stashes and switches branches at the same time, and that it changed is what
    gives an agent away that left its place.
    """
    return GraphError(
        "UNSUPPORTED_CAPABILITY",
        "--isolation checkout is not supported: in your own checkout nobody can tell an agent's changes from yours, so"
        " nothing could be verified, taken back or kept apart. Leave it out for a Task in a worktree of its own, or"
        " open a terminal here, whose work you judge yourself.",
        kept="everything as it is; nothing was created",
        next=f"{PROGRAM} session-open",
        stage="create",
    )
