"""What differs between two revisions of a graph, as lines for people. Decides nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import zip_longest
from typing import Any, Final

from coordinate_agents.graph import durations
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.model import Check, Task, TaskGraph

# Lines of one answer: enough to see what happened, short enough for an error.
MAX_LINES: Final = 100

_WORDS: Final = {
    "depends_on": "dependsOn",
    "timeout_s": "timeout",
    "idle_timeout_s": "idleTimeout",
    "input_timeout_s": "inputTimeout",
    "on_idle": "onIdle",
    "fix_turns": "fixTurns",
    "max_concurrency": "maxConcurrency",
    "max_checks": "maxChecks",
    "scope_policy": "scopePolicy",
    "integration_checks": "integration.checks",
    "schema_version": "schemaVersion",
}


def differences(old: TaskGraph, new: TaskGraph) -> tuple[str, ...]:
    """One line for each thing that differs, the graph's own first, then subtasks by id. Empty: the graphs are equal.

    The order of subtasks in the file is no difference. At most MAX_LINES and one more that counts the rest.
    """
    lines = [*_changes("graph", old, new, skip=("tasks",)), *_task_changes(old, new)]
    if len(lines) > MAX_LINES:
        return (*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more differences")
    return tuple(lines)


def config_differences(old: Config, new: Config) -> tuple[str, ...]:
    """One line for each agent and each other part of the configuration that differs. Values are not shown."""
    before, after = ({agent.name: agent for agent in config.agents} for config in (old, new))
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            how = "added" if name not in before else "removed" if name not in after else "changed"
            lines.append(f"configuration: agent {name} {how}")
    for field in fields(old):
        if field.name not in ("agents", "found") and getattr(old, field.name) != getattr(new, field.name):
            lines.append(f"configuration: {field.name.replace('_', ' ')} changed")
    # What else is installed meanwhile is no change; which agent a subtask gets by it is.
    if old.only_agent() != new.only_agent() and not lines:
        lines.append("configuration: agent of subtasks that name none changed")
    return tuple(lines)


def _task_changes(old: TaskGraph, new: TaskGraph) -> Iterator[str]:
    before = {task.id: task for task in old.tasks}
    after = {task.id: task for task in new.tasks}
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"subtask {name}: removed"
        elif name not in before:
            yield f"subtask {name}: added"
        else:
            yield from _changes(f"subtask {name}", before[name], after[name])


def _changes(what: str, old: Task | TaskGraph, new: Task | TaskGraph, *, skip: Sequence[str] = ()) -> Iterator[str]:
    for field in fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if field.name not in skip and before != after:
            word = _WORDS.get(field.name, field.name)
            yield f"{what}: {word} {_change(field.name, before, after)}"


def _change(name: str, before: Any, after: Any) -> str:
    if name == "spec":
        return f"changed ({len(before)} → {len(after)} characters, line {_first_changed(before, after)} on)"
    if name.endswith("_s"):
        return f"{durations.spell(before)} → {durations.spell(after)}"
    return f"{_spell(before)} → {_spell(after)}"


def _first_changed(before: str, after: str) -> int:
    pairs = zip_longest(before.splitlines(), after.splitlines())
    return next((line for line, (a, b) in enumerate(pairs, start=1) if a != b), 1)


def _spell(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Check):
        return f"{value.name} ({' '.join(value.run)})"
    if isinstance(value, tuple):
        text = "[" + ", ".join(_spell(each) for each in value) + "]"
    elif hasattr(value, "items"):
        text = "{" + ", ".join(f"{key}: {each}" for key, each in sorted(value.items())) + "}"
    else:
        text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"
