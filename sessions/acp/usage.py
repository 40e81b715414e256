"""What an agent says of the tokens and the money that a turn took, as numbers. Nothing is guessed: what it does not say
is None, and nonsense too.

The result of a prompt may carry `usage` (schema: Usage, not stable yet), or what gemini puts into `_meta`. An update of
the kind `usage_update` tells the money of the whole session so far; its `used` is the size of the context, which is no
usage. Runs in hosts: stdlib only.
"""

from coordinate_agents.sessions.acp.framing import Message

# Beyond these somebody says nonsense.
_MAX_TOKENS = 10**12
_MAX_COST = 10.0**6


class Cost:
    """The money of a session, of which each turn has its part."""

    def __init__(self) -> None:
        # None: a session that was taken up, whose earlier money nobody told.
        self._told: float | None = 0.0
        self._counted: float | None = 0.0

    def take_up(self) -> None:
        """It has a past: what that took is known only if it is told before the first turn."""
        self._told = self._counted = None

    def hear(self, update: Message, *, is_past: bool) -> None:
        """An update of a turn, or one about what was before (`is_past`)."""
        cost = update.get("cost")
        if update.get("sessionUpdate") != "usage_update" or not isinstance(cost, dict):
            return
        amount = _number(cost.get("amount"), _MAX_COST)
        if amount is not None and cost.get("currency") == "USD":
            self._told = amount
            if is_past:
                self._counted = amount

    def part(self) -> float | None:
        """What came since the last part was taken; None when that is not known."""
        before, self._counted = self._counted, self._told
        if before is None or self._told is None or self._told <= before:
            return None
        return self._told - before


def said(result: Message) -> dict[str, int]:
    """The fields of a `model.Usage` that the result of a prompt gives."""
    usage = result.get("usage")
    if isinstance(usage, dict):
        read, written = _tokens(usage, "cachedReadTokens"), _tokens(usage, "cachedWriteTokens")
        found = {
            "input_tokens": _sum(_tokens(usage, "inputTokens"), read, written),
            "cached_tokens": read,
            "output_tokens": _sum(_tokens(usage, "outputTokens"), _tokens(usage, "thoughtTokens")),
        }
    else:
        counts = _dict(_dict(_dict(result.get("_meta")).get("quota")).get("token_count"))
        found = {"input_tokens": _tokens(counts, "input_tokens"), "output_tokens": _tokens(counts, "output_tokens")}
    return {name: count for name, count in found.items() if count is not None}


def _sum(first: int | None, *more: int | None) -> int | None:
    return None if first is None else first + sum(each or 0 for each in more)


def _tokens(fields: Message, name: str) -> int | None:
    found = _number(fields.get(name), _MAX_TOKENS)
    return None if found is None else int(found)


def _number(value: object, limit: float) -> float | None:
    """Booleans are no numbers, and NaN compares to nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limit:
        return None
    return float(value)


def _dict(value: object) -> Message:
    return value if isinstance(value, dict) else {}
