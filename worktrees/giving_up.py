"""Takes a worktree back from a merge, or from changes by hand, to a clean commit on its branch.

Everything that stands there is kept first by a pinned commit, and by pins of what only its reflogs hold. Then the
tracked files go back; untracked ones stay where they are, as after `git merge --abort`.

Order: pins; record "making" with what is on the disk and what comes; files, branch, HEAD; record "ready". A call that
was cut short is begun again: what was kept stays kept.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership, pins
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layout import lay_out
from coordinate_agents.worktrees.lock import creation_lock, repository_lock
from coordinate_agents.worktrees.mid_merge import forget_merge
from coordinate_agents.worktrees.model import CommitId, RemovalRequest, Worktree
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.position import locate
from coordinate_agents.worktrees.register import Place
from coordinate_agents.worktrees.reuse import require_intact, set_branch
from coordinate_agents.worktrees.set_aside import set_aside

_INDEX_TIMEOUT_S: Final = 120.0


def give_up(
    judge: Judge, graph: str, slug: str, worktree: Worktree, target: CommitId, *, frozen: str
) -> CommitId | None:
    """Leave the worktree clean on its branch at the target; the commit that keeps what was there, None: nothing was.

    Raises: CLEANUP_REFUSED when something there cannot be kept so; WORKTREE_CONFLICT for a damaged one, or a lock.
    """
    require_intact(judge.facts, worktree)
    with creation_lock(judge.facts.state_dir, graph, slug):
        kept = set_aside(judge, RemovalRequest(worktree, graph, slug, frozen))
        pins.keep(judge, graph, slug, worktree)
        crash_point("giving.kept")
        place = Place(graph, slug, worktree.path)
        back = replace(worktree, base=target)
        there = _tracked_tree(judge, worktree)
        making = Record(back, "making", before=there, target=target)
        ownership.write_record(judge.facts, graph, slug, making)
        crash_point("giving.recorded")
        with repository_lock(judge.facts.state_dir):
            set_branch(judge, place, target, own_admin=worktree.admin_name)
            judge.user_git("symbolic-ref", "HEAD", place.ref, git_dir=ownership.admin_dir(judge.facts, worktree))
        forget_merge(judge.facts, worktree)
        crash_point("giving.moved")
        lay_out(judge, worktree, target, frozen=frozen, on_disk=there)
        judge.layouts.forget(worktree)
        ownership.write_record(judge.facts, graph, slug, Record(back, "ready"))
    return kept


def _tracked_tree(judge: Judge, worktree: Worktree) -> str:
    """A tree with every path that the worktree's own index has, in conflict or not: what git put there, or was told."""
    admin = Path(ownership.admin_dir(judge.facts, worktree))
    listed = judge.user_git("ls-files", "-s", "-z", git_dir=str(admin), timeout_s=_INDEX_TIMEOUT_S, max_bytes=256 << 20)
    entries: dict[str, str] = {}
    for field in listed.fields():
        meta, _, path = field.partition("\t")
        mode, oid, _ = meta.split(" ")
        entries[path] = f"{mode} {oid}\t{path}"
    if not entries:
        head = locate(judge.facts, worktree).head or worktree.base
        return judge.tree_of(head)
    text = "".join(f"{line}\0" for line in entries.values()).encode("utf-8", "surrogateescape")
    with judge.temporary_index() as index:
        judge.git("update-index", "--add", "--replace", "-z", "--index-info", stdin=text, index=index)
        return judge.git("write-tree", "--missing-ok", index=index, write_objects=True).text
