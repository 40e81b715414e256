"""Pins commits, so that no amend, reset, branch deletion or gc loses them. A pin is only ever created.

Names: `<kind>-<n>` per subtask, and `+tips/<id>` for the tips of user refs. What a worktree alone holds (reflogs,
private refs, half-done operations) is read from the files of its admin folder: no git runs for it there.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import (
    BRANCH_PREFIX,
    PIN_PREFIX,
    CommitId,
    PinKind,
    RefSnapshot,
    Worktree,
    pin_ref,
)
from coordinate_agents.worktrees.refs import TIPS_SLUG, RefChange, change_refs, is_oid, read_ref, read_refs

# Two pinners of one subtask race at most a few times; each round one of them wins.
_MAX_TRIES: Final = 50
# Beyond this many new tips, only those that no other tip contains are pinned.
_REDUCE_FROM: Final = 64
_REDUCE_TIMEOUT_S: Final = 30.0
_MAX_CANDIDATES: Final = 20_000
_MAX_LOG_BYTES: Final = 32 << 20

# Files of an admin folder that can name commits which nothing else holds.
_PRIVATE_FILES: Final = (
    "HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_HEAD", "FETCH_HEAD",
    "BISECT_EXPECTED_REV", "MERGE_AUTOSTASH", "AUTO_MERGE",
)  # fmt: skip
_PRIVATE_FOLDERS: Final = ("refs", "logs", "rebase-merge", "rebase-apply", "sequencer")
_ANY_OID: Final = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")


def pin(judge: Judge, graph: str, slug: str, *, kind: PinKind, commit: CommitId) -> str:
    """Create the next free `<kind>-<n>`, or return the one that already holds the commit. Race-safe. One git call."""
    for _ in range(_MAX_TRIES):
        pins = read_refs(judge.facts.common_dir, [f"{PIN_PREFIX}/{graph}/{slug}"])
        name, is_new = _next_name(pins, graph, slug, kind, commit)
        if not is_new:
            return name
        try:
            change_refs(judge, [RefChange(name, commit, "")])
            return name
        except WorktreeError:
            if read_ref(judge.facts.common_dir, name) is None:
                raise
    raise WorktreeError("WORKTREE_CONFLICT", f"No free {kind} pin for {graph}/{slug} could be made.")


def keep_tips(judge: Judge, graph: str, snapshot: RefSnapshot) -> None:
    """Pin every tip and stash entry of the snapshot. No git call when all are pinned."""
    wanted = dict.fromkeys([*snapshot.refs.values(), *snapshot.stashes])
    folder = f"{PIN_PREFIX}/{graph}/{TIPS_SLUG}"
    pinned = set(read_refs(judge.facts.common_dir, [folder]).values())
    new = [oid for oid in wanted if oid not in pinned and judge.exists(oid)]
    if len(new) > _REDUCE_FROM:
        new = _maximal_tips(judge, new, pinned)
    # A name is its content, so two pinners of one tip make the same ref, and forcing it changes nothing.
    change_refs(judge, [RefChange(f"{folder}/{oid}", oid, None) for oid in new])


def keep(judge: Judge, graph: str, slug: str, worktree: Worktree) -> tuple[CommitId, ...]:
    """Pin HEAD, branch tip and every commit that only this worktree's reflogs or private refs hold.

    Returns the commits pinned now, newest pins last; empty when all were held already. At most two git calls.
    """
    common_dir = judge.facts.common_dir
    pins = read_refs(common_dir, [f"{PIN_PREFIX}/{graph}/{slug}"])
    held = {worktree.base, *pins.values()}
    found = list(dict.fromkeys(_candidates(judge, worktree)))[:_MAX_CANDIDATES]
    commits = [oid for oid in dict.fromkeys(judge.commit(oid) for oid in found if oid not in held) if oid]
    new = _maximal(judge, [oid for oid in commits if oid not in held], held)
    if not new:
        return ()
    number = _last_number(pins, graph, slug, "kept")
    changes = [RefChange(pin_ref(graph, slug, "kept", number + i), oid, "") for i, oid in enumerate(new, 1)]
    try:
        change_refs(judge, changes)
    except WorktreeError:
        for oid in new:  # another pinner took a number meanwhile
            pin(judge, graph, slug, kind="kept", commit=oid)
    return tuple(new)


def keep_moved(judge: Judge, wanted: Mapping[str, CommitId]) -> None:
    """Pin where the Runtime's branches stand that are about to be set to something else: nothing else may hold it."""
    common_dir = judge.facts.common_dir
    for name, commit in wanted.items():
        tip = read_ref(common_dir, name)
        if tip in (None, commit) or not name.startswith(f"{BRANCH_PREFIX}/") or not judge.exists(commit):
            continue
        graph, _, slug = name.removeprefix(f"{BRANCH_PREFIX}/").partition("/")
        oid = judge.commit(tip)
        if oid is not None and oid not in read_refs(common_dir, [f"{PIN_PREFIX}/{graph}/{slug}"]).values():
            pin(judge, graph, slug, kind="kept", commit=oid)


