"""Makes a subtask's worktree on its branch, or leaves nothing.

Order: record, folder, branch, `git worktree add --no-checkout` (all under the repository lock), then the files outside
it. The record comes first: after a kill at any point the next call finds by its nonce what was made, and finishes or
undoes it. An owned, clean worktree of an earlier attempt is laid out anew. A folder or branch that the Runtime did not
make is never used and never touched.
"""

import contextlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from coordinate_agents.worktrees import dirty, ownership, pins
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.examine import reread
from coordinate_agents.worktrees.files import identity, read_regular
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layout import lay_out
from coordinate_agents.worktrees.lock import creation_lock, repository_lock
from coordinate_agents.worktrees.model import (
    INTEGRATION_SLUG,
    PIN_PREFIX,
    CommitId,
    ExamineRequest,
    RepositoryFacts,
    Worktree,
)
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.position import locate
from coordinate_agents.worktrees.refs import RefChange, change_refs, read_ref, read_refs
from coordinate_agents.worktrees.register import Place, fresh_nonce, register, reserve, undo, worktree_path


@dataclass(frozen=True, slots=True)
class _Taken:
    """A registered worktree, still without the right files. `is_new`: this call made it, so a failure unmakes it.

    `branch_before` is where the branch was (None: nowhere). `earlier` is the record of a layout that was cut short.
    """

    worktree: Worktree
    is_new: bool
    branch_before: CommitId | None
    on_disk: CommitId = ""
    earlier: Record | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to make. `known_tip`: the caller vouches for an existing branch whose tip is this commit."""

    place: Place
    base: CommitId
    start: CommitId
    frozen: str
    nonce: str
    known_tip: CommitId | None


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
) -> Worktree:
    """Make the worktree at `<root>/<key>/<graph>/<slug>`, its branch at `resume_from` or at base.

    A worktree with the same `nonce` was made by a call whose caller died: it is finished, or returned when whole.
    Raises: WORKTREE_CONFLICT, DIRTY_WORKTREE, SETUP_FAILED; then no folder, registration or branch of this call
    remains.
    """
    place = Place(graph, slug, worktree_path(judge.facts, root, graph, slug))
    plan = _Plan(place, base, resume_from or base, frozen, nonce or fresh_nonce(), known_tip=resume_from)
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
            _drop_registration(judge, place, worktree)
    tip = read_ref(judge.facts.common_dir, place.ref)
    plan = _Plan(place, worktree.base, tip or worktree.base, frozen, nonce or fresh_nonce(), known_tip=tip)
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
    return _create(judge, _Plan(place, commit, commit, frozen, fresh_nonce(), known_tip=tip))


def _create(judge: Judge, plan: _Plan) -> Worktree:
    facts, place, start, frozen = judge.facts, plan.place, plan.start, plan.frozen
    with creation_lock(facts.state_dir, place.graph, place.slug):
        record = ownership.read_record(facts, place.graph, place.slug) or _proved_by_nonce(facts, plan)
        if record is not None and record.stage == "ready" and os.path.lexists(record.worktree.path):
            # Before the repository's lock: a look at many files must not keep other starters waiting.
            _require_intact(facts, record.worktree)
            if record.worktree.nonce == plan.nonce:
                return record.worktree
            _require_reusable(judge, plan, record.worktree)
        with repository_lock(facts.state_dir):
            taken = _take(judge, plan, record)
        try:
            _lay_out(judge, place, taken, start, frozen=frozen)
        except BaseException:
            if taken.is_new:
                with repository_lock(facts.state_dir):
                    _unmake(judge, place, taken.worktree, start=start, before=taken.branch_before)
            raise
        ownership.write_record(facts, place.graph, place.slug, Record(taken.worktree, "ready"))
        return taken.worktree


def _proved_by_nonce(facts: RepositoryFacts, plan: _Plan) -> Record | None:
    """What the caller's own record of the nonce proves ours when ours was lost (a power cut); None without a match."""
    place, found = plan.place, identity(plan.place.path)
    admin = ownership.find_admin(facts, plan.nonce) if found is not None else None
    if found is None or admin is None:
        return None
    worktree = Worktree(place.path, admin, place.branch, plan.base, plan.nonce, *found)
    return Record(worktree, "making") if ownership.is_intact(facts, worktree) is None else None


