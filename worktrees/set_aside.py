"""Makes one pinned commit of everything that is in a worktree, so that nothing is lost with it.

The commit's tree holds every file byte for byte, without filters or line endings: tracked, untracked and ignored ones.
Its first parent is the worktree's head; a second one holds the staged versions where they differ. What git cannot hold
is not in it: empty folders, sockets, times, owners, modes but "executable", flags of the index, an operation half done.
Nested repositories that hold something of their own are refused, since no tree can hold them.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import aside, refusals
from coordinate_agents.worktrees.contents import Seen, copied_index, held_files, look, mode_of, not_ours
from coordinate_agents.worktrees.dirty import is_below
from coordinate_agents.worktrees.durable import secure, sync_ref
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge, quote_path
from coordinate_agents.worktrees.merge import write_commit
from coordinate_agents.worktrees.model import PIN_PREFIX, CommitId, Refused, RemovalRequest
from coordinate_agents.worktrees.pins import pin
from coordinate_agents.worktrees.refs import read_refs
from coordinate_agents.worktrees.values import value_class

# What is set aside lands in the user's object store; more than this is somebody's data set, to be moved by hand.
MAX_BYTES: Final = 1 << 30
_TIMEOUT_S: Final = 900.0
_STATE: Final = "Worktree-State: "


@value_class
class SetAside:
    """What a commit of `set_aside` says: head and branch of the worktree, and the staged tree, if there is one.

    `is_detached`: HEAD was not on the worktree's own branch, but detached or (`other_branch`, a full name) on another.
    """

    commit: CommitId
    head: CommitId
    tip: CommitId | None
    is_detached: bool
    operation: str | None
    index_commit: CommitId | None
    other_branch: str | None = None


def set_aside(judge: Judge, request: RemovalRequest) -> CommitId | None:
    """The pinned `discard-<n>` commit of everything in the worktree; None when there is nothing beside its head.

    The same contents give the same commit. Raises: WorktreeError CLEANUP_REFUSED when something cannot be held by a
    commit, DISK_FULL; the worktree is as it was then.
    """
    stand = aside.find(request.worktree)
    at = aside.place_of(request.worktree, stand)
    refusal = not_ours(judge.facts, request.worktree, is_aside=stand == "aside")
    if refusal is not None:
        raise _cannot(request, refusal)
    seen = look(judge, request, at=at)
    if isinstance(seen, Refused):
        raise _cannot(request, seen)
    refusal = _unholdable(judge, request, seen, at=at)
    if refusal is not None:
        raise _cannot(request, refusal)
    tree = _tree(judge, seen, at=at, write=True)
    index = _index_tree(judge, request, seen)
    is_plain = seen.position.operation is None and seen.position.state == "on-branch"
    if is_plain and index is None and tree == judge.tree_of(seen.head):
        return None
    commit = _find(judge, request, seen, tree, index) or _commit(judge, request, seen, tree, index)
    secure(judge, [seen.head], commit)
    sync_ref(judge, pin(judge, request.graph, request.slug, kind="discard", commit=commit))
    return commit


def is_held_by(judge: Judge, request: RemovalRequest, seen: Seen, *, at: str) -> Refused | None:
    """None when the request's discard commit holds everything that is there; else why not."""
    assert request.discarded is not None
    refusal = _unholdable(judge, request, seen, at=at)
    if refusal is not None:
        return refusal
    held = read(judge, request.discarded)
    index = _index_tree(judge, request, seen)
    held_index = judge.tree_of(held.index_commit) if held.index_commit is not None else None
    tree = _tree(judge, seen, at=at, write=False)
    if (held.head, judge.tree_of(held.commit), held_index) == (seen.head, tree, index):
        return None
    return refusals.changed([entry.path for entry in seen.tracked] or list(seen.left or seen.extra))


def read(judge: Judge, commit: CommitId) -> SetAside:
    """What the commit says of the worktree. Raises: EVIDENCE_REJECTED when it is none of `set_aside`."""
    text = os.fsdecode(judge.git("cat-file", "commit", commit).out)
    line = next((line for line in text.splitlines() if line.startswith(_STATE)), None)
    if line is None:
        raise WorktreeError("EVIDENCE_REJECTED", f"Commit {commit} holds no worktree that was set aside.")
    state = json.loads(line.removeprefix(_STATE))
    parents = re.findall(r"^parent ([0-9a-f]+)$", text.partition("\n\n")[0], re.MULTILINE)
    return SetAside(
        commit,
        parents[0],
        state["tip"],
        bool(state["detached"]),
        state["operation"],
        parents[1] if len(parents) > 1 else None,
        state.get("other"),
    )


def _unholdable(judge: Judge, request: RemovalRequest, seen: Seen, *, at: str) -> Refused | None:
    if seen.wrong:
        return refusals.nested(request.worktree, [entry.path for entry in seen.wrong])
    if seen.unreadable:
        return refusals.unreadable(request.worktree, seen.unreadable)
    size = sum(file.bytes for file in held_files(at, _extra(seen)))
    if size > MAX_BYTES:
        said = f"{size >> 20} MiB would have to be set aside, more than {MAX_BYTES >> 20} MiB"
        return refusals.too_much(request.worktree, said)
    return None


