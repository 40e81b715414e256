"""Makes a verified commit survive a power cut, before anybody records that it is verified.

git writes loose objects and refs without fsync (`core.fsync` leaves both out, seen with strace), so a commit that was
judged may be empty files after a power cut, while the record of it, in the database, is there. Order: every object of
the commit is found and synced, then the pin is made and synced, then the caller records. A crash in between leaves a
pin without a record, which the next verification finds again.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Final

from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import PIN_PREFIX, CommitId
from coordinate_agents.worktrees.ownership import read_record
from coordinate_agents.worktrees.pins import pin
from coordinate_agents.worktrees.refs import TIPS_SLUG, read_refs
from coordinate_agents.worktrees.tree_objects import loose_paths

_MAX_LIST_BYTES: Final = 256 << 20
_TIMEOUT_S: Final = 300.0
# Above this many files one sync of everything costs less than one for each.
_MAX_SINGLE_SYNCS: Final = 256


def pin_verified(judge: Judge, graph: str, slug: str, commit: CommitId) -> str:
    """Pin a commit as `verified-<n>`, after it and its objects were written through to the disk; the pin's name.

    Raises: EVIDENCE_REJECTED when an object of the commit is missing.
    """
    record = read_record(judge.facts, graph, slug)
    known = [record.worktree.base] if record is not None else pinned_tips(judge, graph)
    secure(judge, known, commit)
    crash_point("pin.secured")
    name = pin(judge, graph, slug, kind="verified", commit=commit)
    crash_point("pin.made")
    sync_ref(judge, name)
    return name


def pinned_tips(judge: Judge, graph: str) -> list[CommitId]:
    """The commits of the user's refs as they were pinned: what was there before the graph, and is on the disk."""
    tips = read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{graph}/{TIPS_SLUG}"])
    return [oid for oid in tips.values() if judge.commit(oid)]


def sync_ref(judge: Judge, name: str) -> None:
    """Write a ref that has a file of its own through to the disk; a packed one was synced by git."""
    _sync_with_folders(judge.facts.common_dir, [f"{judge.facts.common_dir}/{name}"])


def secure(judge: Judge, known: Sequence[CommitId], commit: CommitId) -> None:
    """Write every loose object that `commit` has and `known` have not through to the disk. Packs are synced by git.

    Raises: EVIDENCE_REJECTED when one is missing.
    """
    objects = judge.user_objects
    loose = _few_new(judge, known[0], commit) if len(known) == 1 else None
    if loose is None:
        listed = _listed(judge, known, commit)
        loose = [path for oid in listed if os.path.exists(path := f"{objects}/{oid[:2]}/{oid[2:]}")]  # noqa: PTH110
    if len(loose) > _MAX_SINGLE_SYNCS:
        os.sync()
    else:
        _sync_with_folders(objects, loose)


def _few_new(judge: Judge, base: CommitId, commit: CommitId) -> list[str] | None:
    """The files of all objects that commit has and base has not; None when they are many, packed, or one is gone."""
    short = None if judge.is_shallow else judge.commits.between(base, [commit])
    added = None if short is None else judge.trees.added(base, short)
    return None if added is None else loose_paths(judge.user_objects, added)


def _listed(judge: Judge, known: Sequence[CommitId], commit: CommitId) -> list[str]:
    asked = "".join(f"{line}\n" for line in (commit, *(f"^{oid}" for oid in known))).encode()
    args = ["rev-list", "--objects", "--no-object-names", "--stdin"]
    listed = judge.git(*args, stdin=asked, ok=(0, 128), max_bytes=_MAX_LIST_BYTES, timeout_s=_TIMEOUT_S)
    if listed.code != 0:
        raise WorktreeError(
            "EVIDENCE_REJECTED",
            f"Commit {commit} cannot be read with all its objects: {listed.said}",
            kept="the worktree and its branch",
            next="git fsck --connectivity-only",
        )
    return listed.lines()


def _sync_with_folders(top: str, files: Iterable[str]) -> None:
    """Sync the files below `top` that exist, then the folders from theirs up to it: a name is durable with its folder.

    The files' names begin with that of `top`.
    """
    folders: dict[str, None] = {}
    for path in files:
        if _sync(path):
            above = path.rpartition("/")[0]
            while len(above) > len(top):
                folders[above] = None
                above = above.rpartition("/")[0]
    for folder in [*folders, top] if folders else []:
        _sync(folder)


def _sync(path: str) -> bool:
    """Whether there was something to sync."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return True
