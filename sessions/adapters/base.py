"""What an adapter is: facts about one kind of agent, as data. Configuration overrides each field on its own."""

from dataclasses import dataclass
from typing import Literal

from coordinate_agents.sessions.model import Delivery, Driver

CommitBy = Literal["agent", "runtime", "auto"]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One kind of agent.

    `command` None: configuration must name one. `args` are for a one-shot turn and may contain templates (see
    `prompt`); `permission_args` are put before them, by the configured permission mode. `commit` is the default for who
    commits: a sandboxed agent often cannot write to the repository's git folder from a linked worktree. `needs` names
    variables without which the agent cannot log in (any one of them, or a login of its own, is enough).
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    delivery: Delivery = "argument"
    driver: Driver = "pty"
    commit: CommitBy = "agent"
    permission_args: tuple[tuple[str, tuple[str, ...]], ...] = ()
