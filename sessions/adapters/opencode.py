"""opencode, one shot. Its own configuration decides about permissions. Source: opencode.ai/docs/cli."""

from coordinate_agents.sessions.adapters.base import Adapter

ADAPTER = Adapter(name="opencode", command="opencode", subcommand=("run",), commit="auto")
