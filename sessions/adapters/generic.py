"""Any program: the configuration names it and its arguments; nothing is assumed about it."""

from coordinate_agents.sessions.adapters.base import Adapter

ADAPTER = Adapter(name="generic")
