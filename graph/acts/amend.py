"""Go over to a new revision of the graph, all of it or nothing. Records; what is ready by it the driver then starts."""

from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.amending import PROGRAM, Amendment, plan_amendment
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import GraphAmended
from coordinate_agents.graph.model import CommitId, from_json, to_json
from coordinate_agents.graph.ports import Agents
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.speaking import require_driver
from coordinate_agents.graph.store.rows import GraphRow, NewDocument

# Differences that the event holds in words; the store has both revisions whole.
_MAX_LINES: Final = 40


async def amend(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record the revision. Returns `{amended, revision, added, changed, dropped, base, differences}`.

    `asked`: the document as `to_json` writes it, its digest, the revision that it was compared with, the text of the
    configuration to be recorded and what differs in it, and where the base moves to. Raises: TASK_STATE_CONFLICT,
    INVALID_AGENT_CONFIG; then nothing was changed.
    """
    context = engine.context
    row = context.store.graph(context.graph_id)
    assert row is not None and context.read_config is not None
    if row.revision != asked["revision"]:
        raise _overtaken(row)
    graph = from_json(str(asked["document"]))
    # A file of the user is read here: not in the thread that everything else waits for.
    config = await context.call(context.read_config, str(asked["config"]))
    # Decided only now, after the last wait: meanwhile the driver went on.
    base = CommitId(asked["base"]) if asked.get("base") else None
    amendment = plan_amendment(context.snapshot, graph, base=base)
    require_agents(context.snapshot, amendment, config, context.agents)
    if engine.until is not None and engine.until in amendment.dropped:
        raise _until(row, engine.until)
    lines = (*amendment.lines, *asked["configuration"])
    told = {"amended": True, "revision": row.revision + 1, **shown(amendment, lines)}
    if amendment.is_empty and not lines and row.content_digest == asked["digest"]:
        return {**told, "amended": False, "revision": row.revision}
    event = GraphAmended(
        row.revision + 1,
        amendment.added,
        amendment.changed,
        amendment.dropped,
        amendment.base,
        str(asked.get("branch") or "") if amendment.base else "",
        lines[:_MAX_LINES],
        who,
    )
    document = NewDocument(
        title=graph.title,
        base_commit=amendment.base or row.base_commit,
        document=to_json(graph),
        content_digest=str(asked["digest"]),
        config=str(asked["config"]),
    )
    engine.amend(event, graph, document, config, results=answers(told))
    return told


def shown(amendment: Amendment, lines: tuple[str, ...]) -> dict[str, Any]:
    """What changes, as answers show it."""
    return {
        "added": list(amendment.added),
        "changed": list(amendment.changed),
        "dropped": list(amendment.dropped),
        "base": amendment.base,
        "differences": list(lines),
    }


def require_agents(snapshot: Snapshot, amendment: Amendment, config: Config, agents: Agents) -> None:
    """Every subtask that may still start has an agent in the configuration of today.

    Raises: INVALID_AGENT_CONFIG; as `require_driver`.
    """
    for task in amendment.graph.tasks:
        run = snapshot.runs.get(task.id)
        if run is None or run.state != "succeeded":
            name = agent_for(config, (run.chosen_agent if run else None) or task.agent, subtask=task.id)
            require_driver(agents, config, name)


def _overtaken(row: GraphRow) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Graph {row.id} was amended by somebody else at the same moment: it is at revision {row.revision}.",
        kept=f"revision {row.revision}",
        next=f"{PROGRAM} graph-inspect {row.id}",
        stage="amend",
        facts={"taskId": row.id},
    )


def _until(row: GraphRow, until: str) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Subtask {until} cannot be dropped: the graph is driven until it succeeds.",
        kept=f"revision {row.revision}",
        next=f"{PROGRAM} graph-stop {row.id} --drain",
        stage="amend",
        facts={"taskId": row.id, "subtaskId": until},
    )
