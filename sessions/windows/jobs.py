"""Custody of a tree on Windows: the host sits in a job of its own, and so does all that it starts, from the beginning.

Rule: the job is made and entered before the child exists, since a process that is put into a job afterwards may have
started others. The problem this causes: ending the whole job would end the host as well. Next rule: everything in
the job but the host is ended one by one, round after round, until nothing is left; and the job ends what it holds when
its last handle is closed, so a host that is killed takes its tree along. Nothing can leave the job: breaking away is
not allowed. Seen on no Windows yet.
"""

import time
from typing import Final

from coordinate_agents.sessions.windows.kernel import Kernel

# What a program that was ended by us reports.
ENDED_CODE: Final = 1
_ROUND_MS: Final = 50


class Job:
    """The job around this process. `kernel` is asked for everything."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._job = kernel.new_job()
        kernel.assign(self._job, kernel.own_pid())

    def members(self) -> list[int]:
        """The pids of the tree, without this process."""
        return sorted(set(self._kernel.pids_of(self._job)) - {self._kernel.own_pid()})

    def end(self, bound_s: float) -> list[int]:
        """End the tree within the bound; what is left then. Blocks for at most the bound and one round."""
        until = time.monotonic() + bound_s
        while (pids := self.members()) and time.monotonic() < until:
            for pid in pids:
                self._end(pid)
        return pids

    def _end(self, pid: int) -> None:
        """The number may be somebody else's by now: only a process of the job is ended."""
        process = self._kernel.open(pid)
        if process is None:
            return
        try:
            if self._kernel.is_in(process, self._job):
                self._kernel.terminate(process, ENDED_CODE)
                self._kernel.wait(process, _ROUND_MS)
        except OSError:
            return  # it ended meanwhile, or is being ended
        finally:
            self._kernel.close(process)
