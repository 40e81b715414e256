"""Commits what a turn left in a worktree, under the Runtime's author, with plumbing and a private index.

What goes in: every tracked change and every untracked file that the base does not ignore. What never does: ignored
files, those that setup left or that were copied in, files over the limit, nested repositories. Hooks, signing, the
worktree's index and its flags take no part. Afterwards the worktree's own index matches, so `git status` is clean.

Order: objects, then the branch by compare-and-swap, then the index. A crash before the swap leaves unreachable objects;
after it an old index, which the next call writes again where it holds nothing that is in no commit.
"""

import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.contents import staged_alone
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.dirty import compare, is_below, unlisted
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.judge_settings import RUNTIME_EMAIL, RUNTIME_NAME
from coordinate_agents.worktrees.merge import write_commit
from coordinate_agents.worktrees.model import CommitId, CommitOutcome, CommitRequest, Worktree
from coordinate_agents.worktrees.nested import inspect
from coordinate_agents.worktrees.ownership import admin_dir
from coordinate_agents.worktrees.position import Position, locate
from coordinate_agents.worktrees.survey import survey

_ADD_TIMEOUT_S: Final = 600.0
_MAX_LEFT_OUT: Final = 200
_MAX_SUBJECT: Final = 200


def commit_leftovers(judge: Judge, request: CommitRequest) -> CommitOutcome:
    """Commit on the worktree's branch what is not in its head. `commit` None: nothing to commit, or `refused` says why.

    Repeated after a death it is the head that was made then; said of a turn before, it is still that head.
    Refused when HEAD is not on the Runtime's branch, an operation is in progress, there is a lock, git cannot read what
    is there, or the branch moved meanwhile; then no ref, index or file was changed, and an examination tells the rest.
    Raises: WorktreeError when the disk is full.
    """
    position = locate(judge.facts, request.worktree)
    refused = _obstacle(judge, request.worktree, position)
    if refused is not None or position.head is None:
        return CommitOutcome(None, refused=refused)
    try:
        return _commit(judge, request, position.head)
    except WorktreeError as error:
        if error.code != "INTERNAL_ERROR":
            raise
        return CommitOutcome(None, refused=error.message)


def _commit(judge: Judge, request: CommitRequest, head: CommitId) -> CommitOutcome:
    worktree = request.worktree
    with judge.temporary_index() as index:
        judge.git("read-tree", head, index=index)
        wanted, left_out = _choose(judge, request, head, index)
        if wanted:
            _add(judge, request, wanted, index)
        tree = judge.git("write-tree", index=index, write_objects=True).text if wanted else judge.tree_of(head)
        if tree == judge.tree_of(head):
            is_made = _is_made_by(judge, request, head)
            if is_made and staged_alone(judge, worktree, head) == ((), False):
                _install_index(judge, worktree, Path(index))
            return CommitOutcome(head if is_made else None, left_out)
        commit = write_commit(judge, tree, [head], date=int(time.time()), message=_message(request))
        crash_point("leftovers.written")
        refused = move_branch(judge, worktree, old=head, new=commit)
        if refused is not None:
            return CommitOutcome(None, left_out, refused)
        crash_point("leftovers.moved")
        _install_index(judge, worktree, Path(index))
        crash_point("leftovers.indexed")
    return CommitOutcome(commit, left_out)


def _is_made_by(judge: Judge, request: CommitRequest, head: CommitId) -> bool:
    """Whether the head is what this very request made before."""
    known, wanted = judge.commits.read(head), _message(request)
    if head == request.worktree.base or known is None or known.subject != wanted.partition("\n")[0]:
        return False
    lines, _, message = judge.git("cat-file", "commit", head).text.partition("\n\n")
    return f"\nauthor {RUNTIME_NAME} <{RUNTIME_EMAIL}> " in lines and message.strip() == wanted.strip()


def _obstacle(judge: Judge, worktree: Worktree, position: Position) -> str | None:
    """Why no commit may be made where the worktree stands; None when one may."""
    if position.state != "on-branch":
        where = f"on {position.branch}" if position.branch else position.state
        return f"HEAD is {where} instead of on {worktree.branch}"
    if position.operation is not None:
        return f"a {position.operation} is in progress"
    if position.lock is not None:
        return f"{position.lock} exists since {position.lock_age_s or 0:.0f} s"
    if position.head is None or judge.commit(position.head) != position.head:
        return f"branch {worktree.branch} has no readable commit"
    return None


