"""session-open: an agent's terminal in the checkout or in a subtask's worktree; a healthy one that fits is used again.

Fits means: same root, agent, effective executable and driver, and the same subtask or none. Never another agent's
program in its place. At most one opener at a time decides, so two opens at once lead to one process. In a worktree
where another agent lives, or that a driver may use at any moment, nothing is opened.
"""

import os
import secrets
from dataclasses import replace
from typing import Any, Final

import anyio

from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED, GraphError
from coordinate_agents.graph.events import SessionOpened
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.opened import opened_prefix
from coordinate_agents.graph.operations.driving import open_context
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.recorded import recorded_config
from coordinate_agents.graph.operations.session_shape import session_json
from coordinate_agents.graph.operations.session_target import (
    PROGRAM,
    Subtask,
    Target,
    session_of,
    subtask_named,
)
from coordinate_agents.graph.operations.session_write import given_text
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.store import locks
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.sessions.agent import AgentSettings, ResolvedAgent, TurnRequest
from coordinate_agents.sessions.model import SessionFacts, SessionId
from coordinate_agents.sessions.turns.model import TurnSpec
from coordinate_agents.worktrees.values import value_class

_LOCK_NAME: Final = "open.lock"
# An opener starts one process; more than this and it is stopped or stuck.
_LOCK_BOUND_S: Final = 45.0
# A program that starts prints, or reads, within a moment; one that prints on and on is typed into all the same.
_QUIET_MS: Final = 1500
_QUIET_BOUND_S: Final = 15.0
# What else the agents' terminals need no limit for: a person is in front of them.
_NO_AGENT: Final = "session-open"


@value_class
class Request:
    subtask: str | None = None
    agent: str | None = None
    say: str | None = None


@value_class
class _Place:
    """Where the Session works and for whom. `subtask` and `run` are None for one of no graph."""

    cwd: str
    config: Config
    subtask: Subtask | None = None
    run: TaskRun | None = None
    wanted_agent: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`reused`, and with `say` also `delivered` and `reason`; exit code 1 for one that ended at once.

    Raises: INVALID_AGENT_CONFIG, EXECUTABLE_*, SESSION_STATE_CONFLICT, SESSION_START_FAILED, SPAWN_FAILED,
    TASK_NOT_FOUND, WORKTREE_CONFLICT.
    """
    text = given_text(request.say)
    place = _place(runtime, request)
    name = request.agent or agent_for(place.config, place.wanted_agent, subtask=_named(place.subtask))
    settings = _interactive(place.config.settings_of(name))
    agent = runtime.agents.resolve(settings)
    data = anyio.run(_open, runtime, place, agent, text)
    is_useless = data.get("delivered") == "false" or data["session"]["liveness"] == "ended"
    return Result(data, EXIT_REFUSED if is_useless else EXIT_DONE)


async def _open(runtime: Runtime, place: _Place, agent: ResolvedAgent, text: str | None) -> dict[str, Any]:
    folder = runtime.store.place.folder / "sessions"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = await anyio.to_thread.run_sync(
        lambda: locks.lock(folder / _LOCK_NAME, mode="exclusive", timeout_s=_LOCK_BOUND_S)
    )
    if lock is None:
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Another session-open in this repository does not come to an end since {_LOCK_BOUND_S:g} s.",
            kept="every Session as it is",
            next=f"{PROGRAM} session-list",
        )
    try:
        found = await _fitting(runtime, place, agent)
        reused = found is not None
        if found is None:
            found = await _start_alone(runtime, place, agent)
    finally:
        lock.release()
    assert found.record is not None
    target = Target(found.record.id, found, place.subtask)
    data: dict[str, Any] = {"session": session_json(target), "reused": reused}
    if text is not None and found.liveness == "live":
        if not reused and agent.driver != "acp" and not runtime.agents.says_ready(agent):
            await _until_quiet(runtime, target.id)
        result = await runtime.sessions.write(target.id, text, submit=True)
        data |= {"delivered": result.delivered, "reason": result.reason}
    return data


async def _until_quiet(runtime: Runtime, session: SessionId) -> None:
    """Wait until a program of which no screen says that it is ready is silent, be it at a question, or at the bound.

    What is typed before would be lost by one that is not reading yet, or be the answer to what it asks first.
    """
    cursor = 0
    with anyio.move_on_after(_QUIET_BOUND_S):
        while True:
            output = await runtime.sessions.read(session, cursor=cursor, wait_ms=_QUIET_MS)
            if output.next_cursor == cursor or output.ended:
                return
            cursor = output.next_cursor


def _place(runtime: Runtime, request: Request) -> _Place:
    """The folder and the configuration in force there: a subtask's is the one frozen with its graph."""
    if request.subtask is None:
        return _Place(os.path.realpath(runtime.root), runtime.config)
    subtask = subtask_named(runtime, request.subtask)
    row, snapshot = load_snapshot(runtime.store, pick_graph(runtime.store, subtask.graph).id)
    config = recorded_config(row, lambda: runtime.config)[0]
    run, task = snapshot.runs[SubtaskId(subtask.id)], snapshot.tasks[SubtaskId(subtask.id)]
    facts = {"taskId": subtask.graph, "subtaskId": subtask.id}
    if run.worktree is None:
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Subtask {subtask.id} has no worktree yet: it was never started.",
            kept="everything as it is",
            next=f"{PROGRAM} graph-run {subtask.graph}",
            facts=facts,
        )
    damage = runtime.worktrees.is_intact(run.worktree)
    if damage is not None:
        raise GraphError(
            "WORKTREE_CONFLICT",
            f"The worktree of subtask {subtask.id} is not as the Runtime made it: {damage}.",
            kept=f"{run.worktree.path} as it is",
            next=f"{PROGRAM} graph-inspect {subtask.graph} {subtask.id}",
            facts=facts,
        )
    return _Place(run.worktree.path, config, subtask, run, run.agent or task.agent)


