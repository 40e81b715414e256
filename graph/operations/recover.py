"""graph-recover: compare the records with the world, verify completions that came meanwhile, mark what was interrupted.

Records only: nothing is started, replayed or guessed. What lives goes on; what somebody drives is its driver's. Asked
again it changes nothing: the lease, whose generation is a record too, is taken only when there is something to record.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import anyio

from coordinate_agents.graph import recovery
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.effects import AwaitTurn
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_INTERRUPTED, GraphError
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.observe import Standing, look_at_running, look_at_standing
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph, open_context
from coordinate_agents.graph.operations.leaving import Ending
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.speaking import is_over
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.turns import resolve_agent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionFacts, SessionId
from coordinate_agents.worktrees.values import value_class

Outlook = Literal["due", "alive", "nothing"]
_ALIVE: Final = ("live", "unreachable")


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


@value_class
class Look:
    """What a first look found. `due`: there is something to record; `left`: why the others stay as they are."""

    due: tuple[SubtaskId, ...]
    left: dict[SubtaskId, str]
    alive: tuple[SubtaskId, ...]
    has_leftovers: bool

    @property
    def outlook(self) -> Outlook:
        if self.due or self.has_leftovers:
            return "due"
        return "alive" if self.alive else "nothing"


def execute(runtime: Runtime, request: Request) -> Result:
    """`recover`: each subtask's facts and what became of it; with a driver it is only named."""
    row, name = pick_subtask(runtime.store, request.graph, request.subtask)
    only = SubtaskId(name) if name is not None else None
    driver = holder(runtime.state_dir, row.id)
    if driver is not None:
        return _driven(runtime, row.id, driver.pid)
    before = {run.id: run for run in load_snapshot(runtime.store, row.id)[1].runs.values()}
    ending: Ending = "ended"
    found = look(runtime, row.id, only)
    if found.outlook == "due":
        try:
            ending = carry_out(runtime, row.id, only)
        except GraphError as error:
            if error.code != "LEASE_HELD":
                raise
            return _driven(runtime, row.id, error.facts.get("pid"))
    after = load_snapshot(runtime.store, row.id)[1].runs
    standing = anyio.run(_standing, runtime, row.id, [run for run in after.values() if only in (None, run.id)])
    items = [_item(each, before[each.subtask], after[each.subtask], found.left.get(each.subtask)) for each in standing]
    changed = [item["subtask"] for item in items if item["before"] != item["after"]]
    told = {"driver": None, "changed": changed, "subtasks": items}
    data = {**status_of(runtime, row.id), "recover": told, "advice": _words(row.id, items)}
    return Result(data, EXIT_DONE if ending == "ended" else EXIT_INTERRUPTED)


def look(runtime: Runtime, graph: str, only: SubtaskId | None = None) -> Look:
    """Look, changing nothing, whether anything is to be recorded."""
    return anyio.run(_look, runtime, graph, only)


def carry_out(runtime: Runtime, graph: str, only: SubtaskId | None = None) -> Ending:
    """Record what the world says. Raises: LEASE_HELD."""

    async def begin(engine: Engine) -> None:
        for run, facts in await look_at_running(engine.context):
            if only in (None, run.id):
                _decide(engine, run, facts)

    drive = DriveRequest(DriveOptions(only_look=True), begin=begin, purpose="graph-recover")
    return drive_graph(runtime, graph, drive)[1]


def _decide(engine: Engine, run: TaskRun, facts: SessionFacts | None) -> None:
    match _decision(engine.context, run, facts):
        case recovery.GoOn(effect=effect):
            engine.found_ended(run.id)
            engine.start(effect)
        case recovery.Record(event=event):
            engine.found_ended(run.id)
            engine.apply(event)
        case recovery.Leave():
            return


def _decision(context: Context, run: TaskRun, facts: SessionFacts | None) -> recovery.Decision:
    """What is to be recorded of it. A program that stays has come to its turn's end when it submitted, or says so."""
    is_at_work = facts is not None and facts.liveness == "live" and run.stage == "turn" and not run.is_held
    if is_at_work and is_over(run, facts):
        return recovery.GoOn(AwaitTurn(run.id))
    if is_at_work and run.session is not None and context.agents.has_submitted(SessionId(run.session)):
        try:
            stays = resolve_agent(context, run).mode == "interactive"
        except SessionError:
            stays = False
        if stays:
            return recovery.GoOn(AwaitTurn(run.id))
    return recovery.decide_record(run, facts)


async def _look(runtime: Runtime, graph: str, only: SubtaskId | None) -> Look:
    context = _context(runtime, graph)
    due: list[SubtaskId] = []
    alive: list[SubtaskId] = []
    left: dict[SubtaskId, str] = {}
    has_leftovers = bool(await context.call(context.worktrees.left_pristine, graph))
    for subtask in recovery.unfinished(context.snapshot):
        run = context.run(subtask)
        if only not in (None, subtask):
            continue
        facts = (
            await context.sessions.look(SessionId(run.session)) if recovery.needs_look(run) and run.session else None
        )
        decision = _decision(context, run, facts)
        if isinstance(decision, recovery.Leave):
            left[subtask] = decision.reason
            if facts is not None and facts.liveness in _ALIVE:
                alive.append(subtask)
        else:
            due.append(subtask)
    return Look(tuple(due), left, tuple(alive), has_leftovers)


async def _standing(runtime: Runtime, graph: str, runs: Sequence[TaskRun]) -> tuple[Standing, ...]:
    return await look_at_standing(_context(runtime, graph), runs)


def _context(runtime: Runtime, graph: str) -> Context:
    """For looking only: its generation is nobody's, so that nothing could be recorded with it."""
    return open_context(runtime, graph, -1, needs="records")


def _item(standing: Standing, before: TaskRun, after: TaskRun, left: str | None) -> dict[str, Any]:
    return {
        "subtask": standing.subtask,
        "before": before.state,
        "after": after.state,
        "reason": left if before.state == after.state else after.reason,
        "session": standing.session,
        "liveness": standing.liveness,
        "worktree": standing.worktree,
        "branchAt": standing.branch_at,
        "problems": list(standing.problems),
    }


def _words(graph: str, items: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for item in items:
        if item["before"] != item["after"]:
            lines.append(f"{item['subtask']}: {item['before']} before, {item['after']} now")
        elif item["reason"] and item["after"] == "running":
            lines.append(f"{item['subtask']}: {item['reason']}")
        lines += [f"{item['subtask']}: {problem}" for problem in item["problems"]]
    if not any(item["before"] != item["after"] for item in items):
        lines.append("Nothing to record: what is recorded is what is there.")
    return lines


def _driven(runtime: Runtime, graph: str, pid: Any) -> Result:
    words = f"Process {pid} drives the graph and recovers by itself; nothing was changed."
    told = {"driver": pid, "changed": [], "subtasks": []}
    return Result({**status_of(runtime, graph), "recover": told, "advice": [words]})
