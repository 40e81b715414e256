"""Reserves a folder, registers it as `git worktree add` does, and undoes both: the part of a creation under the lock.

The record comes before the folder and names a nonce that is then written into the admin folder, so whatever a killed
call left can be found and proved ours. Success is judged by looking, never by git's exit code.
"""

import os
import re
import secrets
import stat
from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import identity, read_regular, remove_tree
from coordinate_agents.worktrees.git import GitResult
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, RepositoryFacts, Worktree, branch_name, branch_ref
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.plain_register import drop_claims, register_plainly
from coordinate_agents.worktrees.values import value_class

ADD_TIMEOUT_S: Final = 60.0
_NONCE_BYTES: Final = 16
# What git says when another add, or the user's own prune, changed the admin folders under it: prune takes a folder that
# is not locked yet ("could not open '…/worktrees/api/locked' for writing: No such file or directory"), and a half-made
# one is seen by an add ("failed to read …/commondir: Success"). The next try succeeds.
_KNOWN_RACE: Final = re.compile(rb"/worktrees/[^\n]*: (?:Success|No such file or directory)")
_MAX_ADDS: Final = 5


@value_class
class Place:
    """Where a worktree goes: `graph` and `slug` name it, `path` is its folder with links resolved."""

    graph: str
    slug: str
    path: str

    @property
    def branch(self) -> str:
        return branch_name(self.graph, self.slug)

    @property
    def ref(self) -> str:
        return branch_ref(self.graph, self.slug)


def worktree_path(facts: RepositoryFacts, root: str, graph: str, slug: str) -> str:
    """The folder of a worktree, links in the root resolved. Raises: WORKTREE_CONFLICT inside the user's repository."""
    top = os.path.realpath(root)
    for inside in {facts.root, facts.common_dir, facts.git_dir}:
        if Path(top).is_relative_to(inside):
            raise WorktreeError(
                "WORKTREE_CONFLICT",
                f"The worktree root {root} lies inside the repository {inside}.",
                kept="nothing was changed",
                next="choose a folder outside the checkout with --worktree-root",
            )
    return str(Path(top, facts.key, graph, slug))


def reserve(
    judge: Judge, place: Place, base: CommitId, *, branch: str, target: CommitId, nonce: str | None = None
) -> Worktree:
    """Note a new worktree and make its empty folder; nobody else can have it then. Call under the lock.

    `branch` empty: it will be detached at base. `target`: the commit whose files it will get.
    """
    path = Path(place.path)
    make_private_folders(path.parent)
    draft = Worktree(place.path, "", branch, base, nonce or fresh_nonce(), 0, 0)
    ownership.write_record(judge.facts, place.graph, place.slug, Record(draft, "making", target=target))
    crash_point("tree.reserving")
    try:
        path.mkdir(mode=0o700)
        crash_point("tree.folder")
    except OSError as error:
        ownership.forget_record(judge.facts, place.graph, place.slug)
        raise WorktreeError("WORKTREE_CONFLICT", f"{place.path} cannot be made: {error.strerror}.") from error
    found = identity(place.path)
    assert found is not None
    made = replace(draft, device=found[0], inode=found[1])
    ownership.write_record(judge.facts, place.graph, place.slug, Record(made, "making", target=target))
    crash_point("tree.reserved")
    return made


def fresh_nonce() -> str:
    return secrets.token_hex(_NONCE_BYTES)


def register(judge: Judge, worktree: Worktree, *, branch_before: CommitId | None = None) -> Worktree:
    """Register the reserved folder; returns the worktree with its admin name. Call under the lock.

    `branch_before`: the commit of its branch before this creation; None: the branch is new, so nobody has it checked
    out, or there is none. Raises: WORKTREE_CONFLICT; what is half made is for the caller to `undo`.
    """
    admin = register_plainly(judge, worktree) if branch_before is None else None
    if admin is None:
        return _register_by_git(judge, worktree)
    return _usable(judge, ownership.with_admin(worktree, admin))


