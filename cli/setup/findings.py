"""One thing that the doctor looked at."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` was looked at, what there is to say, and the next step where something is wrong."""

    level: Level
    what: str
    said: str
    next: str | None = None
