"""The frozen part of a graph's record: configuration, git settings and worktree root, as they were at graph-create.

Rule: values of environment variables are never stored, so of an agent's `env` only the names are. The problem this
causes: they must come from the configuration as it is when an agent starts. Next rule: a name that is gone there is an
error, never an agent without it.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from coordinate_agents.graph import config as configuration
from coordinate_agents.graph.config import AgentConfig, Config
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.rows import GraphRow

_ROOT_VARIABLE = "COORDINATE_AGENTS_WORKTREES"


def recorded_text(config: Config, *, frozen: str, worktree_root: str) -> str:
    """What `create_graph` stores as the graph's configuration."""
    bare = replace(config, agents=tuple(_without_values(agent) for agent in config.agents))
    record = {"config": json.loads(configuration.to_json(bare)), "git": frozen, "worktreeRoot": worktree_root}
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def recorded_config(row: GraphRow, current: Callable[[], Config] | None = None) -> tuple[Config, str, str]:
    """(configuration, frozen git settings, worktree root) of a graph.

    `current` is only asked for values of `env`; without it they are empty, for a caller that starts nothing.

    Raises: INVALID_AGENT_CONFIG when a recorded variable is not configured any more.
    """
    record = json.loads(row.config)
    return config_of(row.config, current), record["git"], record["worktreeRoot"]


def config_of(text: str, current: Callable[[], Config] | None = None) -> Config:
    """The configuration that `recorded_text` wrote; `current` and errors as of `recorded_config`."""
    config = configuration.from_json(json.dumps(json.loads(text)["config"]))
    if current is None or not any(agent.env for agent in config.agents):
        return config
    now = current()
    return replace(config, agents=tuple(_with_values(agent, now) for agent in config.agents))


def worktree_root(config: Config, option: str | None) -> Path:
    """The folder for worktrees: option, configuration, environment, then the user's state folder. Absolute."""
    chosen = option or config.worktree_root or os.environ.get(_ROOT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "coordinate-agents" / "worktrees"


def _without_values(agent: AgentConfig) -> AgentConfig:
    return replace(agent, env=dict.fromkeys(agent.env, "")) if agent.env else agent


def _with_values(agent: AgentConfig, current: Config) -> AgentConfig:
    if not agent.env:
        return agent
    now = current.agent(agent.name)
    values = (now.env if now else None) or {}
    gone = sorted(name for name in agent.env if name not in values)
    if gone:
        raise GraphError(
            "INVALID_AGENT_CONFIG",
            f"agent {agent.name} was recorded with variables that are not configured any more: {', '.join(gone)}.",
            kept="the graph as it is; nothing was started",
            next=f"set them again under agents.{agent.name}.env",
            stage="configuration",
        )
    return replace(agent, env={name: values[name] for name in agent.env})
