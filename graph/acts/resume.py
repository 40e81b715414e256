"""Make subtasks ready again, or let one go on in a Session that lives. Records; starts nothing."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.adopting import adoption
from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import Event, SessionAdopted, TaskReset, TaskTold
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.resuming import Wanted, plan_resume
from coordinate_agents.graph.shared import acceptance
from coordinate_agents.sessions.errors import SessionError


async def resume(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record what is to be resumed, all of it or nothing. Returns `{reset, adopted, accepted, notes}`.

    Raises: TASK_ALREADY_RUNNING, TASK_STATE_CONFLICT, INVALID_AGENT_CONFIG, EXECUTABLE_*, SESSION_STATE_CONFLICT,
    SHARED_STATE_CHANGED; then nothing was changed.
    """
    context, fingerprint = engine.context, asked.get("acceptShared")
    wanted = Wanted(
        SubtaskId(asked["subtask"]) if asked.get("subtask") else None,
        redo=bool(asked.get("redo")),
        say=str(asked.get("say") or ""),
        keep="base" if asked.get("from") == "base" else "branch",
        agent=asked.get("agent"),
        who=who,
    )
    events: list[Event] = [await acceptance(context, fingerprint, who=who)] if fingerprint else []
    # Whoever only accepts the shared state resumes nothing by it.
    is_only_accepting = bool(fingerprint) and wanted.subtask is None and not wanted.say
    if wanted.agent is not None:
        await _require_agent(engine, wanted)
    adopted: dict[SubtaskId, SessionAdopted] = {}
    if not is_only_accepting:
        adopted = await _adoptions(engine, wanted)
    # Decided only now, after the last wait: meanwhile the driver went on.
    planned = plan_resume(context.snapshot, wanted) if not is_only_accepting else None
    resets = planned.resets if planned else ()
    for reset in resets:
        events += _events_of(reset, adopted.get(reset.subtask))
    told = {
        "reset": [reset.subtask for reset in resets if reset.subtask not in adopted],
        "adopted": sorted(adopted),
        "accepted": fingerprint if fingerprint else None,
        "notes": list(planned.notes) if planned else [],
    }
    if events:
        engine.apply_all(events, results=answers(told))
    return told


def _events_of(reset: TaskReset, adopted: SessionAdopted | None) -> list[Event]:
    if adopted is None:
        return [reset]
    return [adopted, TaskTold(reset.subtask, reset.say, who=reset.who)] if reset.say else [adopted]


async def _adoptions(engine: Engine, wanted: Wanted) -> dict[SubtaskId, SessionAdopted]:
    """Of those that would be reset, the ones whose Session lives and can go on."""
    context = engine.context
    found = {}
    for reset in plan_resume(context.snapshot, wanted).resets:
        run = context.run(reset.subtask)
        starts_otherwise = wanted.agent is not None or wanted.keep == "base" or reset.keep == "base"
        adopted = await adoption(context, replace(run, is_fresh=run.is_fresh or starts_otherwise), who=wanted.who)
        if adopted is not None and context.run(reset.subtask) == run:
            found[reset.subtask] = adopted
    return found


async def _require_agent(engine: Engine, wanted: Wanted) -> None:
    """Resolve it before anything is changed. Raises: INVALID_AGENT_CONFIG, EXECUTABLE_*."""
    context = engine.context
    assert wanted.subtask is not None
    try:
        name = agent_for(context.config, wanted.agent, subtask=wanted.subtask)
    except GraphError as error:
        # The graph has its own configuration, as it was: nothing that is written to a file now changes it.
        error.message += " This is the configuration that was recorded with the graph."
        now = context.run(wanted.subtask).agent or context.task(wanted.subtask).agent
        others = [agent.name for agent in context.config.agents if agent.name != now]
        error.kept, error.next = "everything as it is", f"coordinate-agents graph-plan {context.graph_id}"
        if others:
            again = f"coordinate-agents graph-resume {context.graph_id} {wanted.subtask}"
            error.next = f"{again} --agent {shlex.quote(others[0])}"
        raise
    try:
        await context.call(context.agents.resolve, context.config.settings_of(name))
    except SessionError as error:
        raise GraphError(error.code, error.message, kept="everything as it is", next=error.next) from error
