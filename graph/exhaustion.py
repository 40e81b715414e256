"""What the machine refuses to whoever asks (disk, descriptors, memory): a failure with a way out, and no bug of ours.

Pure. Every other OSError stays an exception, so that a bug does not look like a failed subtask.
"""

import errno
from typing import Final

from coordinate_agents.graph.events import Failure

_CODES: Final = {
    errno.ENOSPC: "DISK_FULL",
    errno.EDQUOT: "DISK_FULL",
    errno.EFBIG: "DISK_FULL",
    errno.EROFS: "DISK_FULL",
    errno.EMFILE: "SESSION_START_FAILED",
    errno.ENFILE: "SESSION_START_FAILED",
    errno.ENOMEM: "SESSION_START_FAILED",
    errno.EAGAIN: "SESSION_START_FAILED",
}


def failure_of_machine(error: OSError, graph: str) -> Failure | None:
    """None for an error that is not the machine's exhaustion."""
    code = _CODES.get(error.errno or 0)
    if code is None:
        return None
    where = f" at {error.filename}" if error.filename else ""
    return Failure(
        code,
        f"the machine refused it: {error.strerror}{where}.",
        kept="everything recorded before, the worktree and its branch",
        next=f"coordinate-agents graph-run {graph} --retry-failed",
    )
