"""Whether the child asks something and waits: by its adapter's patterns, or because it is blocked reading its terminal.

Looked at when the child has been silent for a moment, on the end of what it printed since something was last typed: a
question that was answered still stands in the output. A question is a fact for whoever looks; it is never answered
here.
"""

import os
import re
import time

from coordinate_agents.sessions import process
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.plain import tail

# Output that pauses for so long may be a question.
QUIET_S = 0.3
_RAW_BYTES = 8 << 10
_SHOWN_BYTES = 1 << 10
# In these Enter means yes, or sends a password: only who answers them may type into them.
DIALOGS = frozenset({"trust", "login", "permission"})
# Source: the kernel's table of system calls: read(2).
_READ_CALL = {"x86_64": "0", "aarch64": "63"}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinate_agents.sessions.host.inputs import Input

    Asked = dict[str, object]


class Asking:
    """`question` is what the child asks now, None when nothing. `look` brings it up to date."""

    def __init__(self, output: Output, fields: "dict[str, object]") -> None:
        self._output = output
        rules = fields.get("questions")
        self._rules: list[dict[str, object]] = rules if isinstance(rules, list) else []
        silent = fields.get("silent_s", 0.0)
        self._silent_s = float(silent) if isinstance(silent, int | float) else 0.0
        self._typed_total = 0
        self._next = float("inf")
        self._changed_at = 0.0
        self._is_resting = False
        self.terminal: Input | None = None
        self.question: Asked | None = None

    def printed(self, now: float) -> None:
        if self._rules or self._silent_s > 0:
            self._changed_at = now
            self._next = now + QUIET_S

    def started(self, now: float) -> None:
        self.printed(now)

    def rest(self, now: float, *, is_resting: bool) -> None:
        """Between two turns a program waits for the next one: that is no question. What stands there is past."""
        self._is_resting = is_resting
        self.question = None
        self._typed_total = self._output.total
        if not is_resting:
            self.printed(now)

    def typed(self) -> None:
        """Something was typed: what stands there now is answered, rightly or not."""
        self._typed_total = self._output.total
        now = time.monotonic()
        self.printed(now)
        # At once, not when it is quiet again: a second answer to the same question must find it gone.
        self._next = min(self._next, now)

    def dialog(self, typed: bytes = b"") -> str:
        """The kind of dialog that stands there now, whether it was noticed before or not; empty when none does.

        `typed`: what was typed meanwhile; words of its own, which the program shows, are none of a dialog's.
        """
        if self._is_resting:
            return ""
        text, own = self._text(), typed.decode("utf-8", "replace")
        for rule in self._rules:
            pattern = str(rule["pattern"])
            if rule.get("kind") in DIALOGS and re.search(pattern, text) and not (own and re.search(pattern, own)):
                self._next = 0.0  # it is told now
                return str(rule["kind"])
        return ""

    @property
    def next_time(self) -> float:
        return self._next

    def look(self, now: float) -> bool:
        """Whether the question changed."""
        if now < self._next:
            return False
        self._next = float("inf")
        if self._is_resting:
            return False
        before = self.question
        text = self._text()
        rule = next((one for one in self._rules if re.search(str(one["pattern"]), text)), {})
        kind = rule.get("kind")
        if kind is None and self._silent_s > 0:
            if now < self._changed_at + self._silent_s:
                self._next = self._changed_at + self._silent_s
            elif self.terminal is not None and is_reading(self.terminal):
                kind = "other"
            else:
                self._next = now + self._silent_s
        if kind is None:
            self.question = None
        elif before is None or before["kind"] != kind or before["text"] != _shown(text):
            keys = {"allow": rule.get("allow", ()), "deny": rule.get("deny", ())}
            self.question = {"kind": kind, "text": _shown(text), "since": time.time(), **keys}
        return self.question != before

    def _text(self) -> str:
        new = self._output.total - self._typed_total
        if new <= 0:
            return ""
        return self._output.end_text(min(new, _RAW_BYTES))


def is_reading(terminal: "Input") -> bool:
    """Whether a process of the foreground group is blocked reading a terminal. False where that cannot be seen."""
    group = terminal.foreground()
    if not terminal.has_modes or group is None:
        return False
    call = _READ_CALL.get(os.uname().machine)
    for one in process.descendants(os.getpid(), process.every()):
        if one.group != group or call is None:
            continue
        try:
            with open(f"/proc/{one.pid}/syscall", encoding="ascii") as file:  # noqa: PTH123
                words = file.read().split()
            if words[0] == call and _is_terminal(one.pid, int(words[1], 16)):
                return True
        except (OSError, ValueError, IndexError):
            continue
    return False


def _is_terminal(pid: int, descriptor: int) -> bool:
    name = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115
    return name.startswith(("/dev/pts/", "/dev/tty"))


def _shown(text: str) -> str:
    return tail(text.encode("utf-8", "replace"), _SHOWN_BYTES)
