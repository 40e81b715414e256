"""Makes a subtask's worktree on its branch, or leaves nothing.

Order: record, folder, branch, registration (all under the repository lock), then the files outside it. The record comes
first: after a kill at any point the next call finds by its nonce what was made, and finishes or undoes it. An owned,
clean worktree of an earlier attempt is laid out anew. A folder or branch that the Runtime did not make is never used
and never touched.
"""

import os
from dataclasses import replace

from coordinate_agents.worktrees import ownership, refusals
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layout import lay_out
from coordinate_agents.worktrees.lock import creation_lock, repository_lock
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, PIN_PREFIX, CommitId, Worktree
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.refs import RefChange, change_refs, read_ref, read_refs
from coordinate_agents.worktrees.register import Place, fresh_nonce, register, reserve, undo, worktree_path
from coordinate_agents.worktrees.reuse import (
    Plan,
    Taken,
    drop_registration,
    proved_by_nonce,
    require_intact,
    require_reusable,
    reuse_worktree,
    set_branch,
    settle_earlier,
)


def create(
    judge: Judge,
    graph: str,
    slug: str,
    base: CommitId,
    *,
    root: str,
    frozen: str,
    nonce: str | None = None,
    resume_from: CommitId | None = None,
    known_tip: CommitId | None = None,
) -> Worktree:
    """Make the worktree at `<root>/<key>/<graph>/<slug>`, its branch at `resume_from` or at base.

    A worktree with the same `nonce` was made by a call whose caller died: it is finished, or returned when whole.
    `known_tip`: a branch that stands there is ours, whatever no pin knows of it.
    Raises: WORKTREE_CONFLICT, DIRTY_WORKTREE, SETUP_FAILED; then no folder, registration or branch of this call
    remains.
    """
    place = Place(graph, slug, worktree_path(judge.facts, root, graph, slug))
    known_tip = resume_from or known_tip
    plan = Plan(place, base, resume_from or base, frozen, nonce or fresh_nonce(), known_tip=known_tip)
    return _create(judge, plan)


def recreate(
    judge: Judge, graph: str, slug: str, worktree: Worktree, *, root: str, frozen: str, nonce: str | None = None
) -> Worktree:
    """Lay a worktree whose folder is gone out again on its branch, or at its base when that is gone too.

    Drops only the registration that carries the worktree's nonce. Raises: WORKTREE_CONFLICT.
    """
    place = Place(graph, slug, worktree_path(judge.facts, root, graph, slug))
    record = ownership.read_record(judge.facts, graph, slug)
    is_continued = nonce is not None and record is not None and nonce in (record.worktree.nonce, record.next_nonce)
    if not is_continued:
        if os.path.lexists(worktree.path):
            raise _occupied(worktree.path)
        with repository_lock(judge.facts.state_dir):
            drop_registration(judge, place, worktree)
    tip = read_ref(judge.facts.common_dir, place.ref)
    plan = Plan(place, worktree.base, tip or worktree.base, frozen, nonce or fresh_nonce(), known_tip=tip)
    return _create(judge, plan)


def publish_integration(
    judge: Judge, graph: str, commit: CommitId, *, expected: CommitId | None, root: str, frozen: str
) -> Worktree:
    """Move the integration branch from `expected` (None: it must not exist) and lay its worktree out at the commit.

    Raises: WORKTREE_CONFLICT when the branch is elsewhere, DIRTY_WORKTREE when its worktree holds changes.
    """
    place = Place(graph, INTEGRATION_SLUG, worktree_path(judge.facts, root, graph, INTEGRATION_SLUG))
    tip = read_ref(judge.facts.common_dir, place.ref)
    if tip != expected:
        raise WorktreeError(
            "WORKTREE_CONFLICT",
            f"Branch {place.branch} is at {tip or 'no commit'}, not at {expected or 'no commit'}.",
            kept=f"branch {place.branch} is untouched",
            next=f"git log {place.branch}",
        )
    return _create(judge, Plan(place, commit, commit, frozen, fresh_nonce(), known_tip=tip))


