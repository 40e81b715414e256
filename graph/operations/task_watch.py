"""The driver that a Task's verbs leave behind: it sees how what runs ends, verifies it, and starts no attempt."""

import os

from coordinate_agents.graph.operations.run import Request, await_driver, start_detached
from coordinate_agents.graph.runtime import Runtime


def watch_apart(runtime: Runtime, graph: str) -> None:
    """Start it in the background; returns when it drives, or had nothing to wait for. Bounded as `await_driver`."""
    # A drive in CI closes the agents when it ends, and lets no question wait: here a review comes after it.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    driver = start_detached(runtime, graph, Request(max_starts=0, on_input="wait"), environment=environment)
    await_driver(runtime, graph, driver)
