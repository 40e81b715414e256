"""Drive a graph under its lease: recover, run the engine, answer requests, leave in order. Shared by the run verbs."""

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

import anyio

from coordinate_agents.graph import recovery
from coordinate_agents.graph.acts.hold import tell_session
from coordinate_agents.graph.adopting import adoption
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.context import Context, checks_at_a_time
from coordinate_agents.graph.engine import DriveOptions, Engine, verified_heads
from coordinate_agents.graph.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_NEEDS_PERSON,
    EXIT_NOT_SUCCEEDED,
    EXIT_TIMED_OUT,
    GraphError,
)
from coordinate_agents.graph.events import AttemptFailed, DriveEnded, DriveStarted, Event, TaskReset
from coordinate_agents.graph.holding import Holds
from coordinate_agents.graph.model import GraphId, SubtaskId
from coordinate_agents.graph.notifying import Notifier
from coordinate_agents.graph.observe import integration_stands, look_at_running
from coordinate_agents.graph.operations.leaving import Ending, Leaving
from coordinate_agents.graph.operations.loading import load_snapshot
from coordinate_agents.graph.operations.recorded import config_of, recorded_config
from coordinate_agents.graph.operations.serving import serve_requests
from coordinate_agents.graph.perform import failure_of
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.shared import settle_refs
from coordinate_agents.graph.slots import Slots
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.staying import close_idle
from coordinate_agents.graph.stopping import stop_all
from coordinate_agents.graph.store.blobs import Blobs
from coordinate_agents.graph.store.inbox import RequestInbox
from coordinate_agents.graph.store.lease import Lease
from coordinate_agents.graph.store.rows import RequestResult
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.values import value_class

Begin = Callable[[Engine], Awaitable[None]]
# New values between two looks of the collector: some megabytes.
_COLLECT_EVERY: Final = 20_000


@value_class
class DriveRequest:
    """`deadline_s`: leave after so long. `stop_on_exit`: close the agents when leaving, also the idle ones.

    `on_input`: whether a question of an agent waits for a person or ends its subtask. `begin`: what a short drive does
    instead of recovering everything; it is no drive of the graph, and none is recorded.
    """

    options: DriveOptions
    retry_failed: bool = False
    deadline_s: float | None = None
    stop_on_exit: bool = False
    on_input: Literal["wait", "fail"] = "wait"
    begin: Begin | None = None
    purpose: str = "graph-run"


def drive_graph(runtime: Runtime, graph_id: str, request: DriveRequest) -> tuple[Snapshot, Ending]:
    """Take the lease, drive to the end or until told to leave, give the lease back. Raises: LEASE_HELD."""
    lease = Lease.acquire(runtime.store, graph_id, purpose=request.purpose)
    # What is loaded by now stays; the collector need not look through it again and again. And nearly everything that a
    # drive makes is gone without it: at every 700 new values it would look a thousand times for nothing.
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY)
    try:
        return anyio.run(_drive, runtime, graph_id, lease, request)
    finally:
        lease.release()


async def _drive(runtime: Runtime, graph_id: str, lease: Lease, request: DriveRequest) -> tuple[Snapshot, Ending]:
    asyncio.get_running_loop().set_exception_handler(_told_by_the_loop)
    needs: Literal["agents", "records"] = "records" if request.options.only_look else "agents"
    context = open_context(runtime, graph_id, lease.generation, needs=needs)
    context.on_input = request.on_input
    engine = Engine(context, request.options)
    notifier = Notifier(context)
    context.told = notifier.event
    runtime.progress.begin(context.snapshot)
    ending: Ending = "ended"
    with RequestInbox(runtime.store, lease, on_nudge=context.nudged.ring) as inbox:
        async with context.with_turns():
            ending = await _run(engine, inbox, request, notifier)
    if request.begin is not None:
        return context.snapshot, ending
    held = context.hold_starts() if ending == "ended" and context.snapshot.frontier.counts()["ready"] else ""
    context.record(DriveEnded(held or ending))
    await notifier.finish()
    runtime.progress.end(context.snapshot)
    return context.snapshot, ending


