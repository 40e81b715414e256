"""Deletes a Runtime branch whose commits something else holds, and brings back one that somebody else deleted.

All by compare-and-swap. Before a deletion the tip, and every commit that only the branch's reflog names, is pinned: its
reflog goes with it. A graph's pins are dropped here, too.
"""

from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership, pins, refusals
from coordinate_agents.worktrees.contained import containing
from coordinate_agents.worktrees.durable import pinned_tips, secure
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import (
    PIN_PREFIX,
    BranchGone,
    CommitId,
    PinsDropped,
    Refused,
    Worktree,
    branch_name,
    branch_ref,
)
from coordinate_agents.worktrees.reffiles import reflog_commits
from coordinate_agents.worktrees.refs import RefChange, change_refs, read_ref, read_refs, snapshot
from coordinate_agents.worktrees.reuse import checked_out_in

_NO_REGISTRATION: Final = ""
_TIMEOUT_S: Final = 300.0


def delete_branch(judge: Judge, graph: str, slug: str, *, is_result: bool = False) -> BranchGone | Refused | None:
    """Delete the branch of a subtask whose worktree is gone. None: there is none.

    `is_result`: it is what the graph was run for, so a pin of ours is not enough: a ref of the user's must contain it.
    Raises: WORKTREE_CONFLICT when it moved meanwhile.
    """
    name, branch = branch_ref(graph, slug), branch_name(graph, slug)
    tip = read_ref(judge.facts.common_dir, name)
    if tip is None:
        return None
    holder = checked_out_in(judge.facts, name, _NO_REGISTRATION)
    if holder is not None:
        return refusals.checked_out(branch, holder)
    if is_result and not containing(judge, tip, snapshot(judge).refs):
        return refusals.only_here(branch)
    gone = Worktree("", _NO_REGISTRATION, branch, "0" * len(tip), "", 0, 0)
    if pins.is_too_much(judge, gone):
        return refusals.too_much(gone, "its reflog is too large to be sure that every commit is kept")
    pins.keep(judge, graph, slug, gone)
    held_by = containing(judge, tip, read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{graph}/{slug}"]))
    if not held_by:
        raise WorktreeError("INTERNAL_ERROR", f"Branch {branch} at {tip} was not pinned.", kept=f"branch {branch}")
    secure(judge, pinned_tips(judge, graph), tip)
    change_refs(judge, [RefChange(name, None, tip)])
    return BranchGone(branch, tip, held_by[0])


def restore_branch(
    judge: Judge, graph: str, slug: str, worktree: Worktree, *, known: CommitId | None
) -> CommitId | None:
    """Make the branch of a kept worktree again that somebody deleted; where it is then. None: it is there, or no
    commit of it is known.

    It comes back where the worktree's HEAD was last, by its reflog, which outlives the branch's own and the folder;
    else at `known`; else at the newest commit that was kept of it.
    """
    tip = lost_tip(judge, graph, slug, worktree, known=known)
    if tip is not None:
        change_refs(judge, [RefChange(branch_ref(graph, slug), tip, "")])
    return tip


def lost_tip(judge: Judge, graph: str, slug: str, worktree: Worktree, *, known: CommitId | None) -> CommitId | None:
    """Where `restore_branch` would make it again; changes nothing."""
    if read_ref(judge.facts.common_dir, branch_ref(graph, slug)) is not None:
        return None
    held = read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{graph}/{slug}"])
    kept = [held[pin] for pin in sorted(held, key=_number) if "/kept-" in pin]
    candidates = [*_last_of_head(judge, worktree), *([known] if known else []), *reversed(kept)]
    return next((oid for oid in candidates if judge.commit(oid) == oid), None)


def _last_of_head(judge: Judge, worktree: Worktree) -> tuple[CommitId, ...]:
    """The last commit that HEAD of the worktree named, if its registration is still ours."""
    admin = ownership.admin_dir(judge.facts, worktree)
    if not worktree.admin_name or not ownership.is_locked_with(admin, worktree.nonce):
        return ()
    return reflog_commits(Path(admin, "logs", "HEAD"))[:1]


def _number(pin: str) -> int:
    number = pin.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def drop_pins(judge: Judge, graph: str, *, is_dry: bool) -> PinsDropped:
    """Delete every pin of a graph, by compare-and-swap; how many, and how many commits nothing else names.

    `is_dry`: only count. Commits that are counted stay until git's own gc takes them.
    """
    pinned = read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{graph}"])
    listed = judge.user_git("for-each-ref", "--format=%(objectname) %(refname)").lines()
    others = {line.split(" ", 1)[0] for line in listed if line.split(" ", 1)[1] not in pinned}
    asked = [*sorted(set(pinned.values())), *(f"^{oid}" for oid in sorted(others))]
    only = 0
    if pinned:
        stdin = "".join(f"{word}\n" for word in asked).encode()
        counted = judge.git("rev-list", "--count", "--ignore-missing", "--stdin", stdin=stdin, timeout_s=_TIMEOUT_S)
        only = int(counted.text)
    if not is_dry:
        change_refs(judge, [RefChange(name, None, oid) for name, oid in pinned.items()])
    return PinsDropped(len(pinned), only)