def _create(judge: Judge, plan: Plan) -> Worktree:
    facts, place, start, frozen = judge.facts, plan.place, plan.start, plan.frozen
    with creation_lock(facts.state_dir, place.graph, place.slug):
        record = ownership.read_record(facts, place.graph, place.slug) or proved_by_nonce(facts, plan)
        if record is not None and record.stage == "ready" and os.path.lexists(record.worktree.path):
            # Before the repository's lock: a look at many files must not keep other starters waiting.
            require_intact(facts, record.worktree)
            if record.worktree.nonce == plan.nonce:
                return record.worktree
            require_reusable(judge, plan, record.worktree)
        with repository_lock(facts.state_dir):
            taken = _take(judge, plan, record)
        try:
            index = _lay_out(judge, place, taken, start, frozen=frozen)
        except BaseException:
            if taken.is_new:
                with repository_lock(facts.state_dir):
                    _unmake(judge, place, taken.worktree, start=start, before=taken.branch_before)
            raise
        crash_point("tree.laid")
        ownership.write_record(facts, place.graph, place.slug, Record(taken.worktree, "ready"))
        crash_point("tree.ready")
        # Somebody may still be at work in a folder that was used before.
        judge.layouts.forget(taken.worktree)
        if taken.is_new:
            judge.layouts.remember(taken.worktree, start, index)
        return taken.worktree


def _take(judge: Judge, plan: Plan, record: Record | None) -> Taken:
    """Call under the lock."""
    place, start = plan.place, plan.start
    if record is not None:
        left = settle_earlier(judge, place, record)
        if left is not None:
            return reuse_worktree(judge, plan, replace(record, worktree=left))
    if os.path.lexists(place.path):
        raise _occupied(place.path)
    tip = read_ref(judge.facts.common_dir, place.ref)
    if tip is not None and record is None and tip != plan.known_tip:
        _require_known(judge, place, tip)
    worktree = reserve(judge, place, plan.base, branch=place.branch, target=start, nonce=plan.nonce)
    try:
        set_branch(judge, place, start)
        crash_point("tree.branch")
        taken = Taken(register(judge, worktree, branch_before=tip), is_new=True, branch_before=tip)
        crash_point("tree.registered")
        return taken
    except BaseException:
        _unmake(judge, place, worktree, start=start, before=tip)
        raise


def _lay_out(judge: Judge, place: Place, taken: Taken, start: CommitId, *, frozen: str) -> bytes:
    """Write the files; the index that git made of them.

    A layout that was cut short is finished first, so that no file of it stays as untracked.
    """
    worktree, on_disk = taken.worktree, taken.on_disk
    if taken.earlier is not None and taken.earlier.target:
        lay_out(judge, worktree, taken.earlier.target, frozen=frozen, on_disk=on_disk)
        on_disk = taken.earlier.target
        now = Record(worktree, "making", before=on_disk, target=start)
        ownership.write_record(judge.facts, place.graph, place.slug, now)
    return lay_out(judge, worktree, start, frozen=frozen, on_disk=on_disk)


def _unmake(judge: Judge, place: Place, worktree: Worktree, *, start: CommitId, before: CommitId | None) -> None:
    """Undo a creation of this call; the branch goes back to where it was, unless somebody moved it since."""
    undo(judge, place, worktree)
    if before != start and read_ref(judge.facts.common_dir, place.ref) == start:
        change_refs(judge, [RefChange(place.ref, before, start)])


def _require_known(judge: Judge, place: Place, tip: CommitId) -> None:
    """A branch without a record counts as ours only when a pin of the subtask holds or contains its tip."""
    pinned = read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{place.graph}/{place.slug}"])
    if tip in pinned.values() or any(judge.is_ancestor(tip, oid) for oid in pinned.values()):
        return
    raise WorktreeError(
        "WORKTREE_CONFLICT",
        f"A branch {place.branch} exists that the Runtime did not make.",
        kept=f"branch {place.branch} is untouched",
        next=f"git branch -m {place.branch} NEW-NAME",
    )


def _occupied(path: str) -> WorktreeError:
    return WorktreeError(
        "WORKTREE_CONFLICT",
        f"{path} exists already and was not made by the Runtime.",
        kept="it is untouched, and no branch was made",
        next=refusals.move_aside(path),
    )