async def _run(engine: Engine, inbox: RequestInbox, request: DriveRequest, notifier: Notifier) -> Ending:
    """Drive, told by signals, a deadline and requests when to leave; close the agents where that was asked for."""
    context = engine.context
    leaving = Leaving(engine)
    async with anyio.create_task_group() as group:
        holds = Holds(context, group)
        group.start_soon(leaving.hear_signals)
        group.start_soon(serve_requests, engine, inbox, leaving, holds)
        group.start_soon(notifier.work)
        if request.deadline_s is not None:
            group.start_soon(leaving.after, request.deadline_s)
        if context.progress.wants_output:
            group.start_soon(_watch_output, context)
        await engine.run(request.begin or (lambda engine: _begin(engine, holds, retry_failed=request.retry_failed)))
        await leaving.wait_for_second_thought()
        await notifier.settle()
        group.cancel_scope.cancel()
    ending, stops = leaving.ending, leaving.stops
    refused: Mapping[SubtaskId, SessionError] = {}
    if ending == "stopped" or (request.stop_on_exit and ending in ("interrupted", "deadline")):
        reason = str(stops[0].data.get("reason", "stopped")) if stops else f"stopped: graph-run ended ({ending})"
        refused = await stop_all(context, reason=reason)
    elif request.stop_on_exit:
        await close_idle(context, "graph-run ended")
    for row in stops:
        told = "; ".join(f"{subtask}: {error.message}" for subtask, error in sorted(refused.items()))
        outcome: Literal["accepted", "refused"] = "refused" if told else "accepted"
        inbox.answer(RequestResult(row.id, outcome, told or "every Session of the graph was closed"))
    return ending


