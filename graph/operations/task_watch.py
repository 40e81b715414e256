"""The driver that a Task's verbs leave behind: it sees how what runs ends, verifies it, and starts no attempt."""

import os
import time
from typing import Final

from coordinate_agents.graph.operations.run import Request, start_detached
from coordinate_agents.graph.operations.watching import Watch
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder

# It is up in a fraction of a second; whoever answers before it is would say that nobody watches.
_UP_BOUND_S: Final = 5.0
_LOOK_S: Final = 0.25


def watch_apart(runtime: Runtime, graph: str) -> None:
    """Start it in the background and wait until it drives, at most `_UP_BOUND_S`."""
    until = time.monotonic() + _UP_BOUND_S
    watch = Watch(runtime.state_dir)
    # A drive in CI closes the agents when it ends, and lets no question wait: here a review comes after it.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    start_detached(runtime, graph, Request(max_starts=0, on_input="wait"), environment=environment)
    while holder(runtime.state_dir, graph) is None and (now := time.monotonic()) < until:
        watch.wait(min(until, now + _LOOK_S))
