"""graph-plan: what would start now, what waits and why, with which programs, and where subtasks may collide.

Takes a recorded graph or a file that was not created yet. Looks only: the state stays byte for byte as it is, and
agents' programs are found, never started.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from coordinate_agents.graph import dag, document, order, schedule, scope
from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.operations.index_size import checkout_bytes
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.recorded import recorded_config, worktree_root
from coordinate_agents.graph.operations.sources import read_source
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.order import topological
from coordinate_agents.graph.pictures import MAX_LABEL, Picture, dot, mermaid
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.slots import require_ports
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import visible
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.values import value_class

# Pairs of subtasks that are compared, and collisions that are listed: a plan is read by people.
MAX_PAIRS: Final = 500_000
MAX_CONFLICTS: Final = 200
_FILE_ENDINGS: Final = (".yaml", ".yml", ".json")


@value_class
class Request:
    """`graph`: an id, or a graph file."""

    graph: str | None = None
    format: Literal["text", "mermaid", "dot"] = "text"


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: TASK_NOT_FOUND; for a file TASK_GRAPH_INVALID and CONFIG_UNTRUSTED."""
    snapshot, config, root, is_recorded = _load(runtime, request.graph)
    agents = _Agents(runtime, config)
    depends_on = {task.id: task.depends_on for task in snapshot.graph.tasks}
    plan = _plan(snapshot, depends_on)
    started = [start.subtask for start in plan.start]
    deferred = {each.subtask: each for each in plan.deferred}
    decisions = [
        _decision(snapshot, task, started, deferred, agents)
        for task in sorted(snapshot.graph.tasks, key=lambda task: task.id)
    ]
    unusable = {each["id"] for each in decisions if each["decision"] == "error"}
    conflicts = list(_conflicts(snapshot, depends_on))
    data: dict[str, Any] = {
        "graph": {
            "id": snapshot.graph.id,
            "title": snapshot.graph.title,
            "recorded": is_recorded,
            "subtasks": len(depends_on),
            "maxConcurrency": snapshot.graph.max_concurrency,
        },
        "start": [subtask for subtask in started if subtask not in unusable],
        "decisions": decisions,
        "criticalPath": list(_critical_path(snapshot, depends_on)),
        "conflicts": conflicts[:MAX_CONFLICTS],
        "conflictCount": len(conflicts),
        "disk": _disk(runtime, snapshot, root),
    }
    if request.format != "text":
        lines = (dot if request.format == "dot" else mermaid)(_picture(snapshot, data))
        data |= {"format": request.format, "text": "\n".join(lines)}
    return Result(data)


def _picture(snapshot: Snapshot, data: Mapping[str, Any]) -> Picture:
    """The plan drawn: what becomes of each now, the longest chain heavier, pairs that never run together dotted."""
    decided = {each["id"]: each["decision"] for each in data["decisions"]}
    return Picture(
        snapshot.graph.id,
        {
            name: (name, visible(task.title, limit=MAX_LABEL), decided[name])
            for name, task in sorted(snapshot.tasks.items())
        },
        [(needed, name) for name, task in sorted(snapshot.tasks.items()) for needed in task.depends_on],
        data["criticalPath"],
        [(each["a"], each["b"]) for each in data["conflicts"]],
    )


def _load(runtime: Runtime, given: str | None) -> tuple[Snapshot, Config, str, bool]:
    """State, configuration and worktree root of the graph, and whether it is recorded."""
    if given is not None and runtime.store.graph(given) is None and _is_file(given):
        source = read_source(given)
        graph = document.parse(source.text, name=source.name, stem=source.stem, read_spec_file=source.read_spec_file)
        recorded = runtime.store.graph(graph.id)
        if recorded is None:
            require_ports(runtime.config.ports, graph.max_concurrency)
            return Snapshot(graph), runtime.config, str(worktree_root(runtime.config, None)), False
        given = graph.id
    row, snapshot = load_snapshot(runtime.store, pick_graph(runtime.store, given).id)
    config, _, root = recorded_config(row)
    return snapshot, config, root, True


def _is_file(given: str) -> bool:
    return given == "-" or given.endswith(_FILE_ENDINGS) or "/" in given or Path(given).is_file()


def _plan(snapshot: Snapshot, depends_on: Mapping[SubtaskId, tuple[SubtaskId, ...]]) -> schedule.Plan:
    queue = schedule.ReadyQueue(snapshot.tasks, order.longest_remaining(depends_on))
    for subtask in snapshot.frontier.ready():
        queue.add(subtask)
    running = [
        schedule.Running(
            subtask, snapshot.tasks[subtask].writes, snapshot.tasks[subtask].needs, snapshot.runs[subtask].agent
        )
        for subtask in sorted(snapshot.frontier.members("running"))
    ]
    limits = schedule.Limits(snapshot.graph.max_concurrency, snapshot.graph.resources)
    return schedule.plan(queue, running, snapshot.tasks, limits, explain="all")