def _told_by_the_loop(loop: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
    """Let pass what the event loop tells of a socket that became readable as its reader was cancelled.

    anyio's sockets set the result of a future without asking whether it is still waited for; nothing is lost.
    """
    if not isinstance(told.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(told)


def open_context(
    runtime: Runtime, graph_id: str, generation: int, *, needs: Literal["agents", "records"] = "agents"
) -> Context:
    """Everything one drive needs, from the record. Raises: TASK_NOT_FOUND, STATE_TAMPERED.

    `needs`: who starts no agent needs no values of variables, which only the configuration of today has.
    """
    row, snapshot = load_snapshot(runtime.store, graph_id)
    if snapshot.summary.is_forgotten:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"Graph {graph_id} was forgotten: nothing of it runs or changes any more.",
            kept="its event log and certificates",
            next="coordinate-agents graph-create FILE --as ANOTHER_ID",
            facts={"taskId": graph_id},
        )
    config, frozen, worktree_root = recorded_config(row, (lambda: runtime.config) if needs == "agents" else None)
    checks = checks_at_a_time(snapshot.graph)
    context = Context(
        graph_id=GraphId(graph_id),
        generation=generation,
        snapshot=snapshot,
        config=config,
        frozen=frozen,
        worktree_root=worktree_root,
        state_dir=runtime.state_dir,
        store=runtime.store,
        blobs=Blobs(runtime.state_dir),
        worktrees=runtime.worktrees,
        sessions=runtime.sessions,
        agents=runtime.agents,
        clock=runtime.clock,
        progress=runtime.progress,
        slots=Slots(GraphId(graph_id), snapshot, config),
        revision=row.revision,
        checks=anyio.CapacityLimiter(checks),
        read_config=lambda text: config_of(text, runtime.config_now if needs == "agents" else None),
    )
    context.hold_starts = lambda: _hold_starts(context, context.config) or context.slots.why_none()
    return context


def _hold_starts(context: Context, config: Config) -> str:
    """Why nothing new may start now; empty when it may."""
    place = os.statvfs(context.state_dir)
    free = place.f_bavail * place.f_frsize
    limit = config.min_free_disk_bytes
    if free < limit:
        return f"DISK_LOW: {free >> 20} MiB are free, {limit >> 20} MiB are kept free"
    return ""


async def _begin(engine: Engine, holds: Holds, *, retry_failed: bool) -> None:
    """Recover what an earlier driver left, then make ready what was interrupted (or failed, when asked)."""
    context = engine.context
    engine.apply(DriveStarted(os.getpid()))
    if not recovery.unfinished(context.snapshot):  # else what runs may have done it, and its verification says so
        await settle_refs(context)
    for run, facts in await look_at_running(context):
        if context.run(run.id).state != "running":
            continue  # stopped on request while it was looked at
        if facts is not None and facts.liveness in ("lost", "ended"):
            engine.found_ended(run.id)
        if (run.phase == "held" and not run.is_held) or (facts is not None and facts.attached):
            holds.begin(run.id, announced=False)
        if facts is not None and facts.liveness in ("live", "unreachable"):
            await tell_session(engine, run.id)
        match recovery.decide(run, facts):
            case recovery.GoOn(effect=effect):
                engine.start(effect)
            case recovery.Record(event=event):
                engine.apply(event)
            case recovery.Leave():
                continue
    if context.snapshot.summary.integration.state == "integrated" and not await integration_stands(context):
        engine.found_undone()
    pending = recovery.continue_integration(context.snapshot)
    if pending is not None:
        engine.start(pending)
    if not (engine.starts_anew or retry_failed):
        return  # what was interrupted stays a fact
    for reset in recovery.resets(context.snapshot, retry_failed=retry_failed):
        await _make_ready(engine, reset)


async def _make_ready(engine: Engine, reset: TaskReset) -> None:
    """Let it go on in its Session that lives; else ready for a new attempt, or failed where that is in the way."""
    context, run = engine.context, engine.context.run(reset.subtask)
    event: Event
    try:
        event = await adoption(context, run, who="driver") or reset
    except GraphError as error:
        event = AttemptFailed(run.id, failure_of(error), is_final=True)
        if run.failure == event.failure:
            return
    if context.run(run.id) == run:  # nobody decided otherwise while it was looked at
        engine.apply(event)


async def _watch_output(context: Context) -> None:
    """Show each running subtask's last output line about once a second; only a terminal asks for it."""
    while True:
        for run in [run for run in context.snapshot.runs.values() if run.session_live and run.session]:
            facts = await context.sessions.look(run.session)  # type: ignore[arg-type]
            context.progress.output(run.id, facts.last_line)
        await anyio.sleep(1.0)


def _needs_person(run: TaskRun) -> bool:
    """Whether going on takes a decision, an answer, a login or a quota."""
    if run.state == "failed" and run.failure is not None:
        return run.failure.code in ("AWAITING_INPUT", "AUTH_REQUIRED", "RATE_LIMITED", "QUOTA_EXHAUSTED")
    return run.conflict is not None or run.phase in ("awaiting-input", "throttled")


def exit_code_of(snapshot: Snapshot, ending: Ending, *, integrate: bool, until: SubtaskId | None = None) -> int:
    """Exit code of contract section 7 for the end of a drive; with `until`, that subtask's success is the end."""
    if ending in ("interrupted", "stopped", "handover"):
        return EXIT_INTERRUPTED
    if ending == "deadline":
        return EXIT_TIMED_OUT
    summary = snapshot.summary
    if summary.shared_changes or summary.integration.state == "conflict":
        return EXIT_NEEDS_PERSON
    if any(_needs_person(run) for run in snapshot.runs.values()):
        return EXIT_NEEDS_PERSON
    if until is not None and snapshot.runs[until].state == "succeeded":
        return EXIT_DONE
    if snapshot.frontier.counts()["succeeded"] != len(snapshot.tasks):
        return EXIT_NOT_SUCCEEDED
    if not integrate or summary.integration.state == "integrated" or not verified_heads(snapshot):
        return EXIT_DONE
    return EXIT_NOT_SUCCEEDED