def _register_by_git(judge: Judge, reserved: Worktree) -> Worktree:
    worktree = reserved
    try:
        for _ in range(_MAX_ADDS):
            worktree = _with_folder(worktree)
            result = _add(judge, worktree, worktree.branch or worktree.base)
            admin = ownership.registered_admin(judge.facts, worktree)
            if admin is not None or _KNOWN_RACE.search(result.err) is None:
                break
        if admin is None:
            raise WorktreeError("WORKTREE_CONFLICT", f"git worktree add failed: {result.said or 'no message'}")
        return _usable(judge, ownership.with_admin(worktree, admin), said=result.said)
    except BaseException:
        if worktree is not reserved:  # the caller's `undo` knows only the folder that it reserved
            remove_tree(worktree.path, (worktree.device, worktree.inode))
        raise


def _usable(judge: Judge, made: Worktree, *, said: str = "") -> Worktree:
    """The worktree, when everything of it is as it should be. Raises: WORKTREE_CONFLICT."""
    wrong = ownership.is_intact(judge.facts, made) or _wrong_head(judge, made)
    if wrong is not None:
        raise WorktreeError("WORKTREE_CONFLICT", f"The new worktree is not usable: {wrong}. {said}".rstrip())
    return made


def _with_folder(worktree: Worktree) -> Worktree:
    """The worktree with its folder there: an add that failed takes the folder along, and the next one needs its own.

    Raises: WORKTREE_CONFLICT when somebody else put something there meanwhile.
    """
    if identity(worktree.path) == (worktree.device, worktree.inode):
        return worktree
    try:
        Path(worktree.path).mkdir(mode=0o700)
    except OSError as error:
        raise WorktreeError("WORKTREE_CONFLICT", f"{worktree.path} cannot be made: {error.strerror}.") from error
    found = identity(worktree.path)
    assert found is not None
    return replace(worktree, device=found[0], inode=found[1])


def undo(judge: Judge, place: Place, worktree: Worktree) -> None:
    """Remove what a failed creation made: registration, files, record, empty folders. Call under the lock."""
    admin = worktree.admin_name or ownership.find_admin(judge.facts, worktree.nonce)
    if admin:
        ownership.remove_registration(judge.facts, ownership.with_admin(worktree, admin))
    else:
        drop_claims(judge.facts, worktree)
    if worktree.inode:
        remove_tree(worktree.path, (worktree.device, worktree.inode))
    ownership.forget_record(judge.facts, place.graph, place.slug)
    remove_empty_parents(Path(worktree.path))


def make_private_folders(folder: Path) -> None:
    """Make missing folders with 0700. The last two must be real folders of ours, not what another user put there.

    Raises: WORKTREE_CONFLICT.
    """
    is_there = os.path.isdir(folder)  # noqa: PTH112
    for path in () if is_there else reversed([folder, *folder.parents]):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            if path.is_dir():
                continue  # "/" and mounts that nobody may write to answer otherwise
            raise WorktreeError("WORKTREE_CONFLICT", f"{path} cannot be made: {error.strerror}.") from error
    for path in (folder.parent, folder):
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise WorktreeError(
                "WORKTREE_CONFLICT",
                f"{path} is not a folder of yours.",
                kept="it is untouched",
                next="choose another worktree root with --worktree-root",
            )


def remove_empty_parents(path: Path, *, count: int = 2) -> None:
    """Remove the graph's and the repository's folder (the `count` folders above) when nothing is left in them."""
    for folder in list(path.parents)[:count]:
        try:
            folder.rmdir()
        except OSError:
            return


def _add(judge: Judge, worktree: Worktree, target: str) -> GitResult:
    detach = () if worktree.branch else ("--detach",)
    return judge.user_git(
        "worktree",
        "add",
        "--quiet",
        "--lock",
        "--reason",
        ownership.lock_reason(worktree.nonce),
        "--no-checkout",
        *detach,
        "--",
        worktree.path,
        target,
        ok=range(256),
        timeout_s=ADD_TIMEOUT_S,
    )


def _wrong_head(judge: Judge, worktree: Worktree) -> str | None:
    head = (read_regular(f"{ownership.admin_dir(judge.facts, worktree)}/HEAD", 4096) or b"").decode().strip()
    wanted = f"ref: refs/heads/{worktree.branch}" if worktree.branch else worktree.base
    return None if head == wanted else f"its HEAD is {head!r} instead of {wanted!r}"
