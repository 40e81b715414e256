"""Makes and removes a detached worktree at one commit, in which a check runs.

It is owned like a subtask's worktree (record, lock reason, device, inode) and removed without asking what is in it:
only a check worked there. What cannot be proved ours is refused and stays.
"""

import os
import secrets
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import remove_tree
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layout import lay_out
from coordinate_agents.worktrees.lock import repository_lock
from coordinate_agents.worktrees.model import CommitId, RepositoryFacts, Worktree
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.register import Place, register, remove_empty_parents, reserve, undo, worktree_path

# No slug begins with "+", so these folders and records are never those of a subtask.
_FOLDER: Final = "+check"
_RECORD: Final = "+check-"


def pristine(judge: Judge, graph: str, slug: str, commit: CommitId, *, root: str, frozen: str) -> Worktree:
    """A fresh detached worktree at the commit. Raises: WorktreeError; a failure leaves nothing."""
    name = f"{slug}-{secrets.token_hex(6)}"
    path = Path(worktree_path(judge.facts, root, graph, _FOLDER), name)
    place = Place(graph, _RECORD + name, str(path))
    with repository_lock(judge.facts.state_dir):
        worktree = reserve(judge, place, commit, branch="", target=commit)
        try:
            worktree = register(judge, worktree)
        except BaseException:
            undo(judge, place, worktree)
            raise
    crash_point("pristine.registered")
    try:
        lay_out(judge, worktree, commit, frozen=frozen)
    except BaseException:
        with repository_lock(judge.facts.state_dir):
            undo(judge, place, worktree)
        raise
    ownership.write_record(judge.facts, graph, place.slug, Record(worktree, "ready"))
    crash_point("pristine.ready")
    return worktree


def remove_pristine(judge: Judge, worktree: Worktree) -> None:
    """Remove a worktree that `pristine` made; no error when it is gone already. Raises: CLEANUP_REFUSED."""
    path = Path(worktree.path)
    if path.parent.name != _FOLDER or worktree.branch:
        raise _refused(worktree, "it is no worktree of a check")
    if os.path.lexists(path):
        wrong = ownership.is_intact(judge.facts, worktree)
        if wrong is not None and not _is_only_unlinked(judge.facts, worktree):
            raise _refused(worktree, wrong)
    if not remove_tree(worktree.path, (worktree.device, worktree.inode)):
        raise _refused(worktree, "its folder was replaced by another one")
    crash_point("pristine.removed")
    with repository_lock(judge.facts.state_dir):
        # A crash between the folder and here leaves a registration that its nonce proves ours: the next call takes it.
        if not ownership.remove_registration(judge.facts, worktree):
            raise _refused(worktree, "its registration is no longer locked by the Runtime")
        crash_point("pristine.unregistered")
        ownership.forget_record(judge.facts, path.parent.parent.name, _RECORD + path.name)
        # Under the lock: another start must not lose the folder that it is about to use.
        remove_empty_parents(path, count=3)


def left_pristine(facts: RepositoryFacts, graph: str) -> tuple[Worktree, ...]:
    """Worktrees of checks that were not removed, because the process that ran the check died."""
    slugs = sorted(slug for slug in ownership.recorded_slugs(facts, graph) if slug.startswith(_RECORD))
    records = (ownership.read_record(facts, graph, slug) for slug in slugs)
    return tuple(
        ownership.with_admin(
            record.worktree,
            record.worktree.admin_name or ownership.find_admin(facts, record.worktree.nonce) or "",
        )
        for record in records
        if record is not None
    )


def _is_only_unlinked(facts: RepositoryFacts, worktree: Worktree) -> bool:
    """Whether a check merely removed or replaced the `.git` file: folder, files and registration still prove it ours.

    A folder that a check emptied can be nobody's loss.
    """
    is_same = ownership.is_same_folder(worktree) and ownership.registration_problem(facts, worktree) is None
    return is_same and (not os.listdir(worktree.path) or ownership.holds_own_file(facts, worktree))  # noqa: PTH208


def _refused(worktree: Worktree, why: str) -> WorktreeError:
    return WorktreeError(
        "CLEANUP_REFUSED",
        f"{worktree.path} was not removed: {why}.",
        kept=worktree.path,
        next=f"look at {worktree.path} and remove it yourself",
    )
