"""One thing that the doctor looked at."""

from typing import Literal

from coordinate_agents.worktrees.values import value_class

Level = Literal["ok", "warn", "error"]


@value_class
class Finding:
    """`what` was looked at, what there is to say, and the next step where something is wrong."""

    level: Level
    what: str
    said: str
    next: str | None = None