class _Agents:
    """What each agent name resolves to; every name is looked up once."""

    def __init__(self, runtime: Runtime, config: Config) -> None:
        self._runtime = runtime
        self._config = config
        self._found: dict[str, ResolvedAgent | GraphError | SessionError] = {}

    def look(self, task: Task) -> tuple[str | None, ResolvedAgent | GraphError | SessionError]:
        """The agent's name and what would be started, or why nothing could be."""
        try:
            name = agent_for(self._config, task.agent, subtask=task.id)
        except GraphError as error:
            return task.agent, error
        if name not in self._found:
            self._found[name] = self._resolve(name)
        return name, self._found[name]

    def _resolve(self, name: str) -> ResolvedAgent | GraphError | SessionError:
        try:
            return self._runtime.agents.resolve(self._config.settings_of(name))
        except (GraphError, SessionError) as error:
            return error


def _decision(
    snapshot: Snapshot,
    task: Task,
    started: list[SubtaskId],
    deferred: Mapping[SubtaskId, schedule.Deferred],
    agents: _Agents,
) -> dict[str, Any]:
    name, found = agents.look(task)
    decision, reason = _place(snapshot, task, started, deferred)
    resolved = found if isinstance(found, ResolvedAgent) else None
    if resolved is None and decision in ("start", "wait"):
        decision, reason = "error", f"{found.code}: {found}"  # type: ignore[union-attr]
    return {
        "id": task.id,
        "decision": decision,
        "reason": reason,
        "agent": name,
        "command": resolved.executable.path if resolved else None,
        "commandSource": resolved.executable.source if resolved else None,
        "next": None if resolved or decision != "error" else found.next,  # type: ignore[union-attr]
    }


def _place(
    snapshot: Snapshot,
    task: Task,
    started: list[SubtaskId],
    deferred: Mapping[SubtaskId, schedule.Deferred],
) -> tuple[str, str | None]:
    """The decision about one subtask and its reason."""
    if task.id in started:
        return "start", None
    place = snapshot.frontier.place(task.id)
    match place:
        case "ready":
            each = deferred.get(task.id)
            return "wait", f"{each.reason}: {each.detail}" if each else "no slot is free"
        case "waiting":
            missing = [other for other in task.depends_on if snapshot.frontier.state(other) != "succeeded"]
            return "wait", f"needs {', '.join(missing[:5])}{f' and {len(missing) - 5} more' if missing[5:] else ''}"
        case "blocked":
            conflict = snapshot.runs[task.id].conflict
            if conflict is not None:
                pair, paths = " and ".join(conflict.pair), ", ".join(conflict.paths[:5])
                return "blocked", f"BASE_CONFLICT: {pair} do not merge in {paths}"
            return "blocked", f"blocked by {', '.join(snapshot.frontier.blockers(task.id)[:5])}"
        case "running":
            return "running", snapshot.runs[task.id].phase
        case _:
            return place, snapshot.runs[task.id].reason


def _unfinished(
    snapshot: Snapshot, depends_on: Mapping[SubtaskId, tuple[SubtaskId, ...]]
) -> dict[SubtaskId, tuple[SubtaskId, ...]]:
    left = {each for each in depends_on if snapshot.frontier.state(each) != "succeeded"}
    return {each: tuple(other for other in depends_on[each] if other in left) for each in depends_on if each in left}


def _critical_path(snapshot: Snapshot, depends_on: Mapping[SubtaskId, tuple[SubtaskId, ...]]) -> tuple[SubtaskId, ...]:
    """The longest chain of what is not finished."""
    left = _unfinished(snapshot, depends_on)
    tasks = tuple(replace(snapshot.tasks[each], depends_on=needed) for each, needed in left.items())
    return dag.critical_path(replace(snapshot.graph, tasks=tasks))


def _conflicts(snapshot: Snapshot, depends_on: Mapping[SubtaskId, tuple[SubtaskId, ...]]) -> Iterator[dict[str, Any]]:
    """Pairs whose declared patterns may meet and of which neither needs the other, so that both could run at once."""
    left = _unfinished(snapshot, depends_on)
    order = topological(left)
    position = {subtask: index for index, subtask in enumerate(order)}
    above: dict[SubtaskId, int] = {}  # every ancestor as one bit
    for subtask in order:
        bits = 0
        for other in left[subtask]:
            bits |= above[other] | 1 << position[other]
        above[subtask] = bits
    declared = [subtask for subtask in order if snapshot.tasks[subtask].writes]
    compared = 0
    for index, second in enumerate(declared):
        for first in declared[:index]:
            if above[second] >> position[first] & 1:
                continue
            compared += 1
            if compared > MAX_PAIRS:
                return
            patterns = scope.conflict(snapshot.tasks[first].writes, snapshot.tasks[second].writes)
            if patterns is not None:
                yield {"a": first, "b": second, "patterns": list(patterns)}


def _disk(runtime: Runtime, snapshot: Snapshot, root: str) -> dict[str, Any]:
    """Bytes that the missing worktrees would take, against what is free where they would lie."""
    each = checkout_bytes(runtime.root)
    missing = sum(
        1 for run in snapshot.runs.values() if run.worktree is None and snapshot.frontier.state(run.id) != "succeeded"
    )
    there = Path(root)
    while not there.exists() and there != there.parent:
        there = there.parent
    return {
        "worktreeRoot": root,
        "perWorktreeBytes": each,
        "newWorktrees": missing,
        "neededBytes": None if each is None else each * missing,
        "freeBytes": shutil.disk_usage(there).free,
    }
