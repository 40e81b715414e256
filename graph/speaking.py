"""Turns over the Agent Client Protocol: the agent's host says when one is over, and its word proves nothing.

The process stays over all turns of an attempt, as that of an interactive agent does. What its turns came to is put in
the words of the record here.
"""

from typing import Final

from coordinate_agents.graph.config import Config
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import Choice
from coordinate_agents.graph.ports import Agents
from coordinate_agents.graph.runs import TaskRun
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.model import Question, SessionEnd, SessionFacts, SessionId
from coordinate_agents.sessions.turns.model import TurnId, TurnOutcome

# The agent says that its turn is over: a trigger to look at its work.
ENDED: Final = "turn-ended"
# It was asked to stop; it said that it will not do this; something in it or on the way to it failed.
CANCELLED: Final = "cancelled"
REFUSED: Final = "refused"
FAILED: Final = "failed"
# More than any agent offers; what it says is foreign, and the record is kept for good.
_MAX_CHOICES: Final = 10
_MAX_NAME: Final = 200


def is_spoken(agent: ResolvedAgent | None) -> bool:
    return agent is not None and agent.driver == "acp"


def turn_id(turn: int) -> TurnId:
    """The turn's id in its Session, where it is never used twice: a Session belongs to one attempt."""
    return TurnId(f"t{turn}")


def require_driver(agents: Agents, config: Config, name: str) -> None:
    """Raise UNSUPPORTED_CAPABILITY or INVALID_ADAPTER_CONFIG now for a driver that the agent could never have.

    Only where one is configured: what else is wrong with an agent is seen when its program is looked for.
    """
    agent = config.agent(name)
    if agent is not None and "acp" in (agent.driver, agent.adapter):
        agents.require_supported(config.settings_of(name))


def cause_of_outcome(outcome: TurnOutcome) -> tuple[str, str]:
    """The cause for the record of a turn whose process stays, and what the agent said of it."""
    return _cause(outcome.kind, outcome.stop_reason, outcome.message)


def _cause(kind: str, stop_reason: str, said: str) -> tuple[str, str]:
    if kind == "cancelled":
        return CANCELLED, said
    if kind == "failed":
        return FAILED, said
    if stop_reason == "refusal":
        return REFUSED, "it refused"
    return ENDED, "" if stop_reason == "end_turn" else f"it stopped: {stop_reason or 'without a reason'}"


async def cause_of_exit(context: Context, run: TaskRun, end: SessionEnd) -> tuple[str, str | None]:
    """Why the turn is over whose process ended: exit code 0 in the middle of one is no success, and an end is one."""
    turn = await context.sessions.turn_end(SessionId(run.session or ""), turn_id(run.turn))
    if end.cause == "unused" or (end.cause == "exit" and turn.state == "ended"):
        kind = "cancelled" if turn.was_cancelled else turn.state
        return _cause(kind, turn.stop_reason, turn.error)
    if end.cause == "exit" and end.exit_code == 0:
        return FAILED, turn.error
    return end.cause, end.error


def asked_words(question: Question) -> str:
    """What is asked and how it can be answered, on one line; each option by the id that `session-answer` takes."""
    options = ", ".join(f"{option.id} ({option.name})" for option in question.options)
    asked = question.text.split("\n", 1)[0]
    return f"{asked} [{options}]"


def choices_of(question: Question) -> tuple[Choice, ...]:
    """The answers that it offers, those for this once first. Empty for what a screen shows."""
    once = sorted(question.options, key=lambda option: not option.kind.endswith("_once"))
    return tuple(Choice(option.id, option.name[:_MAX_NAME]) for option in once[:_MAX_CHOICES])


def is_over(run: TaskRun, facts: SessionFacts | None) -> bool:
    """Whether the run's turn came to its end while nobody watched it."""
    turn = facts.record.turn_named(turn_id(run.turn)) if facts is not None and facts.record is not None else None
    return turn is not None and turn.is_over