async def _fitting(runtime: Runtime, place: _Place, agent: ResolvedAgent) -> SessionFacts | None:
    """The newest healthy Session in this scope."""
    wanted = _scope(runtime, place, agent)
    found = None
    for facts in await runtime.sessions.list():
        record = facts.record
        if record is None or record.kind != "agent" or facts.liveness != "live" or record.state == "closing":
            continue
        labels = dict(record.labels)
        if labels.get("taskId") != wanted.get("taskId"):
            continue  # a subtask's is nobody else's
        if wanted.items() <= labels.items() and record.driver == _driver_of(record.degraded, agent):
            found = facts if found is None or found.record is None or _is_newer(facts, found) else found
    return found


def _driver_of(degraded: bool, agent: ResolvedAgent) -> str:
    """The driver that a Session of this agent has; a degraded one was meant to be another."""
    return "pipe" if degraded else agent.driver


def _is_newer(one: SessionFacts, other: SessionFacts) -> bool:
    assert one.record is not None and other.record is not None
    return one.record.created_at > other.record.created_at


async def _require_free(runtime: Runtime, place: _Place) -> None:
    """Raise SESSION_STATE_CONFLICT where another agent works, or a driver may start one, in the same worktree."""
    if place.subtask is None or place.run is None:
        return
    graph, subtask = place.subtask.graph, place.subtask.id
    facts = {"taskId": graph, "subtaskId": subtask}
    current = await session_of(runtime, place.subtask)
    if current is not None and current.record is not None and current.liveness in ("live", "unreachable"):
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Another agent works in the worktree of subtask {subtask}: Session {current.record.id}.",
            kept="that Session; nothing was started",
            next=f"{PROGRAM} session-attach {current.record.id}",
            facts={**facts, "sessionId": current.record.id},
        )
    driver = holder(runtime.state_dir, graph)
    if driver is not None or place.run.state == "running":
        who = f"process {driver.pid} drives graph {graph}" if driver is not None else f"subtask {subtask} is running"
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Nothing is opened in the worktree of subtask {subtask} while {who}: two agents could meet there.",
            kept="everything as it is",
            next=f"{PROGRAM} graph-stop {graph} {subtask}",
            facts=facts,
        )


