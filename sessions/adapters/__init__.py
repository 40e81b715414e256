"""Kinds of agents. A new one is a file with `ADAPTER` and a line here; nothing else in the program names an agent."""

from collections.abc import Mapping
from typing import Final

from coordinate_agents.sessions.adapters import acp, aider, claude, codex, gemini, generic, opencode
from coordinate_agents.sessions.adapters.base import Adapter

ADAPTERS: Final[Mapping[str, Adapter]] = {
    module.ADAPTER.name: module.ADAPTER for module in (generic, codex, claude, opencode, gemini, aider, acp)
}
