"""What an earlier creation left, and whether it may be used again: a killed one is finished, a clean one is reused.

Everything that the earlier attempt alone held is pinned before its branch moves. Changes of unknown origin are refused,
never overwritten.
"""

import contextlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from coordinate_agents.worktrees import dirty, ownership, pins, refusals
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.examine import reread
from coordinate_agents.worktrees.files import identity, read_regular
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import (
    INTEGRATION_SLUG,
    RESOLVE_PREFIX,
    CommitId,
    ExamineRequest,
    RepositoryFacts,
    Worktree,
)
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.position import locate
from coordinate_agents.worktrees.refs import RefChange, change_refs, read_ref
from coordinate_agents.worktrees.register import Place, undo
from coordinate_agents.worktrees.values import value_class


@value_class
class Plan:
    """What to make. `known_tip`: the caller vouches for an existing branch whose tip is this commit."""

    place: Place
    base: CommitId
    start: CommitId
    frozen: str
    nonce: str
    known_tip: CommitId | None


@value_class
class Taken:
    """A registered worktree, still without the right files. `is_new`: this call made it, so a failure unmakes it.

    `branch_before` is where the branch was (None: nowhere). `earlier` is the record of a layout that was cut short.
    """

    worktree: Worktree
    is_new: bool
    branch_before: CommitId | None
    on_disk: CommitId = ""
    earlier: Record | None = None


def proved_by_nonce(facts: RepositoryFacts, plan: Plan) -> Record | None:
    """What the caller's own record of the nonce proves ours when ours was lost (a power cut); None without a match."""
    place, found = plan.place, identity(plan.place.path)
    admin = ownership.find_admin(facts, plan.nonce) if found is not None else None
    if found is None or admin is None:
        return None
    worktree = Worktree(place.path, admin, place.branch, plan.base, plan.nonce, *found)
    return Record(worktree, "making") if ownership.is_intact(facts, worktree) is None else None


def settle_earlier(judge: Judge, place: Place, record: Record) -> Worktree | None:
    """What an earlier call left: the worktree to reuse, or None when nothing is left of it any more."""
    worktree = _as_registered(judge.facts, record)
    admin = worktree.admin_name
    if not os.path.lexists(worktree.path):
        drop_registration(judge, place, worktree)
        return None
    is_whole = bool(admin) and ownership.is_intact(judge.facts, worktree) is None
    if record.stage == "making" and not is_whole and worktree.inode and _is_bare(worktree.path):
        # Killed between the folder and the end of `worktree add`: nobody was ever told of it, and nothing is in it.
        undo(judge, place, worktree)
        return None
    if record.stage == "making" and not worktree.inode:
        # Killed before our folder was noted. An empty one goes; in another one somebody's files would be lost.
        with contextlib.suppress(OSError):
            Path(worktree.path).rmdir()
        return None
    require_intact(judge.facts, worktree)
    return worktree


def _is_bare(path: str) -> bool:
    """Whether the folder holds at most the `.git` file that `worktree add --no-checkout` writes."""
    try:
        return set(os.listdir(path)) <= {".git"}  # noqa: PTH208
    except OSError:
        return False


def require_intact(facts: RepositoryFacts, worktree: Worktree) -> None:
    wrong = ownership.is_intact(facts, worktree)
    if wrong is not None:
        raise WorktreeError(
            "WORKTREE_CONFLICT",
            f"The worktree {worktree.path} is damaged: {wrong}.",
            kept="its files and its branch",
            next=refusals.mending(worktree, wrong),
        )


def require_reusable(judge: Judge, plan: Plan, worktree: Worktree) -> None:
    """Raise DIRTY_WORKTREE unless the folder holds nothing but what its HEAD has and the base ignores.

    In the integration's worktree untracked files may stay that a check left, and in one in which a person merged those
    that they left, if they are in no file's way.
    """
    position, place = locate(judge.facts, worktree), plan.place
    why = None
    if position.lock is not None:
        why = f"{position.lock} is in the way"
    elif position.operation is not None:
        why = f"a {position.operation} is in progress"
    elif (place.slug == INTEGRATION_SLUG or place.slug.startswith(RESOLVE_PREFIX)) and position.head is not None:
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


def reuse_worktree(judge: Judge, plan: Plan, record: Record) -> Taken:
    """Put an owned worktree back on its branch at the start; everything that it alone held is pinned first."""
    facts, place, start, worktree = judge.facts, plan.place, plan.start, record.worktree
    pins.keep(judge, place.graph, place.slug, worktree)
    crash_point("reuse.kept")
    on_disk, target = record.before, record.target
    if record.stage == "ready":
        on_disk, target = locate(facts, worktree).head or "", start
    now = Record(replace(worktree, base=plan.base), "making", before=on_disk, target=target, next_nonce=plan.nonce)
    ownership.write_record(facts, place.graph, place.slug, now)
    crash_point("reuse.recorded")
    again = ownership.renew_nonce(facts, now.worktree, plan.nonce)
    crash_point("reuse.renewed")
    before = read_ref(facts.common_dir, place.ref)
    set_branch(judge, place, start, own_admin=worktree.admin_name)
    crash_point("reuse.branch")
    judge.user_git("symbolic-ref", "HEAD", place.ref, git_dir=ownership.admin_dir(facts, worktree))
    crash_point("reuse.head")
    earlier = replace(now, worktree=again) if target != start else None
    return Taken(again, is_new=False, branch_before=before, on_disk=on_disk, earlier=earlier)


def set_branch(judge: Judge, place: Place, start: CommitId, *, own_admin: str = "") -> None:
    """Make the branch, or move it to `start`; its old tip is pinned, and nobody has it checked out."""
    tip = read_ref(judge.facts.common_dir, place.ref)
    if tip == start:
        return
    if tip is not None:
        holder = checked_out_in(judge.facts, place.ref, own_admin)
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


def drop_registration(judge: Judge, place: Place, worktree: Worktree) -> None:
    """Forget a registration of ours whose folder is gone; what only it holds is pinned first."""
    if worktree.admin_name and ownership.registration_problem(judge.facts, worktree) is None:
        pins.keep(judge, place.graph, place.slug, worktree)
        ownership.remove_registration(judge.facts, worktree)


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


def checked_out_in(facts: RepositoryFacts, ref: str, own_admin: str) -> str | None:
    """The git dir of a checkout whose HEAD is on the branch, other than our own worktree."""
    admins = [admin for admin in ownership.admin_dirs(facts) if admin.name != own_admin]
    wanted = os.fsencode(f"ref: {ref}")
    for git_dir in (Path(facts.common_dir), *admins):
        if (read_regular(git_dir / "HEAD", 4096) or b"").strip() == wanted:
            return str(git_dir)
    return None
