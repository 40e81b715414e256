"""Named points of this package where a test can end this process as a power cut would.

The same variable and shape as `graph/crashpoints.py`; this package may not import that one. Hosts and
their fork server get an environment of their own: `environment` is what tells them.
"""

import os
import signal

CRASH_VARIABLE = "COORDINATE_AGENTS_CRASH_AT"
# A folder: whoever dies leaves a file `<point>.<pid>` there, so that a test sees that the point was passed.
MARKS_VARIABLE = "COORDINATE_AGENTS_CRASH_MARKS"

# Every point of this package. The crash tests walk through this list.
POINTS = (
    "folder.drafted",
    "start.folder",
    "start.claimed",
    "start.recorded",
    "start.forked",
    "start.specified",
    "server.begun",
    "server.asked",
    "server.forked",
    "host.begun",
    "host.recorded",
    "host.served",
    "host.spawned",
    "host.child",
    "host.ready",
    "host.over",
    "host.drained",
    "host.final",
    "host.hidden",
    "lost.locked",
    "lost.ended",
    "lost.recorded",
)

_target, _, _count = os.environ.get(CRASH_VARIABLE, "").partition(":")
_passes_left = int(_count) if _count.isdigit() else 1


def crash_point(name: str) -> None:
    """End this process with SIGKILL when the environment named this point at start; else nothing."""
    if _target:
        _pass(name)


def _pass(name: str) -> None:
    global _passes_left
    assert name in POINTS, name
    if name != _target:
        return
    _passes_left -= 1
    if _passes_left == 0:
        _die(name)


def _die(name: str) -> None:
    if marks := os.environ.get(MARKS_VARIABLE):
        os.close(os.open(f"{marks}/{name}.{os.getpid()}", os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.kill(os.getpid(), signal.SIGKILL)


def environment() -> "dict[str, str]":
    """What a process that gets no other variable of ours is given, so that its points are real; empty outside tests."""
    if not _target:
        return {}
    return {name: os.environ[name] for name in (CRASH_VARIABLE, MARKS_VARIABLE) if name in os.environ}
