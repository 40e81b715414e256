"""The graph document as values: TaskGraph, Task, Check and the id types.

Made by `document.parse` from YAML and by `from_json` from a stored row; nothing here validates text or reads files.
A TaskGraph never changes after it was created: an amendment is a new revision with a new value.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Final, Literal, NewType

from coordinate_agents.graph.names import GRAPH_ID_PATTERN as GRAPH_ID_PATTERN
from coordinate_agents.worktrees.values import value_class

GraphId = NewType("GraphId", str)
SubtaskId = NewType("SubtaskId", str)
# A full lower-case hash. Plain text, as `worktrees` gives it: only git makes them.
CommitId = str

Expect = Literal["commit", "nothing", "either"]
CommitBy = Literal["agent", "runtime", "auto"]
ScopePolicy = Literal["observe", "warn", "strict"]
CheckIn = Literal["worktree", "pristine"]

# A subtask id is one or more components joined by "/"; every component must be safe as a ref component and as a
# directory name on Linux, macOS and Windows. `slug` joins the components with "+", which no id contains, so that
# one id is always one ref component and one directory, and two ids never share them.
SUBTASK_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
MAX_SUBTASK_ID_LENGTH: Final = 64
RESERVED_SUBTASK_IDS: Final = frozenset({"integration"})

DEFAULT_MAX_CONCURRENCY: Final = 4
DEFAULT_TIMEOUT_S: Final = 45 * 60.0
DEFAULT_IDLE_TIMEOUT_S: Final = 10 * 60.0
DEFAULT_INPUT_TIMEOUT_S: Final = 12 * 3600.0
DEFAULT_CHECK_TIMEOUT_S: Final = 10 * 60.0


def slug(subtask: SubtaskId) -> str:
    """The one ref component and directory name of a subtask. Injective on valid ids."""
    return subtask.replace("/", "+")


@value_class
class Check:
    """A command that the Runtime runs on a commit. `protect` holds patterns restored from the base first."""

    name: str
    run: tuple[str, ...]
    timeout_s: float = DEFAULT_CHECK_TIMEOUT_S
    check_in: CheckIn = "worktree"
    protect: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@value_class
class Task:
    """One node of the document, defaults applied.

    `agent` None: the configuration decides. `writes` None: unknown (conflicts with nothing, judged against nothing);
    empty: writes nothing. `commit` None: the adapter decides. `checks` excludes the graph's own checks.
    """

    id: SubtaskId
    title: str
    spec: str = ""
    agent: str | None = None
    depends_on: tuple[SubtaskId, ...] = ()
    writes: tuple[str, ...] | None = None
    checks: tuple[Check, ...] = ()
    needs: tuple[str, ...] = ()
    priority: int = 0
    timeout_s: float = DEFAULT_TIMEOUT_S
    idle_timeout_s: float = DEFAULT_IDLE_TIMEOUT_S
    input_timeout_s: float = DEFAULT_INPUT_TIMEOUT_S
    on_idle: Literal["mark", "stop"] = "mark"
    attempts: int = 1
    fix_turns: int = 1
    commit: CommitBy | None = None
    expect: Expect = "commit"


@value_class
class TaskGraph:
    """The whole document. `tasks` keeps the file's order; ids are unique; the edges form no cycle.

    `base` is text as written (commit-ish); it is resolved once, at graph-create. `resources` maps a token name to its
    count. `checks` run for every subtask and on the integration, `integration_checks` only there.
    """

    id: GraphId
    title: str
    tasks: tuple[Task, ...]
    base: str = "HEAD"
    spec: str = ""
    max_concurrency: int = DEFAULT_MAX_CONCURRENCY
    max_checks: int | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    scope_policy: ScopePolicy = "warn"
    checks: tuple[Check, ...] = ()
    integration_checks: tuple[Check, ...] = ()
    schema_version: int = 1

    def task(self, subtask: SubtaskId) -> Task:
        """The task with this id. Raises: KeyError. Linear; build a dict for more than one look-up."""
        for task in self.tasks:
            if task.id == subtask:
                return task
        raise KeyError(subtask)

    @property
    def edge_count(self) -> int:
        return sum(len(task.depends_on) for task in self.tasks)


def to_json(graph: TaskGraph) -> str:
    """Canonical JSON (sorted keys, no spaces): equal graphs give equal text, so it is also what is hashed."""
    return json.dumps(asdict(graph), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> TaskGraph:
    """The graph that `to_json` wrote."""
    raw = json.loads(text)
    raw["tasks"] = tuple(_task(item) for item in raw["tasks"])
    raw["checks"] = _checks(raw["checks"])
    raw["integration_checks"] = _checks(raw["integration_checks"])
    return TaskGraph(**raw)


def _task(raw: dict[str, Any]) -> Task:
    raw["checks"] = _checks(raw["checks"])
    for name in ("depends_on", "needs"):
        raw[name] = tuple(raw[name])
    if raw["writes"] is not None:
        raw["writes"] = tuple(raw["writes"])
    return Task(**raw)


def _checks(raw: list[dict[str, Any]]) -> tuple[Check, ...]:
    return tuple(
        Check(**{**item, "run": tuple(item["run"]), "protect": tuple(item["protect"]), "needs": tuple(item["needs"])})
        for item in raw
    )
