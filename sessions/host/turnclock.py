"""The time of the present turn, or of the rest between two: when a deadline passes, and when none runs.

Seconds awake. Time in which a person has to answer, works in the folder or sits at a joined terminal counts in none.
"""

from coordinate_agents.sessions.host.limits import Limits
from coordinate_agents.sessions.host.progress import Progress


class TurnClock:
    """`due` says what has passed: timeout, unused (between turns), idle (to be ended for it), stalled, or nothing."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self.is_between_turns = False
        self.is_stalled = False
        self._progress = Progress()
        self.begin(now)

    def begin(self, now: float) -> None:
        """Everything counts from now on."""
        self._began_at = self._progressed_at = now
        self._paused_at: float | None = None
        self._paused_s = 0.0

    def set_turn(self, fields: "dict[str, object]", now: float) -> None:
        """The turn is over, or another one begins, with limits of its own."""
        self.limits = self.limits.of_turn(fields)
        self.is_between_turns = bool(fields.get("is_over"))
        self.is_stalled = False
        self.begin(now)

    def change(self, fields: "dict[str, object]", now: float) -> bool:
        """Other limits for the present turn, from its beginning on. Whether it is stalled no more by them."""
        if self.is_between_turns:
            return False
        self.limits = self.limits.of_turn(fields)
        idle = self.limits.idle_timeout_s
        return self.is_stalled and (idle is None or now < self._progressed_at + idle)

    def quiet_s(self, now: float) -> "float | None":
        """For how long there was no progress, waits for a person left out; None where nobody looks for any."""
        if self.limits.idle_timeout_s is None:
            return None
        return (now if self._paused_at is None else self._paused_at) - self._progressed_at

    def age_ms(self, now: float) -> int:
        return round((now - self._began_at) * 1000)

    def pause(self, is_paused: bool, now: float) -> None:
        if is_paused and self._paused_at is None:
            self._paused_at = now
        elif not is_paused and self._paused_at is not None:
            self._paused_s += now - self._paused_at
            self._progressed_at += now - self._paused_at
            self._paused_at = None

    def next_time(self) -> float:
        """When to ask `due` again."""
        limits, times = self.limits, [float("inf")]
        if self._paused_at is None and limits.timeout_s is not None:
            times.append(self._began_at + self._paused_s + limits.timeout_s)
        if self._paused_at is None and limits.idle_timeout_s is not None and not self.is_stalled:
            times.append(self._progressed_at + limits.idle_timeout_s)
        return min(times)

    def due(self, now: float) -> str:
        limits = self.limits
        if self._paused_at is not None:
            return ""
        if limits.timeout_s is not None and now >= self._began_at + self._paused_s + limits.timeout_s:
            return "unused" if self.is_between_turns else "timeout"
        if limits.idle_timeout_s is None or now < self._progressed_at + limits.idle_timeout_s:
            return ""
        if limits.stop_on_idle:
            return "idle"
        return "" if self.is_stalled else "stalled"

    def wants_progress(self, now: float) -> bool:
        """Whether output is looked at now: once a second at most while it goes on, so that a flood stays cheap."""
        return self.limits.idle_timeout_s is not None and (self.is_stalled or now >= self._progressed_at + 1.0)

    def is_progress(self, data: bytes, now: float) -> bool:
        """Whether this output is any, at a time when some is wanted."""
        if not self._progress.is_new(data):
            return False
        self._progressed_at = now
        return True
