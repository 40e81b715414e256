"""What an agent printed about the tokens and the money that a turn took, found by its adapter's rules.

Pure matching on text. It is what the agent says, unverified: for people to read, never a reason for anything.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from coordinate_agents.sessions.adapters.base import UsageField, UsageRule
from coordinate_agents.sessions.model import Usage

# Beyond these somebody prints nonsense.
MAX_TOKENS: Final = 10**12
MAX_COST_USD: Final = 10.0**6
_NUMBER: Final = re.compile(r"(\d[\d,]{0,20}(?:\.\d{1,12})?(?:e-?\d{1,2})?)([kM]?)")
_SCALES: Final = {"": 1.0, "k": 1e3, "M": 1e6}


def find_usage(text: str, rules: Sequence[UsageRule]) -> Usage | None:
    """By the first rule of which something is found; None when nothing is said."""
    for rule in rules:
        found = [_read(line, rule) for line in _lines(text, rule)]
        said = [each for each in found if any(value is not None for value in each.values())]
        if said:
            joined = {key: _joined([each[key] for each in said], rule) for key in said[0]}
            return _usage(joined, is_of_conversation=rule.is_of_conversation)
    return None


def _lines(text: str, rule: UsageRule) -> Iterator[str]:
    at = 0
    while (match := re.compile(rule.line).search(text, at)) is not None:
        end = text.find(rule.end, match.end())
        at = len(text) if end < 0 else end
        yield text[match.start() : at]


def _read(line: str, rule: UsageRule) -> dict[UsageField, float | None]:
    """Of each field the sum of its patterns' numbers in the line."""
    return {key: _joined([_number(line, pattern) for pattern in patterns]) for key, patterns in rule.fields.items()}


def _number(line: str, pattern: str) -> float | None:
    match = re.search(pattern + _NUMBER.pattern, line)
    if match is None:
        return None
    return float(match[1].replace(",", "")) * _SCALES[match[2]]


def _joined(numbers: Sequence[float | None], rule: UsageRule | None = None) -> float | None:
    known = [each for each in numbers if each is not None]
    if not known:
        return None
    return known[-1] if rule is not None and rule.is_running_total else sum(known)


def _usage(found: dict[UsageField, float | None], *, is_of_conversation: bool) -> Usage | None:
    tokens = {
        f"{key}_tokens": round(count)
        for key, count in found.items()
        if key != "cost" and count is not None and count <= MAX_TOKENS
    }
    cost = found.get("cost")
    cost = None if cost is None or cost > MAX_COST_USD else cost
    if not tokens and cost is None:
        return None
    return Usage(**tokens, cost_usd=cost, is_of_conversation=is_of_conversation)
