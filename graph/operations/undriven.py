"""A graph that nobody drives, for verbs that only wait or look: what lives is awaited, what it leaves is verified."""

import subprocess
import sys
from typing import Final

from coordinate_agents.graph.runtime import Runtime

# A detached driver needs a moment before it holds the lease, and so does one that takes over from another.
UNDRIVEN_S: Final = 3.0


class Undriven:
    """What becomes of a graph that nobody drives: agents that live are waited for, an end that came is recorded.

    Rule: this process only reads; graph-recover records, in a process of its own that outlives this wait. The problem
    it would cause to write here: SQLite shares one view of the write-ahead log among all connections of a process, and
    one that reads makes it read-only for them all.
    """

    def __init__(self, runtime: Runtime, graph: str) -> None:
        self._runtime = runtime
        self._graph = graph
        self._recovery: subprocess.Popen[bytes] | None = None

    def may_change(self) -> bool:
        """Whether what is waited for can still come."""
        if self._recovery is not None and self._recovery.poll() is None:
            return True
        from coordinate_agents.graph.operations import recover

        outlook = recover.look(self._runtime, self._graph).outlook
        if outlook == "due" and (self._recovery is None or self._recovery.returncode == 0):
            words = ["graph-recover", self._graph, "--root", str(self._runtime.root), "--json"]
            self._recovery = subprocess.Popen(
                [sys.executable, "-P", "-m", "coordinate_agents.cli.main", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        # One that could not record it (inside an agent it may not) leaves it to others.
        return outlook != "nothing"
