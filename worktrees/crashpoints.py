"""Named points of this package where a test can end this process as a power cut would.

The same variable and shape as `graph/crashpoints.py`; this package may not import that one.
"""

import os
import signal

CRASH_VARIABLE = "COORDINATE_AGENTS_CRASH_AT"
# A folder: whoever dies leaves a file `<point>.<pid>` there, so that a test sees that the point was passed.
MARKS_VARIABLE = "COORDINATE_AGENTS_CRASH_MARKS"

# Every point of this package. The crash tests walk through this list.
POINTS = (
    "judge.drafted",
    "judge.moved",
    "tree.reserving",
    "tree.folder",
    "tree.reserved",
    "tree.branch",
    "tree.registered",
    "tree.laid",
    "tree.ready",
    "reuse.kept",
    "reuse.recorded",
    "reuse.renewed",
    "reuse.branch",
    "reuse.head",
    "commit.file",
    "commit.written",
    "pin.secured",
    "pin.made",
    "leftovers.written",
    "leftovers.moved",
    "leftovers.indexed",
    "copy.packed",
    "copy.half",
    "fold.made",
    "pristine.registered",
    "pristine.ready",
    "pristine.removed",
    "pristine.unregistered",
    "scene.laid",
    "scene.headed",
    "giving.kept",
    "giving.recorded",
    "giving.moved",
    # Of a removal and its undoing.
    "remove.kept",
    "remove.aside",
    "remove.decided",
    "remove.deleted",
    "remove.dropped",
    "undo.created",
    "undo.filled",
    # Of a branch of the user's that they asked for.
    "deliver.decided",
    "deliver.moved",
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
