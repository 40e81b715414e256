"""Which refs already contain a commit, which moved to contain one, and which commits were left beside the branch.

Questions about ancestry over many refs, each asked with one `rev-list --stdin`. The refs are those of a snapshot or
read from files; nothing is decided here.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from coordinate_agents.worktrees.history import History
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import BRANCH_PREFIX, INTEGRATION_SLUG, PIN_PREFIX, CommitId, RefSnapshot
from coordinate_agents.worktrees.ownership import read_record
from coordinate_agents.worktrees.reffiles import read_refs
from coordinate_agents.worktrees.refs import root_head

MAX_NAMED: Final = 8
MAX_STRAYS: Final = 100


def sibling_refs(judge: Judge, graph: str, slug: str, siblings: Sequence[str] | None) -> dict[str, CommitId]:
    """Branches, base and verified pins of the graph's other subtasks, full name to object.

    `None`: all but own and integration. Kept pins are left out: a sibling that only looked at a branch has it in its
    reflog. Pinned tips of user refs are left out: they may be younger than the subtask's first start.
    """
    asked = None if siblings is None else frozenset(siblings)
    found: dict[str, CommitId] = {}
    for prefix in (f"{BRANCH_PREFIX}/{graph}/", f"{PIN_PREFIX}/{graph}/"):
        for name, oid in read_refs(judge.facts.common_dir, prefix).items():
            owner, _, kind = name[len(prefix) :].partition("/")
            is_asked = owner in asked if asked is not None else owner != INTEGRATION_SLUG
            is_subtask = not owner.startswith("+") and owner != slug
            if is_asked and is_subtask and not kind.startswith(("kept-", "discard-")):
                found[name] = oid
    return found


def without_dependents(
    judge: Judge, graph: str, commit: CommitId, siblings: Mapping[str, CommitId]
) -> dict[str, CommitId]:
    """The refs of siblings whose worktree was not started on a base that contains the commit.

    A subtask may be examined again after others were built on it. A commit that was taken from a sibling is still found
    in that sibling's own refs. Costs one process for each sibling that has a worktree.
    """
    owners = {name: _owner(name, graph) for name in siblings}
    records = {owner: read_record(judge.facts, graph, owner) for owner in set(owners.values())}
    built = {
        owner
        for owner, record in records.items()
        if record is not None and record.worktree.base and judge.is_ancestor(commit, record.worktree.base)
    }
    return {name: oid for name, oid in siblings.items() if owners[name] not in built}


def containing(
    judge: Judge, commit: CommitId, among: Mapping[str, CommitId], *, above: CommitId | None = None
) -> tuple[str, ...]:
    """Names of these refs that contain the commit, at most MAX_NAMED, sorted.

    `above`: a commit that it contains, below which no ref needs a look. With it no process is needed when no ref is far
    from there; one otherwise when none contains the commit.
    """
    if above is not None and not judge.is_shallow and _is_surely_new(judge, commit, among.values(), above):
        return ()
    names: dict[CommitId, list[str]] = {}
    for name, oid in among.items():
        names.setdefault(oid, []).append(name)
    found: list[str] = []
    todo = [list(names)] if names else []
    while todo and len(found) < MAX_NAMED:
        tips = todo.pop()
        if not _is_inside(judge, commit, tips):
            continue
        if len(tips) == 1:
            found += names[tips[0]]
        else:
            middle = len(tips) // 2
            todo += [tips[:middle], tips[middle:]]
    return tuple(sorted(found)[:MAX_NAMED])


def moved_onto(judge: Judge, history: History, before: RefSnapshot) -> tuple[str, ...]:
    """User refs that existed, moved since, and now contain a commit of the history. No process when none moved."""
    moved = _moved(judge, before)
    if not moved or not history.commits:
        return ()
    own = history.commits.keys()
    asked = [*moved.values(), f"^{history.base}", *(f"^{oid}" for oid in set(before.refs.values()))]
    listed = judge.git("rev-list", "--parents", "--ignore-missing", "--stdin", stdin=_lines(asked)).lines()
    parents = {line.split(" ")[0]: tuple(line.split(" ")[1:]) for line in listed}
    return tuple(sorted(name for name, oid in moved.items() if _reaches(parents, oid, own)))


def moved_root(judge: Judge, before: RefSnapshot) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """HEAD of the user's checkout at the snapshot and now, each as `root_head` says it; None when it is the same."""
    is_detached = not before.head.startswith("refs/")
    commit = before.head if is_detached else before.refs.get(before.head, "")
    if not commit:
        return None
    was = ("" if is_detached else before.head, commit)
    now = root_head(judge.facts)
    return None if was == now else (was, now)


def strays(
    judge: Judge, history: History, head: CommitId, candidates: Sequence[CommitId], *, known: AbstractSet[CommitId]
) -> tuple[CommitId, ...]:
    """Commits among the candidates and behind them that neither head nor a known commit contains, newest first.

    No process in the ordinary case, where every candidate is a commit of head or base itself.
    """
    inside = history.ancestors([head])
    outside = [oid for oid in candidates if oid not in inside and oid != history.base and oid not in known]
    if not outside:
        return ()
    there = [oid for oid in outside if judge.commit(oid) == oid]
    asked = [*there, f"^{head}", f"^{history.base}", *(f"^{oid}" for oid in sorted(known))]
    limit = f"--max-count={MAX_STRAYS}"
    return (
        tuple(judge.git("rev-list", limit, "--ignore-missing", "--stdin", stdin=_lines(asked)).lines()) if there else ()
    )


def still_named(judge: Judge, before: RefSnapshot) -> tuple[CommitId, ...]:
    """What the snapshot's ref names hold now: what the user moved there is no commit of the attempt."""
    return tuple(_moved(judge, before).values())


def _owner(name: str, graph: str) -> str:
    """The slug in the name of a Runtime ref of the graph."""
    prefix = BRANCH_PREFIX if name.startswith(f"{BRANCH_PREFIX}/") else PIN_PREFIX
    return name[len(f"{prefix}/{graph}/") :].split("/", 1)[0]


def _moved(judge: Judge, before: RefSnapshot) -> dict[str, CommitId]:
    """Refs of the snapshot that exist with another value, name to value now."""
    # A symbolic ref, such as origin/HEAD, is left out: what it leads to is in the snapshot itself.
    # No Runtime ref is in it: those of every other subtask need no look.
    now = read_refs(judge.facts.common_dir, "refs/", without=(BRANCH_PREFIX, PIN_PREFIX))
    return {name: now[name] for name, oid in before.refs.items() if now.get(name, oid) != oid}


def _is_surely_new(judge: Judge, commit: CommitId, tips: Collection[CommitId], above: CommitId) -> bool:
    return judge.commits.contains(tips, commit, above=above) is False


def _is_inside(judge: Judge, commit: CommitId, tips: Sequence[CommitId]) -> bool:
    asked = [commit, *(f"^{oid}" for oid in tips)]
    # A tip that is gone contains nothing.
    return not judge.git("rev-list", "--max-count=1", "--ignore-missing", "--stdin", stdin=_lines(asked)).out


def _reaches(parents: Mapping[CommitId, Sequence[CommitId]], start: CommitId, wanted: Collection[CommitId]) -> bool:
    seen: set[CommitId] = set()
    todo = [start]
    while todo:
        oid = todo.pop()
        if oid in seen:
            continue
        seen.add(oid)
        if oid in wanted:
            return True
        todo.extend(parents.get(oid, ()))
    return False


def _lines(words: Sequence[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()
