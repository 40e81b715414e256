"""graph-why: the chain of facts that led to a subtask's present state, each with its event and a command to paste."""

from collections.abc import Mapping

from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.explaining import Fact, Known, event_key, explain
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask, require_named
from coordinate_agents.graph.operations.recorded import recorded_config
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.planner import Planner
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.store.rows import EventRow
from coordinate_agents.graph.view import iso
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`chain`: causal, the subtask's own state first; `depth` says what rests on what."""
    picked, name = pick_subtask(runtime.store, request.graph, request.subtask)
    subtask = SubtaskId(require_named(picked, name))
    # The lease first, as in graph-status.
    driver = holder(runtime.state_dir, picked.id)
    row, snapshot = load_snapshot(runtime.store, picked.id)
    config, _, _ = recorded_config(row)
    events: dict[SubtaskId, Mapping[str, EventRow]] = {}

    def last(of: SubtaskId) -> Mapping[str, EventRow]:
        if of not in events:
            rows = runtime.store.events(row.id, subtask=of)
            events[of] = {key: event for event in rows for key in (event.type, event_key(event))}
        return events[of]

    def agent_of(task: Task) -> str:
        try:
            return agent_for(config, task.agent, subtask=task.id)
        except GraphError:
            return task.agent or ""  # a run says what is wrong with it

    plan = Planner(snapshot, agent_of=agent_of).plan(limit=None)
    deferred = {each.subtask: each for each in plan.deferred}
    chain = explain(Known(snapshot, driver is not None, last, deferred), subtask)
    state = snapshot.frontier.place(subtask).upper()
    return Result(
        {"graph": {"id": row.id}, "subtask": subtask, "state": state, "chain": [_json(each) for each in chain]}
    )


def _json(fact: Fact) -> dict[str, object]:
    event = fact.event
    return {
        "depth": fact.depth,
        "subtask": fact.subtask,
        "fact": fact.text,
        "seq": event.seq if event else None,
        "type": event.type if event else None,
        "time": iso(event.time) if event else None,
        "next": fact.following,
    }