def _take(judge: Judge, plan: _Plan, record: Record | None) -> _Taken:
    """Call under the lock."""
    place, start = plan.place, plan.start
    if record is not None:
        left = _settle_earlier(judge, place, record)
        if left is not None:
            return _reuse(judge, plan, replace(record, worktree=left))
    if os.path.lexists(place.path):
        raise _occupied(place.path)
    tip = read_ref(judge.facts.common_dir, place.ref)
    if tip is not None and record is None and tip != plan.known_tip:
        _require_known(judge, place, tip)
    worktree = reserve(judge, place, plan.base, branch=place.branch, target=start, nonce=plan.nonce)
    try:
        _set_branch(judge, place, start)
        return _Taken(register(judge, worktree), is_new=True, branch_before=tip)
    except BaseException:
        _unmake(judge, place, worktree, start=start, before=tip)
        raise


def _settle_earlier(judge: Judge, place: Place, record: Record) -> Worktree | None:
    """What an earlier call left: the worktree to reuse, or None when nothing is left of it any more."""
    worktree = _as_registered(judge.facts, record)
    admin = worktree.admin_name
    if not os.path.lexists(worktree.path):
        _drop_registration(judge, place, worktree)
        return None
    is_whole = bool(admin) and ownership.is_intact(judge.facts, worktree) is None
    if record.stage == "making" and not is_whole and worktree.inode:
        # Killed between the folder and the end of `worktree add`: nobody was ever told of it.
        undo(judge, place, worktree)
        return None
    if record.stage == "making" and not worktree.inode:
        # Killed before our folder was noted. An empty one goes; in another one somebody's files would be lost.
        with contextlib.suppress(OSError):
            Path(worktree.path).rmdir()
        return None
    _require_intact(judge.facts, worktree)
    return worktree


def _as_registered(facts: RepositoryFacts, record: Record) -> Worktree:
    """The recorded worktree with the admin folder and the nonce that it really has."""
    worktree = record.worktree
    admin = worktree.admin_name or ownership.find_admin(facts, worktree.nonce) or ""
    worktree = ownership.with_admin(worktree, admin)
    is_renewed = (
        record.next_nonce
        and admin
        and ownership.is_locked_with(ownership.admin_dir(facts, worktree), record.next_nonce)
    )
    return replace(worktree, nonce=record.next_nonce) if is_renewed else worktree


def _drop_registration(judge: Judge, place: Place, worktree: Worktree) -> None:
    """Forget a registration of ours whose folder is gone; what only it holds is pinned first."""
    if worktree.admin_name and ownership.registration_problem(judge.facts, worktree) is None:
        pins.keep(judge, place.graph, place.slug, worktree)
        ownership.remove_registration(judge.facts, worktree)


def _reuse(judge: Judge, plan: _Plan, record: Record) -> _Taken:
    """Put an owned worktree back on its branch at the start; everything that it alone held is pinned first."""
    facts, place, start, worktree = judge.facts, plan.place, plan.start, record.worktree
    pins.keep(judge, place.graph, place.slug, worktree)
    on_disk, target = record.before, record.target
    if record.stage == "ready":
        on_disk, target = locate(facts, worktree).head or "", start
    now = Record(replace(worktree, base=plan.base), "making", before=on_disk, target=target, next_nonce=plan.nonce)
    ownership.write_record(facts, place.graph, place.slug, now)
    again = ownership.renew_nonce(facts, now.worktree, plan.nonce)
    before = read_ref(facts.common_dir, place.ref)
    _set_branch(judge, place, start, own_admin=worktree.admin_name)
    judge.user_git("symbolic-ref", "HEAD", place.ref, git_dir=ownership.admin_dir(facts, worktree))
    earlier = replace(now, worktree=again) if target != start else None
    return _Taken(again, is_new=False, branch_before=before, on_disk=on_disk, earlier=earlier)


def _lay_out(judge: Judge, place: Place, taken: _Taken, start: CommitId, *, frozen: str) -> None:
    """Write the files. A layout that was cut short is finished first, so that no file of it stays as untracked."""
    worktree, on_disk = taken.worktree, taken.on_disk
    if taken.earlier is not None and taken.earlier.target:
        lay_out(judge, worktree, taken.earlier.target, frozen=frozen, on_disk=on_disk)
        on_disk = taken.earlier.target
        now = Record(worktree, "making", before=on_disk, target=start)
        ownership.write_record(judge.facts, place.graph, place.slug, now)
    lay_out(judge, worktree, start, frozen=frozen, on_disk=on_disk)


