"""How a child is started and its output read. One file and one line of `DRIVERS` each; chosen by name in a host.

A driver reports facts and decides nothing. `spawn(start)` returns a `Child`; it raises OSError when the program could
not be executed, so that "could not start" and "ended at once" are never confused.
"""

import sys

DRIVERS = {
    "acp": "coordinate_agents.sessions.drivers.acp",
    "pipe": "coordinate_agents.sessions.drivers.pipe",
    "pty": "coordinate_agents.sessions.drivers." + ("winpty" if sys.platform == "win32" else "pty"),
}
