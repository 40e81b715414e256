"""Removes an owned worktree, step by step, or leaves it in its place with a reason.

Proved ours → nobody uses it → what only it holds is pinned and written through → renamed aside, still git-locked →
judged again → decided by another rename → deleted → its registration dropped. A kill at any point leaves a state that
the next call finds by the folder's identity: aside goes back or on, going is deleted, gone is forgotten.
`git worktree prune` is never called, and no ref is moved.
"""

import os
from pathlib import Path

from coordinate_agents.worktrees import aside, ownership, pins, refusals
from coordinate_agents.worktrees.contents import (
    Seen,
    fingerprint,
    held_files,
    look,
    not_ours,
    own_index,
    refusal_of,
)
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.durable import secure
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.in_use import mounts_below, users_of
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.lock import creation_lock, repository_lock
from coordinate_agents.worktrees.model import (
    CommitId,
    Contents,
    Refused,
    RemovalRequest,
    Removed,
    RepositoryFacts,
    Worktree,
    branch_ref,
)
from coordinate_agents.worktrees.refs import read_ref
from coordinate_agents.worktrees.register import remove_empty_parents
from coordinate_agents.worktrees.set_aside import is_held_by


def contents(judge: Judge, request: RemovalRequest) -> Contents:
    """What would go with the worktree, and why it would stay. Changes nothing. That it is in use is no refusal yet."""
    worktree, stand = request.worktree, aside.find(request.worktree)
    if stand in ("going", "gone"):
        refusal = _gone_refusal(judge.facts, worktree) if stand == "gone" else None
        return Contents(refusal=refusal, is_missing=refusal is None)
    refusal = not_ours(judge.facts, worktree, is_aside=stand == "aside")
    if refusal is not None:
        return Contents(refusal=refusal)
    at = aside.place_of(worktree, stand)
    seen = look(judge, request, at=at)
    if isinstance(seen, Refused):
        return Contents(refusal=seen)
    extra = held_files(at, seen.extra)
    return Contents(
        head=seen.head,
        refusal=refusal_of(judge, request, seen),
        extra=extra,
        bytes=sum(file.bytes for file in extra),
        unsaved=held_files(at, [*(entry.path for entry in seen.tracked), *seen.left]),
        fingerprint=fingerprint(at, seen, index=own_index(judge, worktree)),
        users=tuple(str(user) for user in users_of([at])),
    )


def remove(judge: Judge, request: RemovalRequest) -> Removed | Refused:
    """Remove the worktree. Twice is no error. Raises: WorktreeError when git or the disk fails; nothing is lost then.

    Refused: it stands in its place, unless `stands_at` says otherwise.
    """
    try:
        with creation_lock(judge.facts.state_dir, request.graph, request.slug):
            return _remove(judge, request)
    except WorktreeError as error:
        if error.code == "WORKTREE_CONFLICT":
            return refusals.busy()
        raise


def settle(judge: Judge, graph: str, slug: str, worktree: Worktree) -> None:
    """End a removal that was cut short: what was not decided goes back to its place, what was is deleted.

    Nothing to do is no error; what cannot be settled stays as it is. Raises: WORKTREE_CONFLICT while it is removed.
    """
    with creation_lock(judge.facts.state_dir, graph, slug):
        match aside.find(worktree):
            case "aside":
                aside.put_back(worktree)
            case "going":
                _delete(judge, RemovalRequest(worktree, graph, slug, ""), head=None, size=0, kept=())


def _remove(judge: Judge, request: RemovalRequest) -> Removed | Refused:
    worktree, stand = request.worktree, aside.find(request.worktree)
    if stand == "gone":
        refusal = _gone_refusal(judge.facts, worktree)
        return refusal if refusal is not None else _forget(judge, request, was_missing=True)
    if stand == "going":
        return _delete(judge, request, head=None, size=0, kept=())
    refusal = not_ours(judge.facts, worktree, is_aside=stand == "aside") or _in_use(worktree)
    if refusal is not None:
        return refusal
    kept = _keep(judge, request)
    if isinstance(kept, Refused):
        return kept
    crash_point("remove.kept")
    if stand == "in-place" and not aside.move_aside(worktree):
        return refusals.foreign(worktree, "its folder was replaced by another one")
    # A crash here leaves the whole worktree aside: the next call judges it, or puts it back.
    crash_point("remove.aside")
    try:
        seen = _judge_again(judge, request)
    except BaseException:
        aside.put_back(worktree)
        raise
    if isinstance(seen, Refused):
        return seen if aside.put_back(worktree) else refusals.reappeared(worktree, aside.aside_path(worktree))
    if os.path.lexists(worktree.path):
        return refusals.reappeared(worktree, aside.aside_path(worktree))
    size = sum(file.bytes for file in held_files(aside.aside_path(worktree), seen.extra))
    if not aside.mark_going(worktree):
        return refusals.foreign(worktree, "its folder was replaced while it was looked at")
    crash_point("remove.decided")
    return _delete(judge, request, head=seen.head, size=size, kept=kept)


