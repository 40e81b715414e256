"""From the word that a session verb was given to the Session that it means, and what is known of its subtask.

The word is a Session's id, or GRAPH/SUBTASK (of a graph of one subtask GRAPH alone): then the newest living Session of
that subtask, else the one of its last attempt. Looks only. A word that fits nothing is an error that says where to find
what there is.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.loading import pick_subtask, subtask_ids
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.sessions.model import Output, ReadLimits, SessionFacts, SessionId

PROGRAM = "coordinate-agents"


class Subtask(NamedTuple):
    """A subtask as its row says it; `run` is the stored state, empty before the first attempt."""

    graph: str
    id: str
    run: Mapping[str, Any]


class Target(NamedTuple):
    """The Session that is meant, looked at; `subtask` None for one of no graph."""

    id: SessionId
    facts: SessionFacts
    subtask: Subtask | None


async def find(runtime: Runtime, word: str) -> Target:
    """Raises: SESSION_NOT_FOUND; TASK_NOT_FOUND for a graph or subtask that there is not."""
    if "/" in word:
        subtask = subtask_named(runtime, word)
        facts = await session_of(runtime, subtask)
        if facts is None or facts.record is None:
            raise GraphError(
                "SESSION_NOT_FOUND",
                f"Subtask {subtask.id} of graph {subtask.graph} has no Session.",
                kept="everything as it is",
                next=f"{PROGRAM} graph-status {subtask.graph}",
                facts={"taskId": subtask.graph, "subtaskId": subtask.id},
            )
        return Target(facts.record.id, facts, subtask)
    facts = await runtime.sessions.look(SessionId(word))
    if facts.liveness == "absent" and (row := runtime.store.graph(word)) and len(only := subtask_ids(row)) == 1:
        return await find(runtime, f"{word}/{only[0]}")
    if facts.liveness == "absent":
        raise GraphError(
            "SESSION_NOT_FOUND",
            f"There is no Session {word!r} in this repository.",
            kept="everything as it is",
            next=f"{PROGRAM} session-list --all",
            facts={"sessionId": word},
        )
    return Target(SessionId(word), facts, _subtask_of(runtime, facts))


def find_living(
    runtime: Runtime, word: str, limits: ReadLimits | None = None, *, wait_ms: int = 0
) -> tuple[Target, Output | None] | None:
    """As `find`, and what is read at once, for a Session with a host; asks that alone, in one go. Blocks.

    None where there is more to say than a host can: `find` says it. The subtask is looked up only where `word` names it
    or the Session's labels do not say all of it (`with_subtask`). Raises: TASK_NOT_FOUND, INVALID_USAGE; with limits as
    a read.
    """
    subtask = subtask_named(runtime, word) if "/" in word else None
    name = SessionId(word if subtask is None else subtask.run.get("session") or "")
    found = runtime.sessions.look_now(name, limits, wait_ms=wait_ms)
    if found is None:
        return None
    facts, output = found
    target = Target(name, facts, subtask)
    is_labelled = facts.record is not None and bool(facts.record.labels.get("agent"))
    return target if is_labelled else with_subtask(runtime, target), output


def with_subtask(runtime: Runtime, target: Target) -> Target:
    """The same with its subtask, if it has one."""
    return target if target.subtask is not None else target._replace(subtask=_subtask_of(runtime, target.facts))


def subtask_named(runtime: Runtime, word: str) -> Subtask:
    """The subtask that GRAPH/SUBTASK names. Raises: TASK_NOT_FOUND, INVALID_USAGE."""
    graph, _, name = word.partition("/")
    if not graph or not name:
        raise GraphError(
            "INVALID_USAGE",
            f"{word!r} is neither a Session id nor GRAPH/SUBTASK.",
            next=f"{PROGRAM} session-list",
        )
    row, subtask = pick_subtask(runtime.store, graph, name)
    assert subtask is not None
    runs = {each.subtask_id: each.row for each in runtime.store.runs(row.id)}
    return Subtask(row.id, subtask, json.loads(runs[subtask]) if subtask in runs else {})


async def session_of(runtime: Runtime, subtask: Subtask) -> SessionFacts | None:
    """The subtask's living Session, else the one of its last attempt; None when it never had one."""
    name = subtask.run.get("session")
    last = None
    if name:
        last = await runtime.sessions.look(SessionId(name))
        if last.liveness in ("live", "unreachable"):
            return last
    opened = [
        facts
        for facts in await runtime.sessions.list()
        if facts.record is not None
        and facts.record.kind == "agent"
        and facts.record.labels.get("taskId") == subtask.graph
        and facts.record.labels.get("subtaskId") == subtask.id
    ]
    living = [facts for facts in opened if facts.liveness in ("live", "unreachable")]
    newest = max(living, key=_created, default=None)
    if newest is not None:
        return newest
    if last is not None and last.liveness != "absent":
        return last
    return max(opened, key=_created, default=None)


def require_live(target: Target) -> None:
    """Raise SESSION_STATE_CONFLICT or SESSION_NOT_HEALTHY unless the Session's host answers."""
    if target.facts.liveness == "live":
        return
    record, liveness = target.facts.record, target.facts.liveness
    if liveness in ("ended", "lost"):
        end = record.end if record is not None else None
        how = "its host died" if end is None else f"{end.cause}, exit code {end.exit_code}, signal {end.signal}"
        raise GraphError(
            "SESSION_STATE_CONFLICT",
            f"Session {target.id} ended ({how}); nothing can be written to it any more.",
            kept="its output and record",
            next=f"{PROGRAM} session-read {target.id}",
            facts=_facts(target),
        )
    raise GraphError(
        "SESSION_NOT_HEALTHY",
        f"The host of Session {target.id} does not answer ({liveness}); it is not taken for dead.",
        kept="the Session as it is",
        next=f"{PROGRAM} session-status {target.id}",
        facts=_facts(target),
    )


def _facts(target: Target) -> dict[str, str]:
    found = {"sessionId": str(target.id)}
    if target.subtask is not None:
        found |= {"taskId": target.subtask.graph, "subtaskId": target.subtask.id}
    return found


def _created(facts: SessionFacts) -> float:
    return facts.record.created_at if facts.record is not None else 0.0


def _subtask_of(runtime: Runtime, facts: SessionFacts) -> Subtask | None:
    labels = facts.record.labels if facts.record is not None else {}
    graph, subtask = labels.get("taskId"), labels.get("subtaskId")
    if not graph or not subtask:
        return None
    runs = {each.subtask_id: each.row for each in runtime.store.runs(graph)}
    return Subtask(graph, subtask, json.loads(runs[subtask]) if subtask in runs else {})
