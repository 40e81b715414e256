"""The one exception of this package. Codes are those of the product's contract, so that callers can pass them on."""

from dataclasses import dataclass


@dataclass(slots=True)
class WorktreeError(Exception):
    """What happened, what was kept, what to do next."""

    code: str
    message: str
    kept: str | None = None
    next: str | None = None

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        return self.message
