"""The process tree that a host owns: collected, ended, and what became of its first process, the child.

The child's end is its exit, never the end of its output, and the tree's end is that no process is left: what a child
leaves behind is ended first, within the close bound, and what cannot be ended is named. When a tree is to be ended is
decided by whoever owns it; how, by `ending`.
"""

import os
import time

from coordinate_agents.sessions import cgroup as cgroups
from coordinate_agents.sessions import process
from coordinate_agents.sessions.host.ending import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from coordinate_agents.sessions.host.ending import Interrupt


class Tree:
    """`cause` is why it ends, once it is ended for a reason; `why` says which fault of the child's own it was."""

    def __init__(self) -> None:
        self.cause = "exit"
        self.why = ""
        self._pid = 0
        self._cgroup = ""
        self._status: int | None = None
        self._ending: Ending | None = None
        self._next_step = 0.0
        self._started = self._exited = time.monotonic()

    def take(self, pid: int, cgroup: str) -> None:
        """Own this child of ours, and all that it starts, from now on. `cgroup`: its own, empty when there is none."""
        self._pid, self._cgroup = pid, cgroup
        self._started = self._exited = time.monotonic()

    @property
    def is_running(self) -> bool:
        """The child lives, and nobody ends it."""
        return self._status is None and self._ending is None

    @property
    def is_ending(self) -> bool:
        return self._ending is not None

    @property
    def code(self) -> int | None:
        """The child's exit code, or its signal as a negative number; None while it lives."""
        return os.waitstatus_to_exitcode(self._status) if self._status is not None else None

    def is_over(self, bound_s: float) -> bool:
        """Collect, and say whether nothing is left or the bound for ending it has passed.

        What a child that ended left behind is ended within `bound_s` from now on.
        """
        has_children = self._reap()
        if self._status is not None and self._ending is None and has_children:
            self.end(bound_s, graceful=True, interrupt=None)
        if not has_children:
            return True
        return self._ending is not None and time.monotonic() >= self._ending.deadline

    def end(self, bound_s: float, *, graceful: bool, interrupt: "Interrupt | None") -> None:
        """Begin to end it, or hurry. `interrupt` asks the child to stop; it is not called when that has ended."""
        now = time.monotonic()
        if self._ending is not None:
            self._ending.hurry(now, bound_s, graceful=graceful)
        else:
            ask = interrupt if self._status is None else None
            self._ending = Ending(now, bound_s, graceful=graceful, interrupt=ask, cgroup=self._cgroup)
        self._next_step = 0.0

    def next_time(self) -> float:
        """When `on_time` is to be called again."""
        return min(self._next_step, self._ending.deadline) if self._ending is not None else float("inf")

    def on_time(self, now: float) -> None:
        """Go on ending it, when that is due."""
        if self._ending is not None and now >= self._next_step and self._reap():
            self._next_step = self._ending.step(now)

    def final(self) -> "dict[str, object]":
        """What the final record says of it. Removes the cgroup."""
        left = process.descendants(os.getpid(), process.every()) if self._reap() else []
        code, late = self.code, "the child did not end within the close bound"
        cgroups.remove(self._cgroup)
        return {
            "cause": self.cause,
            "exit_code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "duration_ms": round(((time.monotonic() if code is None else self._exited) - self._started) * 1000),
            "survivors": [str(one) for one in left],
            "error": self.why or (late if code is None else None),
        }

    def _reap(self) -> bool:
        """Collect every ended child, also adopted ones; False when there is no child at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._next_step = 0.0
            if pid == self._pid and self._status is None:
                self._status = status
                self._exited = time.monotonic()
                if self._ending is not None:
                    self._ending.child_ended(self._exited)
