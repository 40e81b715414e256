"""The driver of agents that speak the Agent Client Protocol: messages on stdin and stdout, stderr in a pipe of its own.

Runs in hosts. Only the pipes are made here; what is said over them is `host.speaking` and `sessions.acp`.
"""

from coordinate_agents.sessions.drivers.base import Child, Start
from coordinate_agents.sessions.drivers.pipe import spawn_on_pipes


def spawn(start: Start) -> Child:
    """Fork and execute. Blocks until exec succeeded or failed. Raises: OSError from chdir or exec."""
    return spawn_on_pipes(start, with_errors=True)
