"""How a tree is ended: politely first, then in rounds, within one bound. A state machine; the host's loop drives it.

The kill rounds signal only unreaped direct children of the host: their pids cannot have been given to anybody else.
The host is a child subreaper, so when a parent dies its children become direct children, whatever session, group or
environment they gave themselves; the next round ends them. Processes are not stopped first (that is slower).
"""

import contextlib
import os
import signal

from coordinate_agents.sessions import cgroup as cgroups
from coordinate_agents.sessions import process

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from collections.abc import Callable

    # How the child itself is asked to stop, before anybody is signalled; it gets the host's direct children.
    Interrupt = Callable[[list[process.Stat]], None]

# Shares of the bound. An interrupt lets an agent save its state; the polite signals let git remove its lock files.
_INTERRUPT_SHARE = 0.2
_POLITE_SHARE = 0.5
# What is left behind by a child that ended by itself gets less: nobody waits for its work. git still gets its share.
_LEFTOVER_POLITE_S = 0.5
# A round is repeated on every SIGCHLD; the pause is for children that do not end. It doubles, since a look at all
# processes costs milliseconds and many Sessions may be closed at once.
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5


class Ending:
    """One ending of the whole tree. `step` acts and returns when it wants to be called again."""

    def __init__(
        self, now: float, bound_s: float, *, graceful: bool, interrupt: "Interrupt | None", cgroup: str = ""
    ) -> None:
        self.deadline = now + bound_s
        self._interrupt = interrupt if graceful else None
        self._interrupt_until = self._polite_until = now
        if self._interrupt is not None:
            self._interrupt_until = now + bound_s * _INTERRUPT_SHARE
        if graceful:
            self._polite_until = now + bound_s * _POLITE_SHARE
        self._git_until = now + bound_s * _POLITE_SHARE
        if interrupt is None:
            self.child_ended(now)
        self._interrupted = False
        self._asked: set[tuple[int, int]] = set()
        self._pause = _FIRST_PAUSE_S
        self._cgroup = cgroup

    def child_ended(self, now: float) -> None:
        """The child itself is gone: nobody is left to be interrupted, and what it left is not waited for long."""
        self._interrupt_until = min(self._interrupt_until, now)
        self._polite_until = min(self._polite_until, now + _LEFTOVER_POLITE_S)

    def hurry(self, now: float, bound_s: float, *, graceful: bool) -> None:
        """A second close: the earlier bound wins with all its shares, and impatience is believed."""
        self.deadline = min(self.deadline, now + bound_s)
        self._interrupt_until = min(self._interrupt_until, now + (bound_s * _INTERRUPT_SHARE if graceful else 0))
        self._polite_until = min(self._polite_until, now + (bound_s * _POLITE_SHARE if graceful else 0))
        self._git_until = min(self._git_until, now + bound_s * _POLITE_SHARE)

    def step(self, now: float) -> float:
        """One round. The caller has reaped before and knows that children are left."""
        processes = process.every()
        me = os.getpid()
        children = [one for one in processes.values() if one.parent == me]
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S)
        if now < self._interrupt_until:
            if not self._interrupted and self._interrupt is not None:
                self._interrupted = True
                self._interrupt(children)
            return self._interrupt_until
        tree = process.descendants(me, processes)
        if now < self._polite_until:
            self._ask(tree)
            return min(self._polite_until, now + self._pause)
        git = [one for one in tree if _is_git(one)]
        if git and now < self._git_until:
            # A killed git leaves a lock in the user's repository. What stands above it lives on for its share too.
            self._ask(git)
            spared = set().union(*(process.ancestors(one.pid, processes) for one in git))
            _kill([child for child in children if child.pid not in spared])
            return min(self._git_until, now + self._pause)
        _kill(children)
        cgroups.kill(self._cgroup)
        return now + self._pause

    def _ask(self, processes: list[process.Stat]) -> None:
        """SIGHUP and SIGTERM once to each process, also to those that appeared since; to git SIGTERM alone."""
        for one in processes:
            key = (one.pid, one.start_ticks)
            if key not in self._asked:
                self._asked.add(key)
                process.send(one, signal.SIGTERM)
                if not _is_git(one):
                    process.send(one, signal.SIGHUP)
                process.send(one, signal.SIGCONT)


def _is_git(one: process.Stat) -> bool:
    return one.name == "git" or one.name.startswith("git-")


def interrupt_group(pid: int, children: list[process.Stat]) -> None:
    """What Ctrl-C does: SIGINT to the child's foreground group. By signal, since a raw terminal ignores the key."""
    for child in children:
        if child.pid == pid and not child.is_zombie and child.group == pid:
            # Unreaped, and leader of its own group: the group id cannot be anybody else's.
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGINT)


def _kill(children: list[process.Stat]) -> None:
    for child in children:
        if not child.is_zombie:
            with contextlib.suppress(OSError):
                os.kill(child.pid, signal.SIGKILL)
