"""What a new revision of a graph may change, decided from the record alone: an Amendment, or why not. Pure.

Rule: what never started is only text, so it may change or go. The problem this causes: a base, a prompt and a verdict
were made from the text of what did start. Next rule: of that only limits change (how long, how often, how urgently);
a person first takes it back with a redo from a fresh base, and then it counts as not started.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final

from coordinate_agents.graph.differences import differences
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import CommitId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.runs import TaskRun
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import counted, listed
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
# Of a subtask that started: nothing that it was made from or is judged by.
LIMITS: Final = frozenset(
    {"priority", "timeout_s", "idle_timeout_s", "input_timeout_s", "on_idle", "attempts", "fix_turns"}
)
# Of the graph, while something of it started. The base is moved by its own word.
_GRAPH_LIMITS: Final = frozenset({"title", "max_concurrency", "max_checks", "resources"})
_OWN_WORDS: Final = frozenset({"id", "tasks", "base", "integration_checks", "schema_version"})
# States of the integration whose outcome the present checks decide, or decided.
_CHECKED: Final = frozenset({"merging", "checking", "integrated"})


@value_class
class Amendment:
    """The new revision. `base` None: as before. `changed` has those whose limits changed, too; all in id order."""

    graph: TaskGraph
    base: CommitId | None = None
    added: tuple[SubtaskId, ...] = ()
    changed: tuple[SubtaskId, ...] = ()
    dropped: tuple[SubtaskId, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.lines


def plan_amendment(snapshot: Snapshot, graph: TaskGraph, *, base: CommitId | None = None) -> Amendment:
    """The amendment that makes `graph` of the present revision. `graph` is valid and has the present one's id.

    Raises: TASK_STATE_CONFLICT, which names every subtask that started and would change; then nothing is to be done.
    """
    base = None if base == snapshot.summary.base else base
    before, after = snapshot.tasks, {task.id: task for task in graph.tasks}
    changed = tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name]))
    lines = differences(replace(snapshot.graph, base=graph.base), graph)
    if base is not None:
        lines = (f"graph: base commit {(snapshot.summary.base or '')[:12]} → {base[:12]}", *lines)
    amendment = Amendment(
        graph,
        base,
        added=tuple(sorted(after.keys() - before.keys())),
        changed=changed,
        dropped=tuple(sorted(before.keys() - after.keys())),
        lines=lines,
    )
    _require_possible(snapshot, amendment)
    return amendment


def is_settled(run: TaskRun) -> bool:
    """Whether something of the subtask was made that its text has to keep fitting."""
    if run.state != "idle" or run.is_rework or run.conflict_state:
        return True
    # As the next attempt will look at it: what is there keeps its base, unless a person asked for a fresh one.
    return run.base is not None and not run.is_fresh and (run.worktree or run.removal) is not None


def has_remains(run: TaskRun) -> bool:
    """Whether something of it stands in the record or on disk that nobody would look after without the subtask."""
    places = (run.worktree, run.removal, run.conflict_worktree)
    return is_settled(run) or run.base is not None or any(place is not None for place in places)


def _require_possible(snapshot: Snapshot, amendment: Amendment) -> None:
    refused = [*_refused_subtasks(snapshot, amendment)]
    if refused:
        raise _started(snapshot, amendment, refused)
    graph, started = amendment.graph, [run.id for run in snapshot.runs.values() if is_settled(run)]
    words = [
        word
        for word in _changed_fields(snapshot.graph, graph)
        if word not in _GRAPH_LIMITS and word not in _OWN_WORDS and started
    ]
    if words:
        raise _refusal(
            snapshot,
            amendment,
            f"the graph's {' and '.join(_spelled(words))} cannot change any more: {listed(sorted(started), first=8)}"
            " started with it; give new subtasks their own",
            following=f"{PROGRAM} graph-inspect {graph.id}",
        )
    state = snapshot.summary.integration.state
    if graph.integration_checks != snapshot.graph.integration_checks and state in _CHECKED:
        raise _refusal(
            snapshot,
            amendment,
            f"the checks of the integration cannot change: it is {state} by them",
            following=f"{PROGRAM} graph-status {graph.id}",
        )
    if amendment.base is not None:
        _require_movable_base(snapshot, amendment)


def _require_movable_base(snapshot: Snapshot, amendment: Amendment) -> None:
    graph = amendment.graph.id
    if snapshot.summary.integration.state != "none":
        raise _refusal(
            snapshot,
            amendment,
            "the base cannot move any more: an integration began with it; another one can be built on a newer commit",
            following=f"{PROGRAM} graph-integrate {graph} --onto {amendment.base}",
        )
    merging = sorted(run.id for run in snapshot.runs.values() if run.conflict_state)
    if merging:
        raise _refusal(
            snapshot,
            amendment,
            f"the base cannot move while a person merges that of {listed(merging)}",
            following=f"{PROGRAM} graph-resolve {graph} {merging[0]} --abort",
        )


def _refused_subtasks(snapshot: Snapshot, amendment: Amendment) -> Iterator[tuple[TaskRun, str]]:
    """Those that started and may not change so, each with what would change."""
    after = {task.id: task for task in amendment.graph.tasks}
    for name in amendment.dropped:
        if has_remains(snapshot.runs[name]):
            yield snapshot.runs[name], "dropped"
    for name in amendment.changed:
        words = [word for word in _changed_fields(snapshot.tasks[name], after[name]) if word not in LIMITS]
        if words and is_settled(snapshot.runs[name]):
            yield snapshot.runs[name], " and ".join(_spelled(words))


def _changed_fields(before: Task | TaskGraph, after: Task | TaskGraph) -> list[str]:
    return [each.name for each in fields(before) if getattr(before, each.name) != getattr(after, each.name)]


def _spelled(names: list[str]) -> list[str]:
    """The names as the graph file writes them."""
    return [first + "".join(rest.title() for rest in more) for first, *more in (name.split("_") for name in names)]


def _started(snapshot: Snapshot, amendment: Amendment, refused: list[tuple[TaskRun, str]]) -> GraphError:
    graph = amendment.graph.id
    named = listed([f"{run.id} ({what})" for run, what in refused], first=8)
    run, what = refused[0]
    is_running = run.state == "running"
    can_redo = not all(what == "dropped" for _, what in refused)
    hint = "; use graph-resume --redo --from base on each, then amend, then graph-run" if can_redo else ""
    if what == "dropped":
        following = f"{PROGRAM} graph-inspect {graph} {run.id}"
    elif run.conflict_state:
        following = f"{PROGRAM} graph-resolve {graph} {run.id} --abort"
    elif is_running:
        following = f"{PROGRAM} graph-stop {graph} {run.id}"
    else:
        following = f"{PROGRAM} graph-resume {graph} {run.id} --redo --from base"
    count = counted(len(refused), "subtask")
    return _refusal(
        snapshot,
        amendment,
        f"{count} that started would change or go: {named}{hint}",
        following=following,
        started=[run.id for run, _ in refused],
    )


def _refusal(snapshot: Snapshot, amendment: Amendment, why: str, *, following: str, started: Any = ()) -> GraphError:
    graph = amendment.graph.id
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Graph {graph} cannot be amended so: {why}.",
        kept="the present revision, and everything as it is",
        next=following,
        stage="amend",
        facts={"taskId": graph, "started": list(started), "differences": list(amendment.lines)},
    )
