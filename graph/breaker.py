"""Which agents are held because their service refuses: one breaker per agent, folded from the runs. Pure.

Rule: while one subtask of an agent waits for its service, nothing of that agent starts; other agents go on. The problem
this causes: when the time has come, all that waited would run into the same limit at once. Next rule: one of them goes
first, and the others follow once it got through, which is when its turn ended or has worked for a while.
"""

from collections.abc import Mapping

from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import TaskRun


class Breaker:
    """`see` every run that changed; `paused` is what `schedule.Limits.paused_agents` wants."""

    def __init__(self) -> None:
        # Subtask → its agent and why that is held.
        self._holding: dict[SubtaskId, tuple[str, str]] = {}

    def see(self, run: TaskRun) -> bool:
        """Take over what changed; whether the paused agents may have."""
        before = self._holding.pop(run.id, None)
        reason = _reason(run)
        if reason is not None and run.agent is not None:
            self._holding[run.id] = (run.agent, reason)
        return before != self._holding.get(run.id)

    def paused(self) -> Mapping[str, str]:
        """Agent to reason, of the subtask with the lowest id that holds it."""
        return {agent: reason for _, (agent, reason) in sorted(self._holding.items(), reverse=True)}


def _reason(run: TaskRun) -> str | None:
    """Why the run holds its agent; None when it does not."""
    if run.state != "running" or run.limited_since is None:
        return None
    if run.phase == "throttled":
        # What waits for a slot has waited long enough: its agent is free for it.
        return None if run.can_go_on else run.reason or "its service refuses"
    return f"{run.id} tries whether its service takes more"
