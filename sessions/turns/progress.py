"""Whether a turn gets on: heartbeats, and for how long nothing came. Pure; times are monotonic seconds.

What we ourselves say to an agent is no progress, and time in which it waits for a person is no silence.
"""

from typing import Final, NamedTuple

# One durable write per Session in so much time says that a turn lives.
HEARTBEAT_S: Final = 30.0


class Pulse(NamedTuple):
    """`progressed_at`: when something last came, moved on by the time that a person was waited for."""

    progressed_at: float
    told_at: float | None = None
    waits_since: float | None = None

    def begun(self, now: float) -> "Pulse":
        """A turn began: the silence before it is none of its own."""
        return Pulse(now, self.told_at)

    def progressed(self, now: float) -> tuple["Pulse", bool]:
        """Something came; whether a heartbeat is due."""
        is_due = self.told_at is None or now - self.told_at >= HEARTBEAT_S
        return self._replace(progressed_at=now, told_at=now if is_due else self.told_at), is_due

    def waiting(self, now: float, *, is_waiting: bool) -> "Pulse":
        """Whether a person is waited for, from now on."""
        if is_waiting == (self.waits_since is not None):
            return self
        if is_waiting:
            return self._replace(waits_since=now)
        assert self.waits_since is not None
        return self._replace(progressed_at=self.progressed_at + now - self.waits_since, waits_since=None)

    def silent_s(self, now: float) -> float:
        """For how long nothing came, as far as that says anything."""
        return (self.waits_since if self.waits_since is not None else now) - self.progressed_at