def _unmake(judge: Judge, place: Place, worktree: Worktree, *, start: CommitId, before: CommitId | None) -> None:
    """Undo a creation of this call; the branch goes back to where it was, unless somebody moved it since."""
    undo(judge, place, worktree)
    if before != start and read_ref(judge.facts.common_dir, place.ref) == start:
        change_refs(judge, [RefChange(place.ref, before, start)])


def _require_intact(facts: RepositoryFacts, worktree: Worktree) -> None:
    wrong = ownership.is_intact(facts, worktree)
    if wrong is not None:
        raise WorktreeError(
            "WORKTREE_CONFLICT",
            f"The worktree {worktree.path} is damaged: {wrong}.",
            kept="its files and its branch",
            next=f"move {worktree.path} away, then try again",
        )


def _require_reusable(judge: Judge, plan: _Plan, worktree: Worktree) -> None:
    """Raise DIRTY_WORKTREE unless the folder holds nothing but what its HEAD has and the base ignores.

    In the integration's worktree untracked files may stay that a check left, if they are in no file's way.
    """
    position, place = locate(judge.facts, worktree), plan.place
    why = None
    if position.lock is not None:
        why = f"{position.lock} is in the way"
    elif position.operation is not None:
        why = f"a {position.operation} is in progress"
    elif place.slug == INTEGRATION_SLUG and position.head is not None:
        found = dirty.look(judge, worktree, position.head, frozen=plan.frozen)
        paths = [entry.path for entry in found.tracked] or _in_the_way(judge, plan.start, found.untracked)
        why = f"{len(paths)} files would be overwritten, first {paths[0]!r}" if paths else None
    else:
        request = ExamineRequest(worktree, place.graph, place.slug, worktree.base, plan.frozen)
        head, count = reread(judge, request)
        why = "its HEAD names no commit" if head is None else f"{count} changed or untracked files" if count else None
    if why is not None:
        raise WorktreeError(
            "DIRTY_WORKTREE",
            f"The worktree {worktree.path} cannot be used again: {why}.",
            kept="everything in it, and its branch",
            next=f"git -C {shlex.quote(worktree.path)} status",
        )


def _in_the_way(judge: Judge, commit: CommitId, untracked: Sequence[str]) -> list[str]:
    """Untracked paths where the commit has a file, needs a folder, or has a file for one of their folders."""
    if not untracked:
        return []
    files = set(judge.git("ls-tree", "-r", "-z", "--name-only", commit).fields())
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    taken = files | folders
    return [
        path
        for path in untracked
        if path.rstrip("/") in taken or any(str(parent) in files for parent in PurePosixPath(path).parents)
    ]


def _set_branch(judge: Judge, place: Place, start: CommitId, *, own_admin: str = "") -> None:
    """Make the branch, or move it to `start`; its old tip is pinned, and nobody has it checked out."""
    tip = read_ref(judge.facts.common_dir, place.ref)
    if tip == start:
        return
    if tip is not None:
        holder = _checked_out_in(judge.facts, place.ref, own_admin)
        if holder is not None:
            raise WorktreeError(
                "WORKTREE_CONFLICT",
                f"Branch {place.branch} is checked out in {holder}.",
                kept=f"branch {place.branch} is untouched",
                next=f"switch {holder} to another branch",
            )
        pins.pin(judge, place.graph, place.slug, kind="kept", commit=tip)
    try:
        change_refs(judge, [RefChange(place.ref, start, tip or "")])
    except WorktreeError as error:
        error.next = error.next or "git branch --list 'coordinate-agents*'"
        raise


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


def _checked_out_in(facts: RepositoryFacts, ref: str, own_admin: str) -> str | None:
    """The git dir of a checkout whose HEAD is on the branch, other than our own worktree."""
    common = Path(facts.common_dir)
    try:
        admins = [Path(entry.path) for entry in os.scandir(common / "worktrees") if entry.name != own_admin]
    except OSError:
        admins = []
    wanted = os.fsencode(f"ref: {ref}")
    for git_dir in (common, *admins):
        if (read_regular(git_dir / "HEAD", 4096) or b"").strip() == wanted:
            return str(git_dir)
    return None


def _occupied(path: str) -> WorktreeError:
    return WorktreeError(
        "WORKTREE_CONFLICT",
        f"{path} exists already and was not made by the Runtime.",
        kept="it is untouched, and no branch was made",
        next=f"move {path} away, then try again",
    )