def _in_use(worktree: Worktree) -> Refused | None:
    points = mounts_below(worktree.path) or mounts_below(aside.aside_path(worktree))
    if points:
        return refusals.mounted(points)
    users = users_of([worktree.path, aside.aside_path(worktree)])
    return refusals.in_use(worktree, users) if users else None


def _keep(judge: Judge, request: RemovalRequest) -> tuple[CommitId, ...] | Refused:
    """Pin what only the worktree holds, and write it through: a power cut must not take what a deletion left."""
    worktree = request.worktree
    if pins.is_too_much(judge, worktree):
        return refusals.too_much(worktree, "its reflogs are too large to be sure that every commit is kept")
    kept = pins.keep(judge, request.graph, request.slug, worktree)
    tip = read_ref(judge.facts.common_dir, branch_ref(request.graph, request.slug))
    known = [worktree.base] if judge.exists(worktree.base) else []
    for commit in dict.fromkeys([*kept, *([tip] if tip is not None else [])]):
        secure(judge, known, commit)
    return kept


def _judge_again(judge: Judge, request: RemovalRequest) -> Seen | Refused:
    """Everything once more, now that nobody meets the folder under its path."""
    worktree, at = request.worktree, aside.aside_path(request.worktree)
    used = _in_use(worktree)
    if used is not None:
        return used
    seen = look(judge, request, at=at)
    if isinstance(seen, Refused):
        return seen
    if request.discarded is None:
        return refusal_of(judge, request, seen) or seen
    return is_held_by(judge, request, seen, at=at) or seen


def _delete(
    judge: Judge, request: RemovalRequest, *, head: CommitId | None, size: int, kept: tuple[CommitId, ...]
) -> Removed | Refused:
    worktree = request.worktree
    try:
        aside.delete(worktree)
    except OSError as error:
        why = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        return refusals.undeletable(aside.going_path(worktree), why)
    crash_point("remove.deleted")
    return _forget(judge, request, head=head, size=size, kept=kept)


def _forget(
    judge: Judge,
    request: RemovalRequest,
    *,
    head: CommitId | None = None,
    size: int = 0,
    kept: tuple[CommitId, ...] = (),
    was_missing: bool = False,
) -> Removed | Refused:
    """Drop the registration and the record of a worktree whose folder is gone."""
    facts, worktree = judge.facts, request.worktree
    if ownership.registration_problem(facts, worktree) is None:
        again = _keep(judge, request)
        if isinstance(again, Refused):
            return again
        kept = (*kept, *again)
    with repository_lock(facts.state_dir):
        if not ownership.remove_registration(facts, worktree):
            return refusals.locked(worktree, ownership.lock_text(facts, worktree))
        crash_point("remove.dropped")
        ownership.forget_record(facts, request.graph, request.slug)
        # Under the lock: another start must not lose the folder that it is about to use.
        remove_empty_parents(Path(worktree.path))
    judge.layouts.forget(worktree)
    tip = read_ref(facts.common_dir, branch_ref(request.graph, request.slug))
    return Removed(head or tip, tip, kept, size, was_missing)


def _gone_refusal(facts: RepositoryFacts, worktree: Worktree) -> Refused | None:
    """Why a worktree whose folder is nowhere cannot simply be forgotten; None when it can."""
    if os.path.lexists(worktree.path):
        problem = ownership.is_intact(facts, worktree)
        linked = problem == ownership.LINKED or Path(worktree.path).is_symlink()
        return refusals.linked(worktree) if linked else refusals.foreign(worktree, problem or "it is another folder")
    problem = ownership.registration_problem(facts, worktree)
    if problem == ownership.ELSEWHERE:
        return refusals.moved(worktree, ownership.registered_place(facts, worktree) or "another folder")
    if problem == ownership.UNLOCKED:
        return refusals.locked(worktree, ownership.lock_text(facts, worktree))
    if problem in (None, ownership.UNREGISTERED):
        return None
    return refusals.foreign(worktree, problem)