async def _start_alone(runtime: Runtime, place: _Place, agent: ResolvedAgent) -> SessionFacts:
    """Start it; in a worktree only under the graph's lease, so that no driver can start an agent there meanwhile."""
    await _require_free(runtime, place)
    if place.subtask is None:
        return await _start(runtime, place, agent)
    lease = Lease.acquire(runtime.store, place.subtask.graph, purpose="session-open")
    try:
        context = open_context(runtime, place.subtask.graph, lease.generation, needs="records")
        engine = Engine(context, DriveOptions(only_look=True))
        found = await _start(runtime, place, agent)
        # A crash before this leaves it out of the log; whoever starts an attempt looks for the Session itself.
        if found.record is not None:
            subtask = SubtaskId(place.subtask.id)
            engine.apply(SessionOpened(subtask, str(found.record.id), agent.agent, runtime.who))
        return found
    finally:
        lease.release()


async def _start(runtime: Runtime, place: _Place, agent: ResolvedAgent) -> SessionFacts:
    session = SessionId(_session_id(place, agent))
    request = TurnRequest(
        session_id=session,
        agent=agent,
        prompt="",
        cwd=place.cwd,
        root=_scope(runtime, place, agent)["root"],
        graph=place.subtask.graph if place.subtask is not None else "",
        subtask=place.subtask.id if place.subtask is not None else "",
        identity=_identity(runtime, place, agent),
        marker=secrets.token_hex(16),
    )
    launch = await anyio.to_thread.run_sync(runtime.agents.turn, request)
    labels = {**launch.labels, **_labels(runtime, place, agent)}
    # A person's: one turn for as long as its process lives, and nothing is said in it yet.
    spec = TurnSpec(launch=replace(launch, labels=labels, timeout_s=None, idle_timeout_s=None), prompt="")
    async with runtime.sessions.turns() as turns:
        await turns.start_turn(session, spec)
    return await runtime.sessions.look(session)


def _session_id(place: _Place, agent: ResolvedAgent) -> str:
    if place.subtask is not None:
        return opened_prefix(place.subtask.graph, place.subtask.id) + secrets.token_hex(4)
    safe = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "-" for each in agent.agent)
    return f"{safe.lstrip('._-')[:100] or 'agent'}.open-{secrets.token_hex(4)}"


def _scope(runtime: Runtime, place: _Place, agent: ResolvedAgent) -> dict[str, str]:
    """What must be equal for a Session to be used again."""
    scope = {
        "root": os.path.realpath(runtime.root),
        "agent": agent.agent,
        "resolvedCommand": agent.executable.path,
        "mode": agent.mode,
    }
    if place.subtask is not None:
        del scope["mode"]  # the subtask's own Session, whatever it is, is the one that is meant
        scope |= {"taskId": place.subtask.graph, "subtaskId": place.subtask.id}
    return scope


def _labels(runtime: Runtime, place: _Place, agent: ResolvedAgent) -> dict[str, str]:
    return {
        **_scope(runtime, place, agent),
        "adapter": agent.adapter,
        "command": agent.executable.asked,
        "commandSource": agent.executable.source,
        "mode": agent.mode,
        "openedBy": "user",
    }


def _identity(runtime: Runtime, place: _Place, agent: ResolvedAgent) -> dict[str, str]:
    variables = {
        "COORDINATE_AGENTS_AGENT": agent.agent,
        "COORDINATE_AGENTS_ROOT": os.path.realpath(runtime.root),
        "COORDINATE_AGENTS_WORKTREE": place.cwd,
    }
    if place.subtask is not None and place.run is not None:
        variables |= {
            "COORDINATE_AGENTS_GRAPH": place.subtask.graph,
            "COORDINATE_AGENTS_SUBTASK": place.subtask.id,
            "COORDINATE_AGENTS_ATTEMPT": str(place.run.attempt),
            "COORDINATE_AGENTS_BRANCH": place.run.worktree.branch if place.run.worktree is not None else "",
            "COORDINATE_AGENTS_BASE": place.run.base or "",
        }
    return variables


def _interactive(settings: AgentSettings) -> AgentSettings:
    """The agent as the program that stays, whatever its turns in a graph are. Nothing is typed by opening it.

    Arguments that were configured for turns that end are not those of the program that stays; of any program
    (generic) they are all that is known.
    """
    if "acp" in (settings.driver, settings.adapter):
        return settings
    if settings.mode != "interactive" and settings.adapter != "generic":
        settings = replace(settings, args=None, resume_args=None)
    return replace(settings, mode="interactive", delivery="paste")


def _named(subtask: Subtask | None) -> str:
    return subtask.id if subtask is not None else _NO_AGENT
