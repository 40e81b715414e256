"""What the configuration makes of every agent: the command that would be started, or why it could not be."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coordinate_agents.graph.config import ADAPTER_NAMES, Config
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.launch import Agents


@dataclass(frozen=True, slots=True)
class Looked:
    """One agent. `command` is the resolved executable, None when there is `error`; `source` who named it."""

    agent: str
    adapter: str
    configured: bool
    command: str | None = None
    source: str | None = None
    error: str | None = None
    next: str | None = None


def look_at_agents(config: Config, root: Path) -> Iterator[Looked]:
    """Every configured agent, then the adapters that are agents without any configuration, in name order."""
    agents = Agents(root, root=str(root))
    configured = {agent.name for agent in config.agents}
    for name in [*sorted(configured), *sorted(set(ADAPTER_NAMES) - configured - {"generic"})]:
        yield _look(agents, config, name, configured=name in configured)


def _look(agents: Agents, config: Config, name: str, *, configured: bool) -> Looked:
    try:
        settings = config.settings_of(name)
    except GraphError as error:
        return Looked(name, "", configured, error=str(error), next=error.next)
    try:
        found = agents.resolve(settings)
    except SessionError as error:
        return Looked(name, settings.adapter, configured, error=str(error), next=error.next)
    return Looked(name, found.adapter, configured, found.executable.path, found.executable.source)
