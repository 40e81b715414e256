"""Turns over the Agent Client Protocol: the agent's host says when one is over, and its word proves nothing.

The process stays over all turns of an attempt, as that of an interactive agent does. A turn is begun by its name, so
whoever comes back after a crash begins no second one.
"""

from typing import Final, NamedTuple

from coordinate_agents.graph.config import Config
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.ports import Agents
from coordinate_agents.graph.runs import TaskRun
from coordinate_agents.graph.staying import can_take_turn
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import (
    AgentTurn,
    ResolvedAgent,
    SessionEnd,
    SessionFacts,
    SessionId,
    TurnFacts,
    TurnLimits,
)

# The agent says that its turn is over: a trigger to look at its work.
ENDED: Final = "turn-ended"
# It was asked to stop; it said that it will not do this; something in it or on the way to it failed.
CANCELLED: Final = "cancelled"
REFUSED: Final = "refused"
FAILED: Final = "failed"


class Spoken(NamedTuple):
    """The end of a turn whose process stays: its cause for the record, what the agent said of it, its output."""

    cause: str
    detail: str
    facts: TurnFacts


def is_spoken(agent: ResolvedAgent | None) -> bool:
    return agent is not None and agent.driver == "acp"


def turn_name(run: TaskRun) -> str:
    """The turn's id at its host, where it is never used twice: a Session belongs to one attempt."""
    return f"t{run.turn}"


def require_driver(agents: Agents, config: Config, name: str) -> None:
    """Raise UNSUPPORTED_CAPABILITY or INVALID_ADAPTER_CONFIG now for a driver that the agent could never have.

    Only where one is configured: what else is wrong with an agent is seen when its program is looked for.
    """
    agent = config.agent(name)
    if agent is not None and "acp" in (agent.driver, agent.adapter):
        agents.require_supported(config.settings_of(name))


async def speak(context: Context, subtask: SubtaskId) -> Spoken | None:
    """Give the turn its prompt and wait for its end; None when the process did not outlive it: `wait` says how."""
    run, task = context.run(subtask), context.task(subtask)
    session, name = SessionId(run.session or ""), turn_name(run)
    while context.run(subtask).phase == "held":  # a person works there
        await context.next_change()
    limits = TurnLimits(timeout_s=task.timeout_s, idle_timeout_s=task.idle_timeout_s, on_idle=task.on_idle)
    await _begin(context, session, name, limits)
    turn = await context.sessions.turn_end(session, name)
    facts = await context.sessions.look(session)
    if not can_take_turn(facts) or facts.record is None or facts.record.state != "idle":
        return None
    cause, detail = cause_of(turn)
    return Spoken(cause, detail, TurnFacts(turn.tail, None, turn.duration_ms))


async def _begin(context: Context, session: SessionId, name: str, limits: TurnLimits) -> None:
    """Start the turn, after one that a person began in the Session by hand."""
    while True:
        try:
            return await context.sessions.prompt(session, name, limits)
        except SessionError as error:
            facts = await context.sessions.look(session)
            running = facts.record.turn if facts.record is not None else None
            if error.code != "SESSION_STATE_CONFLICT" or running is None:
                raise
            await context.sessions.turn_end(session, running.id)


def cause_of(turn: AgentTurn) -> tuple[str, str]:
    """The cause for the record, and what was said of it."""
    if turn.was_cancelled:
        return CANCELLED, turn.error
    if turn.state == "failed":
        return FAILED, turn.error
    if turn.stop_reason == "refusal":
        return REFUSED, "it refused"
    return ENDED, "" if turn.stop_reason == "end_turn" else f"it stopped: {turn.stop_reason or 'without a reason'}"


async def cause_of_exit(context: Context, run: TaskRun, end: SessionEnd) -> tuple[str, str | None]:
    """Why the turn is over whose process ended: exit code 0 in the middle of one is no success, and an end is one."""
    turn = await context.sessions.turn_end(SessionId(run.session or ""), turn_name(run))
    if end.cause == "unused" or (end.cause == "exit" and turn.state == "ended"):
        return cause_of(turn)
    if end.cause == "exit" and end.exit_code == 0:
        return FAILED, turn.error
    return end.cause, end.error


def is_over(run: TaskRun, facts: SessionFacts | None) -> bool:
    """Whether the run's turn came to its end while nobody watched it."""
    turn = facts.record.turn_named(turn_name(run)) if facts is not None and facts.record is not None else None
    return turn is not None and turn.is_over
