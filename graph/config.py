"""The configuration as values: agents, commands around a subtask, places. What the two files say, merged.

Frozen into the database when a graph is created or amended, so it has a JSON form; `config_document` makes it from
YAML. Nothing here reads a file, knows whether a file is trusted, or resolves a program.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import Any, Final, Literal

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import CommitBy
from coordinate_agents.sessions.agent import AgentSettings
from coordinate_agents.worktrees.values import value_class

# Adapters that the product knows; all but the last two are also agents of that name without any configuration.
ADAPTER_NAMES: Final = ("codex", "claude", "opencode", "gemini", "aider", "acp", "generic")
# Adapters that stand for any program: configuration must name it.
_WITHOUT_COMMAND: Final = ("generic", "acp")

Mode = Literal["oneshot", "interactive"]
Permissions = Literal["ask", "edits", "allow", "deny"]
NotifyOn = Literal["attention", "ended"]

LAST_PORT: Final = 65535
DEFAULT_COMMAND_TIMEOUT_S: Final = 10 * 60.0
DEFAULT_MIN_FREE_DISK_BYTES: Final = 2 << 30


@value_class
class AgentConfig:
    """One agent identity. None: the adapter's default. `adapter` None: the one of the agent's name, else generic.

    `env` is added to the agent's environment. `sources` says per field (Python name) which file set it: "project" or
    "user".
    """

    name: str
    adapter: str | None = None
    command: str | None = None
    args: tuple[str, ...] | None = None
    resume_args: tuple[str, ...] | None = None
    mode: Mode | None = None
    delivery: Literal["argument", "stdin", "file", "paste"] | None = None
    driver: Literal["pty", "pipe", "acp"] | None = None
    env: Mapping[str, str] | None = None
    permissions: Permissions | None = None
    commit: CommitBy | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@value_class
class Command:
    """A setup or teardown command, run in the worktree."""

    run: tuple[str, ...]
    timeout_s: float = DEFAULT_COMMAND_TIMEOUT_S


@value_class
class Ports:
    """Running subtask number n (from 0) gets the `size` ports from base + n * size on."""

    base: int
    size: int

    @property
    def last_block(self) -> int:
        """The highest number whose ports all exist."""
        return (LAST_PORT + 1 - self.base) // self.size - 1

    def first_of(self, number: int) -> int:
        return self.base + number * self.size


@value_class
class Notify:
    """A command of the user that is run on these occasions."""

    on: tuple[NotifyOn, ...]
    run: tuple[str, ...]


@value_class
class Config:
    """Everything configured. `agents` in name order. `copy` and `link` are paths in the user's checkout.

    `keep` holds patterns of ignored files that cleanup refuses to remove. `worktree_root` and `state_root` are None for
    the default places. `found`: adapters whose program is there, looked for only while no agent and no default agent is
    configured; in name order. `sources` says per field (Python name) which file set it: "project" or "user".
    """

    default_agent: str | None = None
    agents: tuple[AgentConfig, ...] = ()
    worktree_root: str | None = None
    state_root: str | None = None
    setup: tuple[Command, ...] = ()
    teardown: tuple[Command, ...] = ()
    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    ports: Ports | None = None
    notify: tuple[Notify, ...] = ()
    min_free_disk_bytes: int = DEFAULT_MIN_FREE_DISK_BYTES
    found: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def agent(self, name: str) -> AgentConfig | None:
        """The configured agent, or an adapter's own name as an agent; None when neither is known."""
        found = next((agent for agent in self.agents if agent.name == name), None)
        if found is None and name in ADAPTER_NAMES and name not in _WITHOUT_COMMAND:
            return AgentConfig(name)
        return found

    def only_agent(self) -> str | None:
        """That of a subtask that names none: `default_agent`, else the only one configured, else the only found."""
        if self.default_agent is not None:
            return self.default_agent
        names = [agent.name for agent in self.agents] or self.found
        return names[0] if len(names) == 1 else None

    @staticmethod
    def names_without_configuration() -> tuple[str, ...]:
        """The adapters that are agents of their own name, configured or not."""
        return tuple(name for name in ADAPTER_NAMES if name not in _WITHOUT_COMMAND)

    def settings_of(self, name: str) -> AgentSettings:
        """How the agent is started. Raises: INVALID_AGENT_CONFIG: no such agent, or nothing says what to start."""
        agent = self.agent(name)
        if agent is None:
            configured = ", ".join(each.name for each in self.agents) or "none"
            raise GraphError(
                "INVALID_AGENT_CONFIG",
                f"There is no agent {name!r}. Configured: {configured}. Known without configuration: "
                f"{', '.join(self.names_without_configuration())}.",
                next="coordinate-agents setup-discover",
                facts={"agent": name},
            )
        adapter = agent.adapter or (name if name in ADAPTER_NAMES else "generic")
        if agent.command is None and adapter in _WITHOUT_COMMAND:
            raise GraphError(
                "INVALID_AGENT_CONFIG",
                f"Agent {name!r} has no command, and the adapter {adapter} brings none. Write `command`, or the "
                "`adapter` of a known agent.",
                facts={"agent": name},
            )
        return AgentSettings(
            agent=name,
            adapter=adapter,
            command=agent.command,
            args=agent.args,
            resume_args=agent.resume_args,
            mode=agent.mode,
            delivery=agent.delivery,
            driver=agent.driver,
            env=agent.env or {},
            permissions=agent.permissions,
            sources=agent.sources,
        )


def merge(project: Config, user: Config) -> Config:
    """Both files as one, per field: the project's value where it has one, else the user's. Agents per field, too."""
    return Config(
        **_merged(project, user, skip=("agents",)),
        agents=tuple(
            _merge_agent(name, project, user)
            for name in sorted({agent.name for agent in (*project.agents, *user.agents)})
        ),
    )


def to_json(config: Config) -> str:
    """Canonical JSON: equal configurations give equal text."""
    return json.dumps(asdict(config), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> Config:
    """The configuration that `to_json` wrote. Keys of a later version are left out."""
    raw = json.loads(text)
    made = _known(Config, raw)
    made["agents"] = tuple(AgentConfig(**_known(AgentConfig, each)) for each in raw.get("agents", ()))
    for name in ("setup", "teardown"):
        made[name] = tuple(Command(**_known(Command, each)) for each in raw.get(name, ()))
    made["notify"] = tuple(Notify(**_known(Notify, each)) for each in raw.get("notify", ()))
    if raw.get("ports") is not None:
        made["ports"] = Ports(**_known(Ports, raw["ports"]))
    return Config(**made)


def _merge_agent(name: str, project: Config, user: Config) -> AgentConfig:
    def of(config: Config) -> AgentConfig:
        return next((agent for agent in config.agents if agent.name == name), AgentConfig(name))

    return AgentConfig(**_merged(of(project), of(user), skip=()))


def _merged(project: Any, user: Any, *, skip: tuple[str, ...]) -> dict[str, Any]:
    """The fields that either set (its `sources` say so), the project's first."""
    values: dict[str, Any] = {"name": project.name} if isinstance(project, AgentConfig) else {}
    sources: dict[str, str] = {}
    for source in (user, project):
        for name in source.sources:
            if name not in skip:
                values[name] = getattr(source, name)
                sources[name] = source.sources[name]
    return {**values, "sources": sources}


def _known(cls: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the class in `raw`, lists as tuples."""
    names = {each.name for each in fields(cls)}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items() if name in names}
