"""What every effect of one drive is given: the graph's state, the ports, and how to record an event.

Made once per drive by `operations`; owned by the engine, whose `apply` is `record`.
"""

import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.bell import Bell
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.events import Event
from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph, slug
from coordinate_agents.graph.ports import Agents, Clock, Progress, Sessions, Turns, Worktrees
from coordinate_agents.graph.slots import Slots
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.store.blobs import Blobs
from coordinate_agents.graph.store.store import Store
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.worktrees.model import branch_name

T = TypeVar("T")

# Git calls at a time: they are short and mostly wait for the disk; more only fight for the repository's lock.
MAX_GIT_CALLS: Final = 8


# A Session's folder name is at most 200 characters; checks append theirs.
MAX_NAME: Final = 100


def checks_at_a_time(graph: TaskGraph) -> int:
    return graph.max_checks or max(1, (os.cpu_count() or 1) // 4)


class Leaving(Exception):
    """The driver leaves: the effect ends without an outcome, and its recorded intent is found by the next driver."""


@dataclass(slots=True)
class Context:
    """`record` appends an event under the lease's generation and starts what follows from it."""

    graph_id: GraphId
    generation: int
    snapshot: Snapshot
    config: Config
    frozen: str
    worktree_root: str
    state_dir: Path
    store: Store
    blobs: Blobs
    worktrees: Worktrees
    sessions: Sessions
    agents: Agents
    clock: Clock
    progress: Progress
    slots: Slots
    record: Callable[[Event], None] = lambda event: None
    tokens: Callable[[str, Sequence[str], SubtaskId | None], AbstractAsyncContextManager[None]] = (
        lambda key, needs, subtask: nullcontext()
    )
    next_change: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    # Wakes those who wait for the next change.
    notify: Callable[[], None] = lambda: None
    is_leaving: Callable[[], bool] = lambda: False
    on_input: Literal["wait", "fail"] = "wait"
    hold_starts: Callable[[], str] = lambda: ""
    # Told of every event once it is stored; quick, and never raises.
    told: Callable[[Event], None] = lambda event: None
    checks: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    teardown: anyio.Lock = field(default_factory=anyio.Lock)
    git: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MAX_GIT_CALLS))
    # The configuration that a recorded text holds, with what this drive needs of it. Raises: INVALID_AGENT_CONFIG.
    read_config: Callable[[str], Config] | None = None
    kept_tips_blob: str | None = None
    resolved: dict[str, ResolvedAgent] = field(default_factory=dict)
    # Subtasks in whose terminal somebody types (`holding`).
    holds: set[SubtaskId] = field(default_factory=set)
    # Of the graph's document. Rings when there is a new one.
    revision: int = 1
    amended: Bell = field(default_factory=Bell)
    # Rings when somebody outside asks to be looked at, such as after a submission.
    nudged: Bell = field(default_factory=Bell)
    # Set by `with_turns`.
    opened_turns: Turns | None = None

    @property
    def turns(self) -> Turns:
        """The turns of the graph's Sessions."""
        assert self.opened_turns is not None, "used outside with_turns"
        return self.opened_turns

    @asynccontextmanager
    async def with_turns(self) -> AsyncIterator[None]:
        """Coordinate the turns of Sessions inside the block; leaving it ends no agent, and holds no ports any more."""
        try:
            async with self.sessions.turns() as self.opened_turns:
                yield
        finally:
            self.slots.close()

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a blocking function in a worker thread. Waits for it even when cancelled: git calls are bounded."""
        return await anyio.to_thread.run_sync(lambda: function(*args, **kwargs), limiter=self.git)

    async def until_released(self, subtask: SubtaskId) -> None:
        """Wait until nobody holds the subtask: no terminal (`holding`), and no person by a recorded hold.

        Then until it has a slot again: it gave its own to others. Raises: Leaving.
        """
        while subtask in self.holds or self.run(subtask).is_held or self.run(subtask).phase == "held":
            if self.is_leaving():
                raise Leaving
            await self.next_change()

    def run(self, subtask: SubtaskId) -> TaskRun:
        return self.snapshot.runs[subtask]

    def task(self, subtask: SubtaskId) -> Task:
        return self.snapshot.tasks[subtask]

    def agent_of(self, task: Task) -> str:
        """The agent identity of a task; operations made sure before the drive that there is one."""
        return agent_for(self.config, self.run(task.id).chosen_agent or task.agent, subtask=task.id)

    def new_nonce(self) -> str:
        return secrets.token_hex(16)

    def session_id(self, run: TaskRun, turn: int) -> SessionId:
        """Deterministic, so that a driver that comes back finds the folder of the Session it had meant to start."""
        name = f"{self.graph_id}.{slug(run.id)}"
        if len(name) > MAX_NAME:
            name = f"{name[:MAX_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        suffix = f".t{turn}" if turn else ""
        return SessionId(f"{name}.a{run.attempt}{suffix}")

    def identity(self, run: TaskRun, *, path: str, base: str | None = None) -> Mapping[str, str]:
        """The COORDINATE_AGENTS_* variables of agents, setup and checks (contract section 12)."""
        ports = self.config.ports
        # The number that was recorded when it started, whoever drives it now; what does not run is lent one.
        known = self.snapshot.runs.get(run.id)
        slot = known.slot if known is not None and known.state == "running" else self.slots.lend(known or run)
        variables = {
            "COORDINATE_AGENTS_GRAPH": self.graph_id,
            "COORDINATE_AGENTS_SUBTASK": run.id,
            "COORDINATE_AGENTS_ATTEMPT": str(run.attempt),
            "COORDINATE_AGENTS_AGENT": run.agent or "",
            "COORDINATE_AGENTS_ROOT": self.worktrees.facts.root,
            "COORDINATE_AGENTS_WORKTREE": path,
            "COORDINATE_AGENTS_BRANCH": branch_name(self.graph_id, slug(run.id)),
            "COORDINATE_AGENTS_BASE": base or run.base or "",
            "COORDINATE_AGENTS_SLOT": str(slot),
        }
        task = self.snapshot.tasks.get(run.id)
        if task is not None and task.writes is not None:
            variables["COORDINATE_AGENTS_SCOPE"] = "\n".join(task.writes)
        if ports is not None:
            variables["COORDINATE_AGENTS_PORT_BASE"] = str(ports.first_of(slot))
        return variables
