"""Reads refs and moves Runtime refs, by compare-and-swap only.

Runtime refs are few and read from their files (refs of the files backend; reftable is refused when a repository is
opened); all others are asked of git once. Never follows a symbolic ref: an agent could aim a Runtime branch at `main`.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import reffiles
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import BRANCH_PREFIX, PIN_PREFIX, CommitId, RefSnapshot, RepositoryFacts
from coordinate_agents.worktrees.plain_pins import create_pin
from coordinate_agents.worktrees.values import value_class

# Tips of user refs are pinned under this name, which no subtask can have (a slug never begins with "+").
TIPS_SLUG: Final = "+tips"

_OID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@value_class
class RefChange:
    """One compare-and-swap. `old` None: whatever is there; `old` "": must not exist; `new` None: delete."""

    name: str
    new: CommitId | None
    old: CommitId | None


def snapshot(judge: Judge) -> RefSnapshot:
    """Every ref that is not the Runtime's, every stash entry, newest first, and HEAD. A git call only for odd refs."""
    name, commit = root_head(judge.facts)
    head, stashes = name or commit, stash_entries(judge.facts.common_dir)
    found = reffiles.read_all(judge.facts.common_dir, without=(BRANCH_PREFIX, PIN_PREFIX))
    if found is not None:
        return RefSnapshot(found, stashes, head)
    result = judge.user_git("for-each-ref", "--format=%(objectname) %(refname)")
    pairs = (line.split(" ", 1) for line in result.lines())
    refs = {name: oid for oid, name in pairs if not is_runtime_ref(name)}
    return RefSnapshot(refs, stashes, head)


def root_head(facts: RepositoryFacts) -> tuple[str, CommitId]:
    """The ref that HEAD of the user's checkout is on (empty: detached), and its commit (empty: none yet)."""
    found = reffiles.read_head(facts.git_dir, facts.common_dir)
    return ("", "") if found is None else (found.ref or "", found.commit or "")


def stash_entries(common_dir: str) -> tuple[CommitId, ...]:
    """Commits in the reflog of refs/stash, newest first: the ref itself holds only the newest."""
    text = read_regular(f"{common_dir}/logs/refs/stash") or b""
    words = (line.split(b" ", 2) for line in text.splitlines())
    new = [parts[1].decode("ascii", "replace") for parts in words if len(parts) == 3]
    return tuple(oid for oid in reversed(new) if is_oid(oid))


def is_runtime_ref(name: str) -> bool:
    return name.startswith((f"{BRANCH_PREFIX}/", f"{PIN_PREFIX}/"))


def is_oid(text: str) -> bool:
    """Whether the text is a full hash, and not the one that stands for nothing."""
    return _OID.fullmatch(text) is not None and text.strip("0") != ""


def runtime_refs(judge: Judge, graph: str) -> dict[str, CommitId]:
    """Branches and pins of the graph, without the pinned tips of user refs. No git call."""
    folders = (f"{BRANCH_PREFIX}/{graph}", f"{PIN_PREFIX}/{graph}")
    tips = f"{PIN_PREFIX}/{graph}/{TIPS_SLUG}/"
    found = read_refs(judge.facts.common_dir, folders)
    return {name: oid for name, oid in found.items() if not name.startswith(tips)}


def read_refs(common_dir: str, folders: Iterable[str]) -> dict[str, CommitId]:
    """Runtime refs below these names, sorted by name. A symbolic or broken ref is left out."""
    found = (reffiles.read_refs(common_dir, f"{folder}/") for folder in folders)
    return dict(sorted((name, oid) for refs in found for name, oid in refs.items()))


def read_ref(common_dir: str, name: str) -> CommitId | None:
    """One Runtime ref; None when it does not exist, or is symbolic or broken."""
    return reffiles.read_direct(common_dir, name)


def change_refs(judge: Judge, changes: Sequence[RefChange]) -> None:
    """Apply all changes or none, in one transaction. Raises: WORKTREE_CONFLICT when a ref is not as expected."""
    if not changes:
        return
    _require_ours(change.name for change in changes)
    match changes:
        case [RefChange(name, str(new), "")] if create_pin(judge.facts, f"{judge.git_dir}/tmp", name, new):
            return
    said = _apply(judge, changes)
    if said is not None:
        raise WorktreeError("WORKTREE_CONFLICT", f"A Runtime ref could not be set: {said}", kept="no ref was changed")


