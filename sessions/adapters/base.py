"""What an adapter is: facts about one kind of agent, as data. Configuration overrides each field on its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from coordinate_agents.sessions.model import Delivery, Driver

CommitBy = Literal["agent", "runtime", "auto"]
Permissions = Literal["ask", "edits", "allow", "deny"]

# Nobody can answer a one-shot agent, and one that may not write cannot do its work.
DEFAULT_PERMISSIONS: Final[Permissions] = "edits"


@dataclass(frozen=True, slots=True)
class Adapter:
    """One kind of agent.

    `command` None: configuration must name one. The arguments of a one-shot turn are `subcommand`, the flags of the
    permission mode, and `args`, which may contain templates (see `prompt`). A mode that `permissions` does not name
    adds nothing: the agent's own settings decide. `commit` is the default for who commits: an agent whose sandbox
    ends at its worktree cannot write to the repository's git folder ("runtime").
    """

    name: str
    command: str | None = None
    subcommand: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    permissions: Mapping[Permissions, tuple[str, ...]] = field(default_factory=dict)
    delivery: Delivery = "argument"
    driver: Driver = "pty"
    commit: CommitBy = "agent"

    def arguments(self, permissions: str | None) -> tuple[str, ...]:
        """Everything after the command, for a permission mode; None: the default mode."""
        flags = {
            mode: words for mode, words in self.permissions.items() if mode == (permissions or DEFAULT_PERMISSIONS)
        }
        return (*self.subcommand, *(word for words in flags.values() for word in words), *self.args)
