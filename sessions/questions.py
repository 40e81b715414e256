"""What a program's plain output says: ready for a prompt, asking something, done with its turn, refused by its service.

Pure matching on text with an adapter's patterns; nothing is read or typed here. What is found is a reason to show a
question, to wait, or to look at the worktree: never proof of anything.
"""

import re
from collections.abc import Sequence
from typing import Final

from coordinate_agents.sessions.adapters.base import Interactive, LimitCode, LimitRule
from coordinate_agents.sessions.model import QuestionKind, QuestionRule
from coordinate_agents.worktrees.values import value_class

# Patterns are looked for in this much of the end of the output.
MAX_TEXT: Final = 4096
MAX_SCREEN: Final = 64 << 10
# What programs draw before a line of theirs.
_FRAME: Final = " \t\xa0│┃|•●■▲⎿⚠✗✻>›❯!"
_QUESTION_LINES: Final = 12
_QUESTION_CHARACTERS: Final = 600
# A refusal that ended a turn without an error stands at the very end: so many lines are looked at. Of a program that
# stays its composer stands below it, and what it prints when it is closed.
_CLOSING_LINES: Final = 6
_LINES_WITH_COMPOSER: Final = 14
# A refusal that is all that a turn says is a sentence or two.
_ONLY_CHARACTERS: Final = 500


@value_class
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
    """The last lines that say something, at most 12 and 600 characters; frames of dialogs say nothing."""
    lines = [line.strip() for line in text.splitlines() if any(letter.isalnum() for letter in line)]
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
            return Limit(rule.code, line[:300], _retry_time(end[start:], now))
    return None


def find_closing_limit(
    text: str, rules: Sequence[LimitRule], *, now: float, has_composer: bool = False
) -> Limit | None:
    """As `find_limit`, of a turn that ended without an error: only the program's own words (`LimitRule.said`), only at
    the beginning of one of the last lines that say something. An agent may well write about limits of rates.
    """
    lines = [line.strip(_FRAME) for line in text[-MAX_TEXT:].splitlines()]
    count = _LINES_WITH_COMPOSER if has_composer else _CLOSING_LINES
    lines = [line for line in lines if any(letter.isalpha() for letter in line)][-count:]
    for at, line in enumerate(lines):
        for rule in rules:
            if rule.said and re.match(rule.said, line):
                return Limit(rule.code, line[:300], _retry_time("\n".join(lines[at:]), now))
    return None


def find_only_limit(text: str, rules: Sequence[LimitRule], *, now: float) -> Limit | None:
    """As `find_limit`, of what an agent said that speaks the protocol: a turn that called no tool and said little else.

    Some end such a turn as if nothing were wrong. An agent that did its work says more, or used a tool for it.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("[turn ")]
    words = "\n".join(lines)
    if len(words) > _ONLY_CHARACTERS or any(line.startswith("[tool] ") for line in lines):
        return None
    return find_limit(words, rules, now=now)


def external_session(text: str, pattern: str) -> str | None:
    """The id of the agent's own conversation, as it printed it; None when it did not."""
    match = re.search(pattern, text) if pattern else None
    return match[1] if match is not None else None


def _retry_time(text: str, now: float) -> float | None:
    from coordinate_agents.sessions.retry_times import retry_time  # calendars and zones, where one is named

    return retry_time(text, now=now)
