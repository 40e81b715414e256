"""The exceptions of this package. Codes are those of the product's contract, so that callers can pass them on."""

from dataclasses import dataclass


@dataclass(slots=True)
class SessionError(Exception):
    """What happened, what was kept, what to do next."""

    code: str
    message: str
    kept: str | None = None
    next: str | None = None

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        return self.message


class HostDiedError(SessionError):
    """A host was ended from outside: nobody's verdict about what ran in it. What it left has been ended."""
