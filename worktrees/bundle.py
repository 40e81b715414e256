"""What a graph made as files that can leave this repository: a bundle of its pins and branches, patches."""

import os
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId
from coordinate_agents.worktrees.refs import runtime_refs

MAX_PATCH_BYTES: Final = 64 << 20
_TIMEOUT_S: Final = 300.0


def bundle(judge: Judge, graph: str, base: CommitId, path: str) -> bool:
    """Write a bundle of the graph's branches and pins with all that base does not contain; False: there is nothing.

    Whoever has base can fetch from it. Pins of the user's own refs are left out: they are not the graph's work.
    """
    names = [name for name, oid in runtime_refs(judge, graph).items() if oid != base]
    if not names:
        return False
    # Beside its place first: git would write through a link that stands there.
    draft = f"{path}.{os.getpid()}"
    stdin = "".join(f"{word}\n" for word in (*names, f"^{base}")).encode()
    try:
        judge.user_git("bundle", "create", "--quiet", draft, "--stdin", stdin=stdin, timeout_s=_TIMEOUT_S)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)
    return True


def patch(judge: Judge, base: CommitId, head: CommitId) -> bytes:
    """The difference as `git apply` takes it, binary files included. Raises: WorktreeError past 64 MiB."""
    return judge.git(
        "diff-tree", "-r", "--patch", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color",
        base, head, timeout_s=_TIMEOUT_S, max_bytes=MAX_PATCH_BYTES,
    ).out  # fmt: skip
