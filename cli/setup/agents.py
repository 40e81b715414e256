"""What the configuration makes of every agent: the command that would be started, or why it could not be."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coordinate_agents.graph import config_document
from coordinate_agents.graph.config import ADAPTER_NAMES, AgentConfig, Config
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.sessions.adapters.base import DEFAULT_PERMISSIONS
from coordinate_agents.sessions.agent import ResolvedAgent
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.launch import Agents
from coordinate_agents.worktrees.values import value_class


@value_class
class Field:
    """A setting in force and who set it: "project", "user" or the adapter. Of `env` only the names are told."""

    value: object
    source: str


@value_class
class Looked:
    """One agent. `command` is the resolved executable, None when there is `error`; `source` who named it.

    `fields` is every setting in force under its name in the file, in the file's order.
    """

    agent: str
    adapter: str
    configured: bool
    command: str | None = None
    source: str | None = None
    error: str | None = None
    next: str | None = None
    code: str | None = None
    fields: tuple[tuple[str, Field], ...] = ()


def look_at_agents(config: Config, root: Path) -> Iterator[Looked]:
    """Every configured agent, then the adapters that are agents without any configuration, in name order."""
    agents = Agents(root, root=str(root))
    configured = {agent.name for agent in config.agents}
    for name in [*sorted(configured), *sorted(set(ADAPTER_NAMES) - configured - {"generic"})]:
        yield _look(agents, config, name, configured=name in configured)


def with_found(config: Config, root: Path) -> Config:
    """The configuration with the agents that are found without any, where nothing says which one is meant."""
    if config.agents or config.default_agent is not None:
        return config
    agents = Agents(root, root=str(root))
    found = [
        name for name in config.names_without_configuration() if _look(agents, config, name, configured=False).command
    ]
    return replace(config, found=tuple(sorted(found)))


def fields_json(looked: Looked) -> dict[str, dict[str, object]]:
    """`{name: {value, source}}`."""
    return {name: {"value": field.value, "source": field.source} for name, field in looked.fields}


def _look(agents: Agents, config: Config, name: str, *, configured: bool) -> Looked:
    try:
        settings = config.settings_of(name)
    except GraphError as error:
        return Looked(name, "", configured, error=str(error), next=error.next, code=error.code)
    try:
        found = agents.resolve(settings)
    except SessionError as error:
        return Looked(name, settings.adapter, configured, error=str(error), next=error.next, code=error.code)
    agent = config.agent(name)
    assert agent is not None
    return Looked(
        name,
        found.adapter,
        configured,
        found.executable.path,
        found.executable.source,
        fields=tuple(_fields(agent, found)),
    )


def _fields(agent: AgentConfig, found: ResolvedAgent) -> Iterator[tuple[str, Field]]:
    """What is in force: the configured value where there is one, else the adapter's."""
    values = {
        "adapter": found.adapter,
        "command": found.executable.asked,
        "args": list(found.args),
        "resumeArgs": None if found.resume_args is None else list(found.resume_args),
        "mode": agent.mode or "oneshot",
        "delivery": found.delivery,
        "driver": found.driver,
        "permissions": agent.permissions or DEFAULT_PERMISSIONS,
        "commit": agent.commit or found.commit_by,
        "env": sorted(found.env),
    }
    for name, value in values.items():
        source = agent.sources.get(config_document.field_of(name))
        if source is None:
            source = "name" if name == "adapter" else f"adapter {found.adapter}"
        if value not in (None, []):
            yield name, Field(value, source)
