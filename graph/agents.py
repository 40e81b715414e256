"""Which agent a subtask gets, from the frozen configuration. Pure; resolves no program."""

import shlex
from typing import NoReturn

from coordinate_agents.graph.config import Config
from coordinate_agents.graph.errors import GraphError


def agent_for(config: Config, wanted: str | None, *, subtask: str) -> str:
    """The agent identity: the subtask's, else the default, else the only configured one, else the only one found.

    Raises: INVALID_AGENT_CONFIG, which lists what there is.
    """
    if wanted is not None:
        if config.agent(wanted) is not None:
            return wanted
        what = f"subtask {subtask} wants agent {wanted!r}, which is not configured"
        _refuse(config, what, f"coordinate-agents setup-configure --agent {shlex.quote(wanted)} --command PROGRAM")
    only = config.only_agent()
    if only is not None:
        return only
    if config.agents or config.found:
        what = f"subtask {subtask} names no agent, there is no defaultAgent, and there are several"
        return _refuse(config, what, f"coordinate-agents setup-configure --default-agent {_first(config)}")
    what = f"subtask {subtask} names no agent, and none is configured or found on PATH"
    return _refuse(config, what, "coordinate-agents setup-configure --agent NAME --command PROGRAM")


def _first(config: Config) -> str:
    return config.agents[0].name if config.agents else config.found[0]


def _refuse(config: Config, what: str, following: str) -> NoReturn:
    configured = ", ".join(agent.name for agent in config.agents) or "none"
    found = f" Found on PATH: {', '.join(config.found)}." if config.found else ""
    built_in = ", ".join(config.names_without_configuration())
    raise GraphError(
        "INVALID_AGENT_CONFIG",
        f"{what}. Configured: {configured}.{found} Known without configuration: {built_in}.",
        kept="nothing was created",
        next=following,
        stage="configuration",
    )
