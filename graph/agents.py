"""Which agent a subtask gets, from the frozen configuration. Pure; resolves no program."""

from coordinate_agents.graph.config import ADAPTER_NAMES, Config
from coordinate_agents.graph.errors import GraphError


def agent_for(config: Config, wanted: str | None, *, subtask: str) -> str:
    """The agent identity: the subtask's, else the default, else the only configured one.

    Raises: INVALID_AGENT_CONFIG, which lists what there is.
    """
    if wanted is not None:
        if config.agent(wanted) is not None:
            return wanted
        raise _no_agent(config, f"subtask {subtask} wants agent {wanted!r}, which is not configured")
    only = config.only_agent()
    if only is not None:
        return only
    why = "there are several" if config.agents else "none is configured"
    raise _no_agent(config, f"subtask {subtask} names no agent, there is no defaultAgent, and {why}")


def _no_agent(config: Config, what: str) -> GraphError:
    known = ", ".join(agent.name for agent in config.agents) or "none"
    built_in = ", ".join(name for name in ADAPTER_NAMES if name not in ("generic", "acp"))
    return GraphError(
        "INVALID_AGENT_CONFIG",
        f"{what}. Configured: {known}. Known without configuration: {built_in}.",
        kept="nothing was created",
        next="add it under `agents:` in .coordinate-agents.yaml, then coordinate-agents setup-trust",
        stage="configuration",
    )