def move_user_branch(judge: Judge, change: RefChange) -> str | None:
    """Move one branch that is the user's, because they named it; what git said when it did not."""
    if not change.name.startswith("refs/heads/") or is_runtime_ref(change.name):
        raise WorktreeError("INTERNAL_ERROR", f"{change.name} is no branch of the user's.", kept="no ref was changed")
    return _apply(judge, [change])


def restore_refs(judge: Judge, wanted: Mapping[str, CommitId]) -> tuple[str, ...]:
    """Set Runtime refs to these values; returns the names that were different, sorted."""
    common_dir = judge.facts.common_dir
    _require_ours(wanted)
    now = {name: read_ref(common_dir, name) for name in wanted}
    changes = [
        # What is there but not direct (symbolic, broken) has no value to compare with: it is replaced as it is.
        RefChange(name, oid, now[name] or (None if os.path.lexists(Path(common_dir, name)) else ""))
        for name, oid in sorted(wanted.items())
        if now[name] != oid
    ]
    change_refs(judge, changes)
    return tuple(change.name for change in changes)


def check_names(judge: Judge, graph: str, slugs: Sequence[str], known: frozenset[str]) -> None:
    """Raise WORKTREE_CONFLICT when a user's branch makes a Runtime branch impossible. One git call.

    `known` are slugs whose branch the Runtime has a record of.
    """
    result = judge.user_git("for-each-ref", "--format=%(refname)", BRANCH_PREFIX, PIN_PREFIX)
    existing = frozenset(result.lines())
    for name in (BRANCH_PREFIX, PIN_PREFIX, f"{BRANCH_PREFIX}/{graph}", f"{PIN_PREFIX}/{graph}"):
        if name in existing:
            raise _in_the_way(name, f"{name}/{graph}".removeprefix("refs/heads/"))
    pinned = {name.split("/")[3] for name in existing if name.startswith(f"{PIN_PREFIX}/{graph}/")}
    for slug in slugs:
        branch = f"{BRANCH_PREFIX}/{graph}/{slug}"
        below = next((name for name in sorted(existing) if name.startswith(f"{branch}/")), None)
        if below is not None:
            raise _in_the_way(below, branch.removeprefix("refs/heads/"))
        if branch in existing and slug not in known and slug not in pinned:
            raise _in_the_way(branch, branch.removeprefix("refs/heads/"))


def _require_ours(names: Iterable[str]) -> None:
    foreign = next((name for name in names if not is_runtime_ref(name)), None)
    if foreign is not None:
        raise WorktreeError("INTERNAL_ERROR", f"{foreign} is not a ref of the Runtime.", kept="no ref was changed")


def _in_the_way(name: str, wanted: str) -> WorktreeError:
    short = name.removeprefix("refs/heads/")
    kind = "branch" if name.startswith("refs/heads/") else "ref"
    return WorktreeError(
        "WORKTREE_CONFLICT",
        f"Your {kind} {short} stands where the Runtime needs {wanted}.",
        kept=f"the {kind} {short} is untouched and nothing was started",
        next=f"git branch -m {short} NEW-NAME" if kind == "branch" else f"git update-ref -d {name}",
    )


def _apply(judge: Judge, changes: Sequence[RefChange]) -> str | None:
    """All changes or none; what git said when it was none."""
    zero = "0" * (64 if judge.facts.object_format == "sha256" else 40)
    return judge.change_refs(os.fsencode("".join(_command(change, zero) for change in changes)))


def _command(change: RefChange, zero: str) -> str:
    """One instruction of `update-ref -z --stdin`; "no-deref" keeps a symbolic ref from moving its target."""
    option = "option no-deref\0"
    match change:
        case RefChange(name, None, old):
            return f"{option}delete {name}\0{old or ''}\0"
        case RefChange(name, new, None):
            return f"{option}update {name}\0{new}\0\0"
        case RefChange(name, new, old):
            return f"{option}update {name}\0{new}\0{old or zero}\0"
