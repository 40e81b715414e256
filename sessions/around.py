"""The Session around this process, as its own ancestors and their environments tell it. Linux: from /proc.

A child of an agent may have been given another environment than the agent (programs that start tool servers scrub it),
so the marks are looked for upwards, nearest first. What is found is a claim: whoever uses it compares the mark and the
ancestors with the Session's record. A program that left its tree, or looks from another pid namespace, finds nothing.
"""

import os
from typing import Final

from coordinate_agents.sessions import process
from coordinate_agents.sessions.model import ProcessIdentity, Surroundings
from coordinate_agents.sessions.strays import MARK_VARIABLE

SESSION_VARIABLE: Final = "COORDINATE_AGENTS_SESSION"
_MAX_ENVIRON_BYTES: Final = 1 << 20
# More generations than any real tree has.
_MAX_ANCESTORS: Final = 64


def surroundings() -> Surroundings | None:
    """The nearest claim of this process or an ancestor of it; None when nobody carries the variables of a Session."""
    above = _ancestors()
    for found in (dict(os.environ), *(_environ(pid) for pid, _ in above)):
        session, mark = found.get(SESSION_VARIABLE), found.get(MARK_VARIABLE)
        if session and mark:
            return Surroundings(session, mark, frozenset(above))
    return None


def is_inside(around: Surroundings, host: ProcessIdentity) -> bool:
    """Whether that very host process is an ancestor of this one."""
    return (
        (host.pid, host.start_ticks) in around.ancestors
        and host.boot_id == process.boot_id()
        and host.machine_id == process.machine_id()
        and host.pid_namespace == process.pid_namespace()
    )


def _ancestors() -> tuple[tuple[int, int], ...]:
    """Pid and start ticks, nearest first."""
    found: list[tuple[int, int]] = []
    pid = os.getppid()
    while pid > 1 and len(found) < _MAX_ANCESTORS and (seen := process.stat(pid)) is not None:
        found.append((seen.pid, seen.start_ticks))
        pid = seen.parent
    return tuple(found)


def _environ(pid: int) -> dict[str, str]:
    """The variables with which the process was started; empty when they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            raw = file.read(_MAX_ENVIRON_BYTES)
    except OSError:
        return {}
    pairs = (part.partition("=") for part in raw.decode("utf-8", "surrogateescape").split("\0"))
    return {name: value for name, _, value in pairs if name.startswith("COORDINATE_AGENTS_")}
