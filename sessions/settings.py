"""What an agent's settings and its adapter come to together: arguments, combinations that cannot be, labels.

No program is looked for, and nothing is started.
"""

import hashlib
import json
import os

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.adapters.base import Adapter
from coordinate_agents.sessions.agent import AgentSettings, ResolvedAgent, TurnRequest
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Delivery, Driver, Mode


def adapter_of(settings: AgentSettings) -> Adapter:
    """Raises: INVALID_ADAPTER_CONFIG when there is none of that name."""
    adapter = ADAPTERS.get(settings.adapter)
    if adapter is None:
        raise SessionError(
            "INVALID_ADAPTER_CONFIG",
            f"agent {settings.agent} names adapter {settings.adapter!r}, which does not exist.",
            next=f"use one of {', '.join(sorted(ADAPTERS))}",
        )
    return adapter


def arguments_of(settings: AgentSettings, adapter: Adapter) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The arguments of a first and of a further turn. The adapter's own second ones fit its own first ones only."""
    if settings.mode == "interactive":
        args = adapter.interactive_arguments(settings.permissions)
        resume = adapter.interactive_resume_arguments(settings.permissions)
    else:
        args, resume = adapter.arguments(settings.permissions), adapter.resume_arguments(settings.permissions)
    if settings.args is not None:
        return settings.args, settings.resume_args
    return args, settings.resume_args if settings.resume_args is not None else resume


def check_delivery(agent: str, mode: Mode, delivery: Delivery, driver: Driver) -> None:
    """Raises: INVALID_ADAPTER_CONFIG for combinations in which no prompt could arrive."""
    problem = None
    if delivery == "paste" and mode != "interactive":
        problem = "delivery paste needs mode interactive: a one-shot program is not typed into"
    elif mode == "interactive" and delivery == "stdin":
        problem = "delivery stdin ends a program that stays; use paste, argument or file"
    elif mode == "interactive" and driver != "pty":
        problem = "mode interactive needs a terminal (driver pty)"
    if problem is not None:
        raise SessionError(
            "INVALID_ADAPTER_CONFIG", f"agent {agent}: {problem}.", kept="nothing was started", next="change the agent"
        )


def labels_of(agent: ResolvedAgent, request: TurnRequest) -> dict[str, str]:
    """What the Session says of itself for as long as it is kept, whatever becomes of the configuration."""
    found = {
        "root": os.path.realpath(request.root),
        "agent": agent.agent,
        "adapter": agent.adapter,
        "command": agent.executable.asked,
        "resolvedCommand": agent.executable.path,
        "commandSource": agent.executable.source,
        "mode": agent.mode,
        "settings": settings_digest(agent),
        "resumed": "true" if request.is_continuation else "",
        "taskId": request.graph,
        "subtaskId": request.subtask,
    }
    return {name: value for name, value in found.items() if value}


def settings_digest(agent: ResolvedAgent) -> str:
    """Short for all that decides what is started. Too short to find an environment's values again from it."""
    words = [agent.adapter, agent.executable.path, agent.driver, agent.mode, agent.delivery, agent.permissions]
    parts = [words, agent.args, agent.resume_args, sorted(agent.env.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]
