"""What a program's plain output says: ready for a prompt, asking something, done with its turn, refused by its service.

Pure matching on text with an adapter's patterns; nothing is read or typed here. What is found is a reason to show a
question, to wait, or to look at the worktree: never proof of anything.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from coordinate_agents.sessions.adapters.base import Interactive, LimitCode, LimitRule
from coordinate_agents.sessions.model import QuestionKind, QuestionRule

# Patterns are looked for in this much of the end of the output.
MAX_TEXT: Final = 4096
MAX_SCREEN: Final = 64 << 10
_QUESTION_LINES: Final = 12
_QUESTION_CHARACTERS: Final = 600
# A longer wait than this is not believed; the service is asked again before.
MAX_RETRY_S: Final = 7 * 24 * 3600.0

_AMOUNT = (
    r"(\d{1,6}(?:\.\d{1,6})?)\s*"
    r"(d|day|days|h|hr|hrs|hour|hours|m|min|mins|minute|minutes|s|sec|secs|second|seconds)\b"
)
_RETRY_IN = re.compile(
    r"(?i)(?:try again|retry|retrying|resets?|wait|available)(?: again)?(?: in| after)?:?\s+"
    rf"((?:{_AMOUNT}[,\s]*(?:and\s+)?){{1,4}})"
)
_RETRY_AFTER = re.compile(r"(?i)retry[- ]after\"?[:=\s]+\"?(\d{1,6})\b")
_RETRY_EPOCH = re.compile(r"(?i)limit reached\|(\d{10})\b")
_ONE_AMOUNT = re.compile(rf"(?i){_AMOUNT}")
_UNIT_S: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Limit:
    """A service refused. `retry_at`: when it said it will take more, in seconds since the epoch; None: it did not."""

    code: LimitCode
    line: str
    retry_at: float | None


def find_question(text: str, rules: Sequence[QuestionRule]) -> tuple[QuestionKind, str] | None:
    """The first rule that fits, and the question as a person would read it; None when nothing is asked."""
    end = text[-MAX_TEXT:]
    kind = next((rule.kind for rule in rules if re.search(rule.pattern, end)), None)
    return None if kind is None else (kind, question_text(end))


def question_text(text: str) -> str:
    """The last lines that show something, at most 12 and 600 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_QUESTION_LINES:])[-_QUESTION_CHARACTERS:]


def is_ready(text: str, patterns: Sequence[str]) -> bool:
    """Whether a prompt may be typed now. Without patterns always."""
    return not patterns or any(re.search(pattern, text[-MAX_TEXT:]) for pattern in patterns)


def is_idle(screen: str, rules: Interactive) -> bool:
    """Whether the screen looks as if the turn were over; False without patterns."""
    end = screen[-MAX_SCREEN:]
    if any(re.search(pattern, end) for pattern in rules.busy):
        return False
    return any(re.search(pattern, end) for pattern in rules.idle)


def find_limit(text: str, rules: Sequence[LimitRule], *, now: float) -> Limit | None:
    """Why the agent's service refused, from the end of a failed turn's output; None when it did not."""
    end = text[-MAX_TEXT:]
    for rule in rules:
        match = re.search(rule.pattern, end)
        if match is not None:
            start, stop = end.rfind("\n", 0, match.start()) + 1, end.find("\n", match.end())
            line = end[start : stop if stop >= 0 else len(end)].strip()
            return Limit(rule.code, line[:300], retry_time(end[start:], now=now))
    return None


def retry_time(text: str, *, now: float) -> float | None:
    """When the text says to come back, as seconds since the epoch; None when it does not say so."""
    if (match := _RETRY_EPOCH.search(text)) is not None:
        seconds = float(match[1]) - now
    elif (match := _RETRY_AFTER.search(text)) is not None:
        seconds = float(match[1])
    elif (match := _RETRY_IN.search(text)) is not None:
        seconds = sum(float(n) * _UNIT_S[unit[0].lower()] for n, unit in _ONE_AMOUNT.findall(match[1]))
    else:
        return None
    return now + min(max(seconds, 0.0), MAX_RETRY_S)


def external_session(text: str, pattern: str) -> str | None:
    """The id of the agent's own conversation, as it printed it; None when it did not."""
    match = re.search(pattern, text) if pattern else None
    return match[1] if match is not None else None