def _choose(
    judge: Judge, request: CommitRequest, head: CommitId, index: str
) -> tuple[Mapping[str, bool], tuple[tuple[str, str], ...]]:
    """Paths to commit (True: gone), and those left out with the reason, both sorted."""
    worktree = request.worktree
    around = survey(worktree.path)
    found = around.repositories
    difference = compare(judge, worktree, index, frozen=request.frozen, folder_links=around.folder_links)
    wrong = inspect(judge, worktree, head, index=index, frozen=request.frozen, around=around) if found else ()
    reasons = {entry.path: "a nested repository" for entry in wrong}
    inside = tuple(f"{repository.path}/" for repository in found)
    wanted: dict[str, bool] = {}
    kinds = {entry.path: entry.kind for entry in difference.tracked}
    for path in (*kinds, *unlisted(difference.untracked, request.baseline)):
        reason = _reason(request, path, inside, is_submodule=kinds.get(path) == "submodule")
        if reason is None:
            wanted[path] = kinds.get(path) == "deleted"
        else:
            reasons[path.rstrip("/")] = reason
    return dict(sorted(wanted.items())), tuple(sorted(reasons.items()))[:_MAX_LEFT_OUT]


def _add(judge: Judge, request: CommitRequest, wanted: Mapping[str, bool], index: str) -> None:
    """Take the paths into the private index: first those that are gone, since a new file may stand in their place."""
    for is_gone, options in ((True, ["--force-remove"]), (False, ["--add", "--remove", "--replace"])):
        paths = [path for path, gone in wanted.items() if gone is is_gone]
        if paths:
            judge.git(
                "update-index",
                *options,
                "-z",
                "--stdin",
                stdin="".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape"),
                index=index,
                work_tree=request.worktree.path,
                frozen=request.frozen,
                write_objects=True,
                timeout_s=_ADD_TIMEOUT_S,
            )


def _reason(request: CommitRequest, path: str, inside: Sequence[str], *, is_submodule: bool) -> str | None:
    """Why the path is not committed; None: it is."""
    if is_below(path, [f"{entry.rstrip('/')}/" for entry in request.leave_out]):
        return "copied or linked into the worktree"
    if is_submodule:
        return "a submodule"
    if path.endswith("/") or is_below(path, inside):
        return "a nested repository"
    try:
        found = Path(request.worktree.path, path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return "not a file or link"
    if stat.S_ISREG(found.st_mode) and found.st_size > request.max_file_bytes:
        return f"{found.st_size} bytes, more than {request.max_file_bytes}"
    return None


def _message(request: CommitRequest) -> str:
    parts = [_one_line(request.subject)[:_MAX_SUBJECT] or "Commit what the turn left"]
    if request.body.strip():
        parts.append(request.body.strip())
    trailers = "\n".join(f"{key}: {_one_line(value)}" for key, value in request.trailers)
    if trailers:
        parts.append(trailers)
    return "\n\n".join(part.replace("\0", "") for part in parts) + "\n"


def _one_line(value: str) -> str:
    return " ".join(value.split())


def move_branch(judge: Judge, worktree: Worktree, *, old: CommitId, new: CommitId) -> str | None:
    """Move the branch by compare-and-swap, and HEAD with it; None, or why it did not move."""
    order = f"start\noption no-deref\nupdate refs/heads/{worktree.branch} {new} {old}\nprepare\ncommit\n"
    git_dir = admin_dir(judge.facts, worktree)
    try:
        # Exit code 128: somebody else moved the branch, or holds its lock.
        done = judge.user_git("update-ref", "--stdin", stdin=order.encode(), ok=(0, 1, 128), git_dir=git_dir)
    except WorktreeError:
        # It was killed, or did not end: it may have moved the branch before.
        if locate(judge.facts, worktree).head == new:
            return None
        raise
    return None if done.code == 0 else f"branch {worktree.branch} could not be moved: {done.said}"


def _install_index(judge: Judge, worktree: Worktree, index: Path) -> None:
    """Put the private index in place of the worktree's own, under git's own lock."""
    target = Path(admin_dir(judge.facts, worktree), "index")
    lock = target.with_name("index.lock")
    try:
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        # The commit stands; the index is the agent's tool only and the judge never reads it.
        return
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(index.read_bytes())
        lock.replace(target)
    except OSError:
        lock.unlink(missing_ok=True)
        raise
