"""Where a worktree stands: its HEAD, its branch, an operation in progress, a lock. Read from files, decided by nobody.

The first read of an examination: every later fact is about the head that is read here. The `.git` file of the worktree
is never followed; it is only compared, so a replaced one leads nowhere. `damaged` and `missing` have no head.
"""

import os
import time
from typing import Final

from coordinate_agents.worktrees.model import CommitId, HeadState, RepositoryFacts, Worktree
from coordinate_agents.worktrees.ownership import admin_dir, is_intact
from coordinate_agents.worktrees.reffiles import read_head, read_ref, read_refs, reflog_commits
from coordinate_agents.worktrees.values import value_class

# What git leaves in the folder of a worktree while an operation waits for its end. First match names the operation.
_OPERATIONS: Final = (
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("BISECT_START", "bisect"),
    ("sequencer", "cherry-pick"),
)


@value_class
class Position:
    """`branch` is the full ref name HEAD leads to (None: detached); `branch_tip` is that of the Runtime's branch."""

    state: HeadState
    head: CommitId | None = None
    branch: str | None = None
    branch_tip: CommitId | None = None
    operation: str | None = None
    lock: str | None = None
    lock_age_s: float | None = None


def locate(facts: RepositoryFacts, worktree: Worktree) -> Position:
    """Where the worktree stands now. Reads a handful of small files; runs nothing."""
    if is_intact(facts, worktree) is not None:
        state: HeadState = "damaged" if os.path.lexists(worktree.path) else "missing"
        return Position(state, branch_tip=read_ref(facts.common_dir, f"refs/heads/{worktree.branch}"))
    return read_position(facts, worktree)


def read_position(facts: RepositoryFacts, worktree: Worktree) -> Position:
    """As `locate`, from the registration alone: for a worktree that the caller proved ours, wherever its folder is."""
    common, admin = facts.common_dir, admin_dir(facts, worktree)
    branch = f"refs/heads/{worktree.branch}"
    found = read_head(admin, common)
    tip = read_ref(common, branch)
    if found is None:
        return Position("damaged", branch_tip=tip)
    lock = f"{admin}/index.lock"
    age_s = _age_s(lock)
    return Position(
        state="detached" if found.ref is None else "on-branch" if found.ref == branch else "other-branch",
        head=found.commit,
        branch=found.ref,
        branch_tip=tip,
        operation=next((name for file, name in _OPERATIONS if os.path.lexists(f"{admin}/{file}")), None),
        lock=None if age_s is None else lock,
        lock_age_s=age_s,
    )


def private_commits(facts: RepositoryFacts, worktree: Worktree) -> tuple[CommitId, ...]:
    """What only this worktree's reflogs and private refs may hold, newest first; some may not exist any more."""
    admin = admin_dir(facts, worktree)
    found = dict.fromkeys(reflog_commits(f"{admin}/logs/HEAD"))
    found |= dict.fromkeys(reflog_commits(f"{facts.common_dir}/logs/refs/heads/{worktree.branch}"))
    found |= dict.fromkeys(read_refs(admin, "refs/").values())
    return tuple(found)


def _age_s(path: str) -> float | None:
    try:
        return max(0.0, time.time() - os.lstat(path).st_mtime)
    except OSError:
        return None
