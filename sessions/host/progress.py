"""Tells progress from a spinner: output counts only when it says something that was not said a moment ago.

An agent that is stuck on a rate limit redraws one line for hours. Lines are compared by their letters alone, so a
turning symbol, a counter or a clock is no progress.
"""

import re

from coordinate_agents.sessions.plain import decode, plain

_REMEMBERED = 64
# More than this at once is never a redrawn line.
_LARGE_BYTES = 8192
_NOT_LETTERS = r"[\W\d_]+"


class Progress:
    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def is_new(self, data: bytes) -> bool:
        if len(data) > _LARGE_BYTES:
            return True
        is_new = False
        for line in plain(decode(data)).split("\n"):
            letters = re.sub(_NOT_LETTERS, "", line)
            if letters:
                is_new |= letters not in self._said
                self._said.pop(letters, None)
                self._said[letters] = None
        while len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]
        return is_new
