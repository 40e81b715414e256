"""Looks at one worktree and says what git shows, all about the one head that is read first. Decides nothing.

Contract section 6, facts 1 to 4, 6 and 8. Head is read from files; every later question names that hash, in the judge
repository and with private indexes, so a commit that comes in between changes no answer.
"""

import os
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import untouched
from coordinate_agents.worktrees.contained import (
    containing,
    moved_onto,
    moved_root,
    sibling_refs,
    still_named,
    strays,
    without_dependents,
)
from coordinate_agents.worktrees.diff import RawChange, raw_changes
from coordinate_agents.worktrees.dirty import compare, ignored_by_agent, unlisted
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.history import History, read_history
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, DirtyPath, Examination, ExamineRequest, Worktree
from coordinate_agents.worktrees.nested import inspect
from coordinate_agents.worktrees.position import Position, locate, private_commits
from coordinate_agents.worktrees.rules import read_blobs
from coordinate_agents.worktrees.survey import survey

_SYMLINK: Final = "120000"
_MAX_LINK_BYTES: Final = 1 << 20
_MAX_REPORTED: Final = 1000


def examine(judge: Judge, request: ExamineRequest) -> Examination:
    """What git shows about the worktree now. Two git processes for an ordinary clean one. Changes nothing.

    Raises: WorktreeError EVIDENCE_REJECTED when head or what it needs cannot be read.
    """
    position = locate(judge.facts, request.worktree)
    if position.head is None:
        return _without_head(position)
    if judge.commit(position.head) != position.head:
        raise _unreadable(request, f"HEAD names {position.head}, which is not a commit that can be read")
    try:
        return _examine(judge, request, position, position.head)
    except WorktreeError as error:
        if error.code != "INTERNAL_ERROR":
            raise
        raise _unreadable(request, error.message.rstrip(".")) from error


def reread(judge: Judge, request: ExamineRequest) -> tuple[CommitId | None, int]:
    """Fact 8: head and the number of dirty paths, read again. None when the branch is not checked out any more."""
    position = locate(judge.facts, request.worktree)
    if position.head is None or position.state != "on-branch" or judge.commit(position.head) != position.head:
        return None, 0
    dirty, _ = _dirt(judge, request, position.head, None)
    return position.head, len(dirty)


def _examine(judge: Judge, request: ExamineRequest, position: Position, head: CommitId) -> Examination:
    history = read_history(judge, request.base, [head])
    siblings = sibling_refs(judge, request.graph, request.slug, request.siblings)
    changes = raw_changes(judge, request.base, head)
    dirty, hidden = _dirt(judge, request, head, changes)
    first = history.commits.get(head)
    has_base = _contains_base(judge, history, head)
    return Examination(
        head=head,
        tree=first.tree if first is not None else judge.tree_of(head),
        branch_tip=position.branch_tip,
        head_state=position.state,
        head_branch=_short(position.branch),
        operation=position.operation,
        base_is_ancestor=has_base,
        tree_differs=bool(changes),
        commit_count=len(history.commits) + (1 if history.is_cut else 0),
        subject=first.subject if first is not None else "",
        contained_in=_contained_in(judge, request, head, siblings=siblings, has_base=has_base),
        moved_user_refs=moved_onto(judge, history, request.attempt_refs),
        moved_root=moved_root(judge, request.attempt_refs),
        dirty=_shown(dirty, request.dirty_limit),
        dirty_count=len(dirty),
        ignored_by_agent=hidden,
        changed=tuple(change.path for change in changes),
        stray_commits=_strays(judge, request, history, head, siblings=siblings),
        outside_links=_outside_links(judge, request.worktree, changes),
        lock=position.lock,
        lock_age_s=position.lock_age_s,
    )


def _without_head(position: Position) -> Examination:
    return Examination(
        head=None,
        branch_tip=position.branch_tip,
        head_state=position.state,
        head_branch=_short(position.branch),
        operation=position.operation,
        lock=position.lock,
        lock_age_s=position.lock_age_s,
    )


def _contains_base(judge: Judge, history: History, head: CommitId) -> bool:
    """Whether head is base or contains it: exactly then base is met as a parent of what base does not contain."""
    if history.is_cut:
        return judge.is_ancestor(history.base, head)
    return head == history.base or (head in history.commits and history.base in history.ancestors([head]))


