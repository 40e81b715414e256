"""Whether this command runs inside an agent or check that the Runtime started, and what is refused there.

A process can drop its environment, and a child of the agent may never have had it; its ancestors still tell. Decided
from /proc where there is one; elsewhere from this process's own environment only. A hostile agent can leave its
process tree: this keeps honest and careless ones from approving themselves.
"""

import os
import re
from pathlib import Path
from typing import Final

from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.errors import GraphError

_VARIABLES: Final = ("COORDINATE_AGENTS_SESSION", "COORDINATE_AGENTS_SESSION_MARK", "COORDINATE_AGENTS_TOKEN")
_IN_ENVIRON: Final = tuple(f"{name}=".encode() for name in _VARIABLES)
_HOST_MODULE: Final = b"coordinate_agents.sessions.host"
# More generations than any real tree has; a loop in /proc (pids reused while we look) ends here.
_MAX_ANCESTORS: Final = 64
_MAX_BYTES: Final = 1 << 20


def require_outside(invocation: Invocation) -> None:
    """Raise AGENT_MAY_NOT when a verb that changes something was started inside a Session."""
    if invocation.verb.access != "write" or invocation.values.get("nested"):
        return
    hint = " (graph-run takes --nested)" if invocation.verb.name == "graph-run" else ""
    refuse_inside(invocation.verb.name, hint=hint)


def refuse_inside(verb: str, *, hint: str = "") -> None:
    """Raise AGENT_MAY_NOT inside a Session, for a verb that does more than look."""
    how = session_around()
    if how is None:
        return
    raise GraphError(
        "AGENT_MAY_NOT",
        f"{verb} was started inside a Session of the Runtime ({how}); only verbs that read work there{hint}.",
        kept="everything as it is",
        next="run it from your own terminal",
        recoverable=False,
    )


def session_around() -> str | None:
    """How a Session around this process was noticed; None when there is none."""
    for name in _VARIABLES:
        if os.environ.get(name):
            return f"{name} is set"
    pid = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            return None
        if _HOST_MODULE in _read(pid, "cmdline"):
            return f"its ancestor {pid} is a Session host"
        if any(b"\0" + mark in b"\0" + _read(pid, "environ") for mark in _IN_ENVIRON):
            return f"its ancestor {pid} belongs to a Session"
        pid = _parent(pid)
    return None


def _parent(pid: int) -> int:
    found = re.search(rb"^PPid:\s*(\d+)$", _read(pid, "status"), re.MULTILINE)
    return int(found[1]) if found else 0


def _read(pid: int, name: str) -> bytes:
    try:
        with Path(f"/proc/{pid}/{name}").open("rb") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return b""
