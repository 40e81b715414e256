"""What an act answers to the request that asked for it: with the events that it caused, or as a refusal."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.rows import RequestResult
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.worktrees.errors import WorktreeError

# The answers to be stored with the events; none when there was no request.
Answers = Callable[[Mapping[str, Any]], Sequence[RequestResult]]


class Act(Protocol):
    """A decision of a person, carried out by the driver or under the lease: all of it is recorded, or nothing.

    `asked` is plain data, as the request carries it. Raises: GraphError; then nothing was changed.
    """

    def __call__(
        self, engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = ...
    ) -> Awaitable[Mapping[str, Any]]: ...


def no_answers(told: Mapping[str, Any]) -> Sequence[RequestResult]:
    """Nobody asked by a request."""
    return ()


def refusal(request_id: int, error: GraphError | WorktreeError | SessionError) -> RequestResult:
    """The error as the driver's answer: its sentences cross to who asked."""
    told: dict[str, Any] = {"code": error.code, "kept": error.kept, "next": error.next}
    if isinstance(error, GraphError):
        told |= {"stage": error.stage, "facts": dict(error.facts)}
    return RequestResult(request_id, "refused", error.message, told)
