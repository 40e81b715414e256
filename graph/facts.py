"""Facts 1 to 6: what one examination of a worktree proves about its head, and exactly why where it does not.

Decides only; the look itself is `worktrees`' examination. Every message is one bounded line with counts and the first
paths, made visible. The order and what may be waived stand in `evidence`, which adds facts 7 and 8 and judges.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

from coordinate_agents.graph.errors import CODES, MAX_MESSAGE_BYTES
from coordinate_agents.graph.model import ScopePolicy, Task
from coordinate_agents.graph.scope import outside
from coordinate_agents.graph.text import NAME_LIMIT, clipped, counted, listed, visible
from coordinate_agents.worktrees.model import ChangedPath, Examination
from coordinate_agents.worktrees.values import value_class

# Paths named in one refusal; the whole number is always given.
PATHS_NAMED: Final = 5
# Enough of a hash to find it by, in text; records keep the whole one.
SHORT_HASH: Final = 12

REJECTED: Final = "EVIDENCE_REJECTED"
_NESTED_KINDS: Final = frozenset({"nested", "submodule"})
_DIRTY_WORDS: Final = {
    "untracked": "untracked file",
    "modified": "modified file",
    "deleted": "deleted file",
    "added": "added file",
    "type": "file of another type",
    "conflict": "unmerged file",
}


FactName = Literal["branch", "commit", "clean", "nested", "shared", "scope", "copied", "checks", "unmoved"]
FactOutcome = Literal["ok", "failed", "warning", "noted", "waived"]


@value_class
class Fact:
    """One thing that was established. `code` is set when it failed or warns; `message` is one line, bounded."""

    number: int
    name: FactName
    outcome: FactOutcome
    message: str
    code: str | None = None
    is_waivable: bool = False

    def __post_init__(self) -> None:
        assert self.code is None or self.code in CODES, self.code


@value_class
class SharedFacts:
    """What changed in the shared git state since the attempt started, by class (contract section 6, fact 5).

    restored: Runtime refs of other subtasks that had to be set back. dangerous: state that runs code or lies, as
    "config:core.fsmonitor". notes: everything else, in words.
    """

    restored: tuple[str, ...] = ()
    dangerous: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def facts_of(
    task: Task,
    examination: Examination,
    *,
    base: str,
    branch: str,
    scope_policy: ScopePolicy,
    copied: Collection[str] = (),
    shared: SharedFacts | None = None,
    reviewed: str | None = None,
) -> tuple[Fact, ...]:
    """Facts 1 to 6 about the examined head, in order. `branch` is the Runtime's short name.

    `copied` are the files and folders that `copy` brought; `reviewed` is the commit a review asked to change.
    """
    if examination.head is None or examination.head_state in ("damaged", "missing"):
        return (_no_worktree(examination, branch), *_unexamined())
    return (
        *_branch_facts(examination, branch),
        *_commit_facts(task, examination, base, reviewed),
        _clean_fact(task, examination, base),
        _nested_fact(examination),
        *_shared_facts(examination, shared or SharedFacts()),
        *_scope_facts(task, examination, scope_policy, copied),
    )


def changed_paths(changed: Iterable[ChangedPath]) -> tuple[str, ...]:
    """Every path that changed, both sides of renames, sorted."""
    return tuple(sorted({path for each in changed for path in (each.path, each.old) if path is not None}))


def short(commit: str) -> str:
    """A hash as text shows it."""
    return commit[:SHORT_HASH]


def failed(number: int, name: FactName, message: str, *, code: str = REJECTED, never: bool = False) -> Fact:
    """A failed fact; `never`: nobody can waive it."""
    return Fact(number, name, "failed", line(message), code, is_waivable=not never)


def line(message: str) -> str:
    """The message within the bound of a message; its foreign parts were made visible before."""
    return clipped(message, MAX_MESSAGE_BYTES)


def _no_worktree(examination: Examination, branch: str) -> Fact:
    if examination.head_state == "missing":
        return failed(1, "branch", "worktree missing: its folder is gone", never=True)
    if examination.head_state == "damaged":
        return failed(1, "branch", "worktree damaged: its link to the repository is not the recorded one", never=True)
    if examination.branch_tip is None:
        return failed(1, "branch", f"HEAD names no commit: {visible(branch)} was deleted", never=True)
    return failed(
        1, "branch", f"HEAD names no commit; {visible(branch)} is at {short(examination.branch_tip)}", never=True
    )


def _unexamined() -> tuple[Fact, ...]:
    """Facts 2 to 6 when there is no commit to ask about. Not failures of their own: fact 1 is, and never waived."""
    names: tuple[FactName, ...] = ("commit", "clean", "nested", "shared", "scope")
    return tuple(Fact(number, name, "noted", "not examined") for number, name in enumerate(names, start=2))


def _branch_facts(examination: Examination, branch: str) -> tuple[Fact, ...]:
    facts = []
    head = examination.head or ""
    if examination.head_state == "other-branch":
        where = visible(examination.head_branch or "another branch", limit=NAME_LIMIT)
        facts.append(f"HEAD is on {where} ({_commits(examination)}) instead of {visible(branch)}")
    elif examination.head_state == "detached":
        facts.append(f"HEAD is detached at {short(head)} ({_commits(examination)}) instead of on {visible(branch)}")
    elif examination.branch_tip is None:
        facts.append(f"{visible(branch)} is gone; HEAD is at {short(head)}")
    elif examination.branch_tip != head:
        facts.append(f"{visible(branch)} is at {short(examination.branch_tip)}, and HEAD at {short(head)}")
    if examination.operation is not None:
        facts.append(f"a {examination.operation} is in progress")
    if facts:
        return (failed(1, "branch", "; ".join(facts), never=True),)
    return (Fact(1, "branch", "ok", f"on {visible(branch)} at {short(head)}"),)


def _commit_facts(task: Task, examination: Examination, base: str, reviewed: str | None) -> tuple[Fact, ...]:
    if examination.head == base:
        return (_no_commit(task, examination),)
    if not examination.base_is_ancestor:
        return (failed(2, "commit", f"start commit {short(base)} is not an ancestor of the result", never=True),)
    count = _commits(examination)
    if task.expect == "nothing":
        return (failed(2, "commit", f"{count} where none is expected"),)
    if examination.contained_in:
        where = listed(examination.contained_in, first=PATHS_NAMED)
        head = short(examination.head or "")
        return (failed(2, "commit", f"the result {head} is no new work: it is already in {where}"),)
    if not examination.tree_differs and task.expect == "commit":
        told = "; ".join(
            [f"{count} without any change: the files are those of the start commit", *_elsewhere(examination)]
        )
        return (failed(2, "commit", told),)
    if reviewed is not None and examination.head == reviewed and task.expect == "commit":
        return (failed(2, "commit", f"no new commit since a review of {short(reviewed)} asked for changes"),)
    return (Fact(2, "commit", "ok", f"{count} on {short(base)}"),)


def _no_commit(task: Task, examination: Examination) -> Fact:
    """Head is still the base."""
    if task.expect != "commit":
        return Fact(2, "commit", "ok", "no commit, as the subtask allows")
    parts = ["no commit", *_dirty_counts(examination)]
    if examination.stray_commits:
        newest = short(examination.stray_commits[0])
        parts.append(f"{counted(len(examination.stray_commits), 'commit')} elsewhere, newest {newest}")
    parts += _elsewhere(examination)
    if examination.lock is not None:
        parts.append(_lock(examination))
    return failed(2, "commit", "; ".join(parts))


def _elsewhere(examination: Examination) -> list[str]:
    """Where the work may have gone: the user's checkout, if HEAD moved there meanwhile. By whom is not known."""
    if examination.moved_root is None:
        return []
    (was, was_at), (now, now_at) = examination.moved_root
    if was == now:
        return [f"meanwhile {_of_root(now)} of your checkout went from {short(was_at)} to {short(now_at)}"]
    return [f"meanwhile your checkout went from {_of_root(was)} ({short(was_at)}) to {_of_root(now)} ({short(now_at)})"]


