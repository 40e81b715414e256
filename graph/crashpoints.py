"""Named points where a test can end this process as a power cut would: SIGKILL, no cleanup, no flush.

``COORDINATE_AGENTS_CRASH_AT=<point>`` (or ``<point>:<n>`` for the n-th pass) names the point; without the variable
`crash_point` returns at once. A point stands between two acts whose order matters (intent, act, result).
"""

import os
import signal
from typing import Final

CRASH_VARIABLE: Final = "COORDINATE_AGENTS_CRASH_AT"
# A folder: whoever dies leaves a file `<point>.<pid>` there, so that a test sees that the point was passed.
MARKS_VARIABLE: Final = "COORDINATE_AGENTS_CRASH_MARKS"

# Every point of this package, in the order in which a run passes them. The crash tests walk through this list.
POINTS: Final[tuple[str, ...]] = (
    "store.create.built",
    "store.create.renamed",
    "store.graph.inserted",
    "store.graph.committed",
    "lease.locked",
    "lease.generation",
    "lease.recorded",
    "store.append.begun",
    "store.append.cached",
    "store.append.inserted",
    "store.append.finished",
    "store.append.committed",
    # Of graph-amend.
    "store.document.cached",
    "store.document.inserted",
    "store.document.committed",
    "request.submitted",
    "request.answered",
    "blob.drafted",
    "base.snapshot",
    "base.made",
    "worktree.cleared",
    "worktree.created",
    "setup.done",
    "session.intended",
    "session.started",
    "turn.seen",
    "stay.over",
    "stay.intended",
    "stay.begun",
    "stay.closed",
    "review.recorded",
    "verify.committed",
    "verify.facts",
    "check.ended",
    "verify.pinned",
    "verify.certified",
    "stop.closed",
    "hold.recorded",
    "release.recorded",
    "conflict.intended",
    "conflict.opened",
    "conflict.kept",
    "resolution.kept",
    "resolution.recorded",
    "resolution.concluded",
    "integration.merged",
    "integration.conflicted",
    "integration.published",
    "integration.kept",
    # Of graph-cleanup and graph-undo.
    "removal.set-aside",
    "removal.intended",
    "removal.removed",
    "branch.deleted",
    "undo.intended",
    "undo.made",
    "forget.recorded",
    "forget.session",
    "deliver.done",
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