def is_too_much(judge: Judge, worktree: Worktree) -> bool:
    """Whether `keep` would not look at everything: a file that cannot be read, or too many commits."""
    if any(os.path.lexists(path) and read_regular(path, _MAX_LOG_BYTES) is None for path in _places(judge, worktree)):
        return True
    return len(set(_candidates(judge, worktree))) > _MAX_CANDIDATES


def _next_name(pins: dict[str, CommitId], graph: str, slug: str, kind: PinKind, commit: CommitId) -> tuple[str, bool]:
    start = f"{PIN_PREFIX}/{graph}/{slug}/{kind}-"
    same = sorted(name for name, oid in pins.items() if name.startswith(start) and oid == commit)
    if same:
        return same[0], False
    return pin_ref(graph, slug, kind, _last_number(pins, graph, slug, kind) + 1), True


def _last_number(pins: Collection[str], graph: str, slug: str, kind: PinKind) -> int:
    start = f"{PIN_PREFIX}/{graph}/{slug}/{kind}-"
    numbers = [name.removeprefix(start) for name in pins if name.startswith(start)]
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def _maximal(judge: Judge, commits: list[CommitId], held: Iterable[CommitId]) -> list[CommitId]:
    """Those that neither `held` nor another of them contains, oldest first."""
    if not commits:
        return []
    known = [oid for oid in held if judge.exists(oid)]
    lines = _walk(judge, commits, known, timeout_s=120)
    wanted = set(commits)
    return [child for child, *children in reversed(lines) if child in wanted and not children]


def _maximal_tips(judge: Judge, tips: list[str], pinned: Iterable[str]) -> list[str]:
    """Tips that no other tip contains; tag objects are each kept. All of them when the walk takes too long."""
    kinds = {oid: judge.look_up(oid) for oid in tips}
    commits = [oid for oid, found in kinds.items() if found is not None and found.type == "commit"]
    others = [oid for oid, found in kinds.items() if found is not None and found.type != "commit"]
    known = [oid for oid in pinned if judge.commit(oid)]
    try:
        lines = _walk(judge, commits, known, timeout_s=_REDUCE_TIMEOUT_S)
    except WorktreeError:
        return commits + others
    wanted = set(commits)
    return [line[0] for line in lines if line[0] in wanted and len(line) == 1] + others


def _walk(judge: Judge, tips: list[str], known: list[str], *, timeout_s: float) -> list[list[str]]:
    """Every commit reachable from tips and not from known, newest first, each with its children among them."""
    text = "".join(f"{oid}\n" for oid in tips) + "".join(f"^{oid}\n" for oid in known)
    result = judge.git("rev-list", "--topo-order", "--children", "--stdin", stdin=text.encode(), timeout_s=timeout_s)
    return [line.split(" ") for line in result.lines()]


def _candidates(judge: Judge, worktree: Worktree) -> Iterator[CommitId]:
    """Ids that the worktree's admin folder and its branch mention; they need not exist."""
    if worktree.branch:
        tip = read_ref(judge.facts.common_dir, f"refs/heads/{worktree.branch}")
        if tip is not None:
            yield tip
    for path in _places(judge, worktree):
        for oid in _ANY_OID.findall(read_regular(path, _MAX_LOG_BYTES) or b""):
            if is_oid(oid.decode()):
                yield oid.decode()


def _places(judge: Judge, worktree: Worktree) -> Iterator[Path]:
    """The files that can name such commits; of a worktree that is no longer registered only its branch's log."""
    common = Path(judge.facts.common_dir)
    if worktree.admin_name:
        admin = Path(ownership.admin_dir(judge.facts, worktree))
        yield from (admin / name for name in _PRIVATE_FILES)
        yield from (path for folder in _PRIVATE_FOLDERS for path in _files_below(admin / folder))
    if worktree.branch:
        yield common / "logs/refs/heads" / worktree.branch


def _files_below(folder: Path) -> Iterator[Path]:
    for path, _, names in os.walk(folder):
        for name in sorted(names):
            yield Path(path, name)