def _extra(seen: Seen) -> tuple[str, ...]:
    """Every file that head does not have. Repositories that are as they were fetched are left out."""
    paths = (*seen.left, *seen.extra)
    repositories = [path for path in paths if path.endswith("/")]
    return tuple(path for path in paths if not is_below(path, repositories))


def _tree(judge: Judge, seen: Seen, *, at: str, write: bool) -> str:
    """The tree of everything that is there. Without `write` no object reaches the user's store."""
    paths = [*(entry.path for entry in seen.tracked), *_extra(seen)]
    modes = {path: mode_of(Path(at, path)) for path in paths}
    oids = _hash(judge, at, [path for path, mode in modes.items() if mode.startswith("100")], write=write)
    for path, mode in modes.items():
        if mode == "120000":
            target = os.fsencode(Path(at, path).readlink())
            oids[path] = _hash_bytes(judge, target, write=write)
    gone = "0" * len(seen.head)
    lines = [f"0 {gone}\t{path}" for path, mode in modes.items() if path not in oids]
    lines += [f"{modes[path]} {oid}\t{path}" for path, oid in oids.items()]
    with judge.temporary_index() as index:
        judge.git("read-tree", seen.head, index=index)
        if lines:
            stdin = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
            args = ("update-index", "--add", "--replace", "-z", "--index-info")
            judge.git(*args, stdin=stdin, index=index, timeout_s=_TIMEOUT_S)
        return judge.git("write-tree", "--missing-ok", index=index, write_objects=write).text


def _hash(judge: Judge, at: str, paths: Sequence[str], *, write: bool) -> dict[str, str]:
    """Ids of the files' bytes as they are; git reads them one by one."""
    if not paths:
        return {}
    stdin = "".join(f"{quote_path(path)}\n" for path in paths).encode("utf-8", "surrogateescape")
    args = ["hash-object", "-t", "blob", "--no-filters", "--stdin-paths", *(["-w"] if write else [])]
    result = judge.git(*args, stdin=stdin, work_tree=at, write_objects=write, timeout_s=_TIMEOUT_S, max_bytes=256 << 20)
    return dict(zip(paths, result.lines(), strict=True))


def _hash_bytes(judge: Judge, data: bytes, *, write: bool) -> str:
    args = ["hash-object", "-t", "blob", "--no-filters", "--stdin", *(["-w"] if write else [])]
    return judge.git(*args, stdin=data, write_objects=write).text


def _index_tree(judge: Judge, request: RemovalRequest, seen: Seen) -> str | None:
    """The tree of what is staged; None when it is that of head, or when the index cannot be one (unmerged, broken)."""
    with copied_index(judge, request.worktree) as index:
        if index is None:
            return None
        # Its objects are in the user's store since they were staged; the tree is made there, too.
        result = judge.git("write-tree", index=index, write_objects=True, ok=range(256))
    tree = result.text if result.code == 0 else None
    return None if tree == judge.tree_of(seen.head) else tree


def _find(judge: Judge, request: RemovalRequest, seen: Seen, tree: str, index: str | None) -> CommitId | None:
    """The discard commit that holds the same already: one of a call that was cut short."""
    pins: Mapping[str, CommitId] = read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{request.graph}/{request.slug}"])
    for name, commit in pins.items():
        if "/discard-" not in name or judge.commit(commit) != commit or judge.tree_of(commit) != tree:
            continue
        held = read(judge, commit)
        staged = judge.tree_of(held.index_commit) if held.index_commit is not None else None
        same = (held.head, held.tip, held.operation) == (seen.head, seen.position.branch_tip, seen.position.operation)
        if same and staged == index:
            return commit
    return None


def _commit(judge: Judge, request: RemovalRequest, seen: Seen, tree: str, index: str | None) -> CommitId:
    date, where = int(time.time()), f"{request.graph}/{request.slug}"
    parents = [seen.head]
    if index is not None:
        parents.append(write_commit(judge, index, [seen.head], date=date, message=f"Index of {where}\n"))
    state = {
        "tip": seen.position.branch_tip,
        "detached": seen.position.state != "on-branch",
        "other": seen.position.branch if seen.position.state == "other-branch" else None,
        "operation": seen.position.operation,
    }
    message = f"Everything in the worktree of {where}\n\n{_STATE}{json.dumps(state, sort_keys=True)}\n"
    return write_commit(judge, tree, parents, date=date, message=message)


def _cannot(request: RemovalRequest, refusal: Refused) -> WorktreeError:
    return WorktreeError(
        "CLEANUP_REFUSED",
        f"The worktree of {request.graph}/{request.slug} cannot be set aside: {refusal.message}.",
        kept=f"the worktree {request.worktree.path} as it is",
        next=refusal.next or None,
    )
