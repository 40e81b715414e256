"""What the events about a worktree's removal make of a run, and of the integration alike. Pure."""

from dataclasses import replace
from typing import TypeVar, assert_never

from coordinate_agents.graph.events import (
    BranchDeleted,
    DiscardMade,
    RemovalEvent,
    RemovalRefused,
    RemovalStarted,
    TeardownEnded,
    Undone,
    UndoStarted,
    WorktreeRemoved,
)
from coordinate_agents.graph.runs import Integration, Removal, TaskRun

Owner = TypeVar("Owner", TaskRun, Integration)


def fold_removal(owner: Owner, event: RemovalEvent) -> Owner:
    """The owner of the worktree after the event."""
    match event:
        case TeardownEnded():
            return owner
        case DiscardMade(commit=commit):
            return replace(owner, discard=commit)
        case RemovalStarted(discard=discard):
            assert owner.worktree is not None
            return replace(owner, removing=Removal(owner.worktree, None, owner.baseline, discard))
        case RemovalRefused():
            return replace(owner, removing=None)
        case WorktreeRemoved(tip=tip):
            if owner.worktree is None:
                return owner
            gone = owner.removing or Removal(owner.worktree, None, owner.baseline)
            return replace(owner, worktree=None, baseline=(), removing=None, removal=replace(gone, tip=tip))
        case BranchDeleted(commit=commit):
            if owner.removal is None:
                return owner
            return replace(owner, removal=replace(owner.removal, tip=commit, is_branch_deleted=True))
        case UndoStarted(nonce=nonce):
            assert owner.removal is not None
            return replace(owner, removal=replace(owner.removal, nonce=nonce))
        case Undone(worktree=worktree, discard=discard):
            # What setup made is back only where everything was set aside; else the next attempt sets up anew.
            baseline = owner.removal.baseline if owner.removal is not None and discard is not None else ()
            return replace(owner, worktree=worktree, baseline=baseline, removal=None)
        case _:
            assert_never(event)
