"""What the turns of a subtask took, as its agents said: the sum, in which no turn counts twice. Pure."""

from dataclasses import replace
from typing import TypeVar

from coordinate_agents.sessions.model import Usage
from coordinate_agents.worktrees.values import value_class

Number = TypeVar("Number", int, float)


@value_class
class Used:
    """`total` of `turns` turns that said something; None: none did.

    `earlier` is what had been used before the present conversation: an agent that tells its conversation's running
    total is not added to what it said the turn before.
    """

    total: Usage | None = None
    turns: int = 0
    earlier: Usage | None = None

    def after(self, usage: Usage, *, continues: bool) -> "Used":
        """With one turn more. `continues`: it went on with the conversation of the turn before."""
        if not usage.is_of_conversation:
            total = _both(self.total, usage)
            return Used(total, self.turns + 1, total)
        earlier = self.earlier if continues else self.total
        return Used(_both(earlier, replace(usage, is_of_conversation=False)), self.turns + 1, earlier)


def _both(first: Usage | None, second: Usage) -> Usage:
    if first is None:
        return second
    return Usage(
        _sum(first.input_tokens, second.input_tokens),
        _sum(first.cached_tokens, second.cached_tokens),
        _sum(first.output_tokens, second.output_tokens),
        _sum(first.total_tokens, second.total_tokens),
        _sum(first.cost_usd, second.cost_usd),
    )


def _sum(first: Number | None, second: Number | None) -> Number | None:
    """What neither said stays unsaid."""
    if first is None or second is None:
        return second if first is None else first
    return first + second
