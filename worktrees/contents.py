"""What a worktree holds beside the files of its head, and whether removing it would lose any of it. Changes nothing.

Contract section 6, facts 3 and 4, with the judge's own index and the base's rules, and what only a removal endangers: a
staged version that is in no commit, a copied file that was edited, a folder that cannot be read, an operation half
done. In doubt it stays.
"""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership, refusals
from coordinate_agents.worktrees.dirty import (
    DIRTY_TIMEOUT_S,
    MAX_LIST_BYTES,
    Place,
    compare,
    ignored_by_agent,
    is_below,
    unlisted,
)
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import (
    CommitId,
    DirtyPath,
    HeldFile,
    Refused,
    RemovalRequest,
    RepositoryFacts,
    Worktree,
)
from coordinate_agents.worktrees.nested import inspect
from coordinate_agents.worktrees.ownership import admin_dir
from coordinate_agents.worktrees.position import Position, read_position
from coordinate_agents.worktrees.survey import survey
from coordinate_agents.worktrees.values import value_class

_ZERO: Final = "0"


@value_class
class Seen:
    """What is there. `tracked` differ from head; `left` are untracked and kept by no rule; `hidden` of them are those
    that only the agent's rules ignore; `extra` may go (ignored by the base, or left by setup); `wrong` are nested
    repositories and submodules that hold something. `staged` is in the index and in no commit.
    """

    position: Position
    head: CommitId
    tracked: tuple[DirtyPath, ...] = ()
    left: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    wrong: tuple[DirtyPath, ...] = ()
    unreadable: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    is_index_broken: bool = False
    copied: tuple[str, ...] = ()


def not_ours(facts: RepositoryFacts, worktree: Worktree, *, is_aside: bool = False) -> Refused | None:
    """Why the worktree cannot be proved ours and in its place; None when it is. `is_aside`: its folder was found."""
    problem = ownership.registration_problem(facts, worktree) if is_aside else ownership.is_intact(facts, worktree)
    if problem is None:
        return None
    lock = ownership.lock_text(facts, worktree)
    if problem == ownership.UNLOCKED:
        return refusals.locked(worktree, lock)
    if problem == ownership.LINKED:
        return refusals.linked(worktree)
    return refusals.foreign(worktree, problem)


def look(judge: Judge, request: RemovalRequest, *, at: str) -> Seen | Refused:
    """What is in the folder `at`, which the caller proved to be that of the worktree."""
    position = read_position(judge.facts, request.worktree)
    head = position.head or (request.lost_tip if position.state == "on-branch" else None)
    if head is None or judge.commit(head) != head:
        return refusals.without_head(request.worktree)
    here = replace(request.worktree, path=at)
    around = survey(at)
    with judge.temporary_index() as index:
        judge.git("read-tree", head, index=index)
        difference = compare(judge, here, index, frozen=request.frozen, folder_links=around.folder_links)
        wrong = inspect(judge, here, head, index=index, frozen=request.frozen, around=around)
        # Every file that the index does not have, ignored ones too; a repository is one entry that ends in `/`.
        others = Place(judge, here, index, request.frozen).fields("ls-files", "-z", "-o")
    left = unlisted(difference.untracked, request.baseline)
    nested = [f"{entry.path}/" for entry in wrong if entry.kind in ("nested", "submodule")]
    left = tuple(path for path in left if not is_below(path, nested))
    kept = {*left, *nested}
    staged, is_broken = staged_alone(judge, request.worktree, head)
    return Seen(
        position,
        head,
        tracked=difference.tracked,
        left=left,
        hidden=ignored_by_agent(judge, here, left, frozen=request.frozen),
        extra=tuple(path for path in others if path not in kept and not is_below(path, nested)),
        wrong=tuple(entry for entry in wrong if entry.kind in ("nested", "submodule")),
        unreadable=around.unreadable,
        staged=staged,
        is_index_broken=is_broken,
        copied=changed_copies(Path(judge.facts.root), Path(at), request.copies),
    )


def refusal_of(judge: Judge, request: RemovalRequest, seen: Seen) -> Refused | None:
    """Why what is there keeps the worktree; None when it may go."""
    worktree, extra = request.worktree, {entry.rstrip("/") for entry in seen.extra}
    if seen.position.operation is not None:
        return refusals.operation(worktree, seen.position.operation)
    if seen.position.state in ("detached", "other-branch") and not _is_held(judge, worktree, seen):
        if seen.position.branch is not None:
            return refusals.other_branch(worktree, seen.head, seen.position.branch)
        return refusals.detached(worktree, seen.head)
    if seen.wrong:
        return refusals.nested(worktree, [entry.path for entry in seen.wrong])
    if seen.tracked:
        return refusals.dirty([entry.path for entry in seen.tracked], seen.left)
    if len(seen.left) > len(seen.hidden):
        return refusals.untracked([path for path in seen.left if path not in seen.hidden])
    if seen.hidden:
        return refusals.hidden(seen.hidden)
    if seen.unreadable:
        return refusals.unreadable(worktree, seen.unreadable)
    if seen.is_index_broken:
        return refusals.broken_index(worktree)
    if seen.staged:
        return refusals.staged(seen.staged)
    if seen.copied:
        return refusals.copied(seen.copied)
    if request.ignored is not None and (new := sorted(extra - {path.rstrip("/") for path in request.ignored})):
        return refusals.changed(new)
    return None