def _contained_in(
    judge: Judge, request: ExamineRequest, head: CommitId, *, siblings: Mapping[str, CommitId], has_base: bool
) -> tuple[str, ...]:
    """Refs that already have head. A sibling that was started on it does not count: it has it from here."""
    if head == request.base:
        return ()
    first = request.first_refs.refs
    found = containing(judge, head, {**first, **siblings}, above=request.base if has_base else None)
    if not found:
        return ()
    others = without_dependents(judge, request.graph, head, siblings)
    return containing(judge, head, {**first, **others}) if len(others) < len(siblings) else found


def _dirt(
    judge: Judge, request: ExamineRequest, head: CommitId, changes: Sequence[RawChange] | None
) -> tuple[tuple[DirtyPath, ...], tuple[str, ...]]:
    """Everything that is not in head, sorted by path, and which of it only the agent's rules ignore.

    `changes` None: it is not known whether head has new gitlinks, so they are looked for.
    """
    worktree = request.worktree
    if untouched.is_surely(judge, worktree, head, frozen=request.frozen):
        return (), ()
    around = survey(worktree.path)
    with judge.temporary_index() as index:
        judge.git("read-tree", head, index=index)
        difference = compare(judge, worktree, index, frozen=request.frozen, folder_links=around.folder_links)
        has_links = changes is None or any(change.mode == "160000" for change in changes)
        nested: tuple[DirtyPath, ...] = ()
        if around.repositories or around.unreadable or has_links:
            nested = inspect(judge, worktree, head, index=index, frozen=request.frozen, around=around)
    left = unlisted(difference.untracked, request.baseline)
    hidden = ignored_by_agent(judge, worktree, left, frozen=request.frozen)
    entries = {path: DirtyPath(path, "untracked") for path in left}
    entries |= {entry.path: entry for entry in difference.tracked}
    entries |= _named(nested, request.baseline)
    for entry in nested:
        entries.pop(f"{entry.path}/", None)
    return tuple(entries[path] for path in sorted(entries)), hidden[:_MAX_REPORTED]


def _shown(dirty: tuple[DirtyPath, ...], limit: int) -> tuple[DirtyPath, ...]:
    """At most `limit` entries, sorted by path. Nested repositories go in first: they are judged by themselves."""
    first = sorted(dirty, key=lambda entry: entry.kind not in ("nested", "submodule"))[:limit]
    return tuple(sorted(first, key=lambda entry: entry.path))


def _named(nested: Sequence[DirtyPath], baseline: Sequence[str]) -> Mapping[str, DirtyPath]:
    """Nested repositories that setup did not leave, by path."""
    return {e.path: e for e in nested if e.path not in baseline and f"{e.path}/" not in baseline}


def _strays(
    judge: Judge, request: ExamineRequest, history: History, head: CommitId, *, siblings: Mapping[str, CommitId]
) -> tuple[CommitId, ...]:
    before = request.attempt_refs
    candidates = private_commits(judge.facts, request.worktree)
    known = {request.worktree.base, *request.first_refs.refs.values(), *before.refs.values(), *siblings.values()}
    if any(oid not in known and oid not in history.commits for oid in candidates):
        known |= set(still_named(judge, before))
    return strays(judge, history, head, candidates, known=known)


def _outside_links(judge: Judge, worktree: Worktree, changes: Sequence[RawChange]) -> tuple[str, ...]:
    """Changed links of head that lead out of the worktree, are absolute or lead into a `.git`, sorted."""
    links = {change.path.path: change.oid for change in changes if change.mode == _SYMLINK}
    if not links:
        return ()
    try:
        targets = read_blobs(judge, list(links.values()), max_bytes=_MAX_LINK_BYTES)
    except WorktreeError:
        return tuple(sorted(links))[:_MAX_REPORTED]
    leaving = [path for path, oid in links.items() if _leaves(worktree.path, path, os.fsdecode(targets.get(oid, b"/")))]
    return tuple(sorted(leaving))[:_MAX_REPORTED]


def _leaves(top: str, path: str, target: str) -> bool:
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or end.split("/")[0] == ".." or ".git" in end.lower().split("/"):
        return True
    # A linked folder on the way may make `..` mean something else than it says.
    real, real_top = os.path.realpath(Path(top, path)), os.path.realpath(top)
    return real != real_top and not real.startswith(real_top + os.sep)


def _short(ref: str | None) -> str | None:
    return None if ref is None else ref.removeprefix("refs/heads/")


def _unreadable(request: ExamineRequest, why: str) -> WorktreeError:
    return WorktreeError(
        "EVIDENCE_REJECTED",
        f"{request.worktree.path} could not be judged: {why}.",
        kept="the worktree and its branch",
        next=f"git -C {request.worktree.path} fsck",
    )