def _of_root(ref: str) -> str:
    return visible(ref.removeprefix("refs/heads/"), limit=NAME_LIMIT) if ref else "a detached HEAD"


def _clean_fact(task: Task, examination: Examination, base: str) -> Fact:
    dirty = [each for each in examination.dirty if each.kind not in _NESTED_KINDS]
    count = max(len(dirty), examination.dirty_count - (len(examination.dirty) - len(dirty)))
    if not count:
        return Fact(3, "clean", "ok", "nothing uncommitted")
    names = listed([each.path for each in dirty], total=count, first=PATHS_NAMED)
    if examination.head != base:
        text = f"committed, but {names} {'is' if count == 1 else 'are'} not"
    elif task.expect == "nothing":
        text = f"{', '.join(_dirty_counts(examination))} where nothing may change: {names}"
    else:
        text = f"{', '.join(_dirty_counts(examination))}: {names}"
    if examination.ignored_by_agent:
        hidden = listed(examination.ignored_by_agent, first=PATHS_NAMED)
        text += f"; {hidden} only ignored by rules that the start commit did not have"
    if examination.lock is not None:
        text += f"; {_lock(examination)}"
    return failed(3, "clean", text, code="DIRTY_WORKTREE", never=True)


def _nested_fact(examination: Examination) -> Fact:
    nested = [each for each in examination.dirty if each.kind in _NESTED_KINDS]
    if not nested:
        return Fact(4, "nested", "ok", "no nested repository or changed submodule")
    told = [f"{visible(each.path, limit=NAME_LIMIT)} {_NESTED_WORDS[each.kind]}" for each in nested[:PATHS_NAMED]]
    if len(nested) > PATHS_NAMED:
        told.append(f"{len(nested) - PATHS_NAMED} more")
    return failed(4, "nested", "; ".join(told))