def held_files(top: str, paths: Sequence[str]) -> tuple[HeldFile, ...]:
    """The paths with their sizes; a repository counts as one with everything in it."""
    return tuple(HeldFile(path, _size(Path(top, path))) for path in sorted(paths))


def fingerprint(top: str, seen: Seen, *, index: Path) -> str:
    """Names exactly what is there: the same text only for the same head, index and contents."""
    digest = hashlib.sha256(f"{seen.head}\n".encode())
    _, staged = describe(index)
    digest.update(bytes.fromhex(staged) if staged else hashlib.sha256().digest())
    paths = sorted({*(entry.path for entry in seen.tracked), *seen.left, *seen.extra})
    for path in paths:
        mode, content = describe(Path(top, path))
        digest.update(f"{mode}\0{content}\0".encode() + os.fsencode(path) + b"\0")
    return digest.hexdigest()[:16]


def describe(path: Path) -> tuple[str, str]:
    """What stands at the path, as git's mode (empty: nothing that git knows), and a digest of its content."""
    mode = mode_of(path)
    try:
        if mode == "120000":
            return mode, hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        if not mode:
            return "", ""
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return mode, hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "", ""


def mode_of(path: Path) -> str:
    """The mode that git gives to what stands at the path; empty when that is neither a file nor a link."""
    try:
        found = path.lstat()
    except OSError:
        return ""
    if stat.S_ISLNK(found.st_mode):
        return "120000"
    if not stat.S_ISREG(found.st_mode):
        return ""
    return "100755" if found.st_mode & stat.S_IXUSR else "100644"


def own_index(judge: Judge, worktree: Worktree) -> Path:
    """The worktree's own index: an agent's, so it may be anything."""
    return Path(admin_dir(judge.facts, worktree), "index")


@contextlib.contextmanager
def copied_index(judge: Judge, worktree: Worktree) -> Iterator[str | None]:
    """A private copy of the worktree's own index, removed afterwards; None when it cannot be read."""
    with judge.temporary_index() as index:
        try:
            shutil.copyfile(own_index(judge, worktree), index, follow_symlinks=False)
        except OSError:
            copied = None
        else:
            copied = index
        yield copied


def changed_copies(root: Path, top: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The copied files that are in the worktree and not, byte for byte, in the user's checkout."""
    found = []
    for name in names:
        for path in _files_at(top / name):
            relative = path.relative_to(top)
            if describe(path) != describe(root / relative):
                found.append(str(relative))
    return tuple(sorted(found))


def staged_alone(judge: Judge, worktree: Worktree, head: CommitId) -> tuple[tuple[str, ...], bool]:
    """Paths whose version in the worktree's own index is in no commit from base to head; whether it cannot be read.

    The index is an agent's: it only ever adds a reason to stay.
    """
    if not os.path.lexists(own_index(judge, worktree)):
        return (), False
    with copied_index(judge, worktree) as index:
        if index is None:
            return (), True
        args = ("diff-index", "--cached", "-z", "--raw", "--no-abbrev", "--no-renames", head)
        result = judge.git(*args, index=index, ok=range(256), max_bytes=MAX_LIST_BYTES)
    if result.code != 0:
        return (), True
    fields = iter(result.fields())
    staged: dict[str, str] = {}
    for meta in fields:
        oid, letter = meta.split(" ")[3:5]
        path = next(fields)
        if letter == "U" or oid.strip(_ZERO):
            staged[path] = oid if letter != "U" else ""
    if not staged:
        return (), False
    known = _known_blobs(judge, worktree.base, head)
    return tuple(sorted(path for path, oid in staged.items() if oid not in known)), False


def _known_blobs(judge: Judge, base: CommitId, head: CommitId) -> frozenset[str]:
    """Every object of the commits from base to head."""
    asked = f"{head}\n^{base}\n".encode()
    args = ("rev-list", "--objects", "--no-object-names", "--stdin")
    made = judge.git(*args, stdin=asked, max_bytes=MAX_LIST_BYTES, timeout_s=DIRTY_TIMEOUT_S).lines()
    listed = judge.git("ls-tree", "-r", "-z", base, max_bytes=MAX_LIST_BYTES).fields()
    return frozenset(made) | {entry.split("\t", 1)[0].split(" ")[2] for entry in listed}


def _is_held(judge: Judge, worktree: Worktree, seen: Seen) -> bool:
    """Whether a head beside the branch is nothing of its own: the base or the branch contains it."""
    tips = [tip for tip in (worktree.base, seen.position.branch_tip) if tip is not None]
    return any(seen.head == tip or judge.is_ancestor(seen.head, tip) for tip in tips)


def _files_at(path: Path) -> Iterator[Path]:
    """The file or link at the path, or every one below the folder there."""
    if path.is_symlink() or path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        yield from (Path(folder, name) for name in names)
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_size
            except OSError:
                continue
    return total
