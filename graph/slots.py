"""The numbers of what runs, and with them its ports: unique in a graph, and the ports among all graphs of this user.

Rule: the number is recorded when a subtask starts, so that whoever drives it later tells the same ports. The problem
this causes: another graph's driver knows nothing of that record. Next rule: a block of ports is locked in one place of
the user before its number is recorded; drivers and the hosts of agents hold it until they end.
"""

from typing import Final

from coordinate_agents.graph.config import Config, Ports
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import GraphId, SubtaskId
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.store.port_blocks import PortBlocks
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import HeldPorts

PORTS_TAKEN: Final = "PORTS_TAKEN"


class PortsTakenError(GraphError):
    """No block of ports is left."""


class Slots:
    """Of one drive. Nothing is locked before it is first asked for, and nothing at all without `ports`."""

    def __init__(self, graph: GraphId, snapshot: Snapshot, config: Config) -> None:
        self._graph = graph
        self._snapshot = snapshot
        self._ports = config.ports
        self._blocks: PortBlocks | None = None
        self._lent: dict[SubtaskId, int] = {}

    def take(self, *, wanted: int | None = None, lives: bool = False) -> int:
        """A free number to be recorded now: the wanted one where it is free, else the lowest.

        `lives`: a process of ours that has the wanted one goes on. Raises: PortsTakenError.
        """
        for number in self._snapshot.free_slots(wanted=wanted):
            if number in self._lent.values():
                continue
            blocks = self._opened()
            if blocks is None or blocks.claim(number, is_shared=lives and number == wanted):
                return number
            if number > blocks.ports.last_block and number != wanted:
                break
        raise PortsTakenError(
            "TASK_STATE_CONFLICT",
            self._why(),
            kept="everything as it is; nothing was started",
            next="coordinate-agents graph-list",
            facts={"taskId": self._graph},
        )

    def lend(self, run: TaskRun) -> int:
        """A number for a command of what does not run, until `give_back`. Raises: SessionError."""
        if run.id not in self._lent:
            try:
                self._lent[run.id] = self.take(wanted=run.slot)
            except PortsTakenError as error:
                raise SessionError("SESSION_START_FAILED", error.message, kept=error.kept, next=error.next) from None
        return self._lent[run.id]

    def give_back(self, subtask: SubtaskId) -> None:
        if self._lent.pop(subtask, None) is not None:
            self.settle()

    def settle(self) -> None:
        """Give back the ports of what runs no more."""
        if self._blocks is not None:
            self._blocks.keep_only(self._snapshot.taken_slots() | set(self._lent.values()))

    def why_none(self) -> str:
        """Why nothing more can start for want of ports; empty when something can."""
        blocks = self._opened()
        if blocks is None:
            return ""
        numbers = self._snapshot.free_slots()
        while (number := next(numbers)) <= blocks.ports.last_block:
            if number not in self._lent.values() and blocks.is_free(number):
                return ""
        return self._why()

    def held_ports(self, number: int) -> HeldPorts | None:
        """What the host of an agent holds, too; None without ports."""
        blocks = self._opened()
        return HeldPorts(str(blocks.path), *blocks.range_of(number)) if blocks is not None else None

    def change(self, config: Config) -> None:
        """From now on the ports of this configuration."""
        if config.ports != self._ports:
            self.close()
            self._ports = config.ports

    def close(self) -> None:
        """Hold nothing more."""
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None

    def _opened(self) -> PortBlocks | None:
        if self._blocks is None and self._ports is not None:
            self._blocks = PortBlocks(self._ports)
            for number in self._snapshot.taken_slots():
                # Recorded by an earlier driver: the agent has these ports, whoever took them meanwhile.
                self._blocks.claim(number, is_shared=True)
        return self._blocks

    def _why(self) -> str:
        assert self._ports is not None
        return (
            f"{PORTS_TAKEN}: no {self._ports.size} ports from {self._ports.base} to the last one are free;"
            " other graphs have them"
        )


def require_ports(ports: Ports | None, max_concurrency: int) -> None:
    """Raise INVALID_AGENT_CONFIG when what may run at a time would need ports beyond the last one."""
    if ports is None or max_concurrency <= ports.last_block + 1:
        return
    raise GraphError(
        "INVALID_AGENT_CONFIG",
        f"ports {ports.base} + {max_concurrency} × {ports.size} pass 65535: maxConcurrency is {max_concurrency}, and"
        f" there are ports for {ports.last_block + 1}.",
        kept="nothing was created or changed",
        next="coordinate-agents doctor",
        stage="configuration",
    )