_NESTED_WORDS: Final = {
    "nested": "is a nested repository",
    "submodule": "is a submodule with changes or commits that exist only there",
}


def _shared_facts(examination: Examination, shared: SharedFacts) -> tuple[Fact, ...]:
    facts = []
    if shared.restored:
        refs = listed(shared.restored, first=PATHS_NAMED)
        facts.append(
            failed(
                5, "shared", f"refs of other subtasks were changed and set back: {refs}", code="SHARED_STATE_CHANGED"
            )
        )
    if examination.moved_user_refs:
        refs = listed(examination.moved_user_refs, first=PATHS_NAMED)
        facts.append(failed(5, "shared", f"commits of this attempt were put on the user's refs: {refs}"))
    if shared.dangerous:
        names = listed(shared.dangerous, first=PATHS_NAMED)
        text = f"shared git state that can run code changed: {names}"
        facts.append(Fact(5, "shared", "warning", line(text), "SHARED_STATE_CHANGED"))
    notes = (*_elsewhere(examination), *shared.notes)
    if notes:
        facts.append(Fact(5, "shared", "noted", line(listed(notes, first=PATHS_NAMED))))
    return tuple(facts) or (Fact(5, "shared", "ok", "shared git state as it was"),)


def _scope_facts(
    task: Task, examination: Examination, policy: ScopePolicy, copied: Collection[str]
) -> tuple[Fact, ...]:
    paths = changed_paths(examination.changed)
    facts = [_scope_fact(paths, task.writes, policy)]
    brought = tuple(each.rstrip("/") for each in copied)
    present = sorted(each.path for each in examination.changed if each.kind != "deleted")
    committed = [path for path in present if any(path == each or path.startswith(f"{each}/") for each in brought)]
    if committed:
        names = listed(committed, first=PATHS_NAMED)
        text = f"committed, though only brought by copy: {names}"
        facts.append(failed(6, "copied", text, code="INTENT_SCOPE_DRIFT"))
    if examination.outside_links:
        names = listed(examination.outside_links, first=PATHS_NAMED)
        facts.append(Fact(6, "scope", "warning", line(f"links that point outside the repository: {names}")))
    return tuple(facts)


def _scope_fact(paths: Sequence[str], writes: Sequence[str] | None, policy: ScopePolicy) -> Fact:
    total = counted(len(paths), "changed path")
    if writes is None:
        return Fact(6, "scope", "ok", f"{total}, no write intent declared")
    strays = outside(paths, writes)
    if not strays:
        return Fact(6, "scope", "ok", f"{total}, all within the write intent")
    text = f"{len(strays)} of {total} outside the write intent: {listed(strays, first=PATHS_NAMED)}"
    if policy == "strict":
        return failed(6, "scope", text, code="INTENT_SCOPE_DRIFT")
    return Fact(6, "scope", "warning" if policy == "warn" else "noted", line(text), "INTENT_SCOPE_DRIFT")


def _lock(examination: Examination) -> str:
    age = "" if examination.lock_age_s is None else f" ({int(examination.lock_age_s)} s old)"
    return f"commit impossible: index.lock{age}"


def _commits(examination: Examination) -> str:
    return counted(examination.commit_count, "commit")


def _dirty_counts(examination: Examination) -> list[str]:
    """``2 untracked files``, ``1 modified file`` …; by kind while all are known, else the whole number."""
    dirty = [each for each in examination.dirty if each.kind not in _NESTED_KINDS]
    if examination.dirty_count > len(examination.dirty):
        return [counted(examination.dirty_count, "uncommitted file")]
    return [
        counted(number, noun)
        for kind, noun in _DIRTY_WORDS.items()
        if (number := sum(each.kind == kind for each in dirty))
    ]
