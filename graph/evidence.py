"""What one look at a subtask's worktree proves: eight facts in a fixed order, and the verdict that follows.

Decides only; the look itself is `worktrees`' examination and the checks are run by the shell. Every fact is about the
one head that was read first. A fact says exactly why it fails, in one bounded line. Facts:

1 branch    the worktree is on the Runtime's branch, nothing in progress            never waived
2 commit    base is an ancestor (never waived), and what the subtask promised is there
3 clean     nothing uncommitted                                                     never waived
4 nested    no repository inside whose commits would go with the worktree
5 shared    other subtasks' refs and the user's refs as they were
6 scope     changed paths within `writes`; nothing that `copy` brought
7 checks    every check passed on this very commit
8 unmoved   head, branch and cleanliness read again                                 never waived

A number may have several facts; none of a number means that it was not established, and then nothing is accepted.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

from coordinate_agents.graph.facts import (
    PATHS_NAMED,
    REJECTED,
    Fact,
    FactName,
    FactOutcome,
    SharedFacts,
    changed_paths,
    facts_of,
    failed,
    line,
    short,
)
from coordinate_agents.graph.model import CheckIn
from coordinate_agents.graph.text import NAME_LIMIT, counted, listed, visible
from coordinate_agents.worktrees.values import value_class

__all__ = [
    "CheckOutcome",
    "Fact",
    "FactName",
    "FactOutcome",
    "SharedFacts",
    "Verdict",
    "Waiver",
    "changed_paths",
    "check_fact",
    "facts_of",
    "judge",
    "reread_fact",
    "short",
]

FACT_NUMBERS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
# What a person may accept although it failed; of `commit` not that its start commit is an ancestor.
WAIVABLE_FACTS: Final[tuple[FactName, ...]] = ("commit", "nested", "shared", "scope", "copied")
NEVER_WAIVED: Final[tuple[FactName, ...]] = ("branch", "clean", "unmoved")


@value_class
class CheckOutcome:
    """One check on one commit. `tail` is redacted and short; the whole output is in `log_path`.

    `commit` and `tree` are what it ran on; a pass on anything else proves nothing.
    """

    name: str
    run: tuple[str, ...]
    outcome: Literal["passed", "failed", "timed-out", "not-run", "error"]
    exit_code: int | None = None
    signal: int | None = None
    duration_ms: int = 0
    log_path: str | None = None
    tail: str = ""
    commit: str | None = None
    tree: str | None = None
    checked_in: CheckIn | Literal["integration"] = "worktree"


@value_class
class Waiver:
    """What a person accepted although it failed. `what`: ``check:<name>`` or ``fact:<name>``; `who` as recorded."""

    what: str
    who: str
    reason: str


@value_class
class Waived:
    """The names that waivers name: facts, and checks, whose failure is fact 7."""

    facts: frozenset[FactName]
    checks: frozenset[str]

    def covers(self, fact: Fact) -> bool:
        return fact.name in self.facts and fact.is_waivable


@value_class
class Verdict:
    """`commit` is the full hash that the verdict is about. `code` is that of the first failed fact."""

    accepted: bool
    commit: str | None
    facts: tuple[Fact, ...]
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    code: str | None = None


def check_fact(outcomes: Sequence[CheckOutcome], waived: Collection[str] = (), *, commit: str | None = None) -> Fact:
    """Fact 7. `waived` are names of checks whose failure was accepted by a person; `commit` is the one judged.

    A check that ran on another commit proves nothing, and no waiver of its failure covers that.
    """
    if not outcomes:
        return Fact(7, "checks", "noted", "no checks are configured")
    elsewhere = [_on_another_commit(each, commit) for each in outcomes if not _is_on(each, commit)]
    failures = [(each.name, _check_failure(each)) for each in outcomes if _is_on(each, commit)]
    standing = [*elsewhere, *(text for name, text in failures if text and name not in waived)]
    forgiven = [text for name, text in failures if text and name in waived]
    if standing:
        return failed(7, "checks", "; ".join(standing), code="CHECK_FAILED")
    if forgiven:
        return Fact(7, "checks", "waived", line(f"waived: {'; '.join(forgiven)}"), "CHECK_FAILED", is_waivable=True)
    names = [each.name for each in outcomes]
    return Fact(7, "checks", "ok", f"{counted(len(names), 'check')} passed: {listed(names, first=PATHS_NAMED)}")


def reread_fact(
    head_before: str | None,
    head_after: str | None,
    dirty_after: int = 0,
    *,
    checks_in_worktree: Sequence[str] = (),
) -> Fact:
    """Fact 8. The agent had ended or was idle, so what checks in the worktree left there is theirs, and only noted."""
    if head_before is None or head_after is None:
        return failed(8, "unmoved", "no commit could be read again; the worktree or its branch is gone", never=True)
    if head_before != head_after:
        moved = f"the branch moved from {short(head_before)} to {short(head_after)} during the verification"
        return failed(8, "unmoved", moved, never=True)
    if dirty_after and not checks_in_worktree:
        changed = f"{counted(dirty_after, 'uncommitted file')} appeared during the verification"
        return failed(8, "unmoved", changed, never=True)
    if dirty_after:
        left = f"{counted(dirty_after, 'file')} left by checks in the worktree ({listed(checks_in_worktree)})"
        return Fact(8, "unmoved", "noted", line(left))
    return Fact(8, "unmoved", "ok", f"still at {short(head_after)}, and clean")


def judge(facts: Iterable[Fact], waivers: Collection[FactName] = (), *, commit: str | None) -> Verdict:
    """The verdict about `commit`. `waivers` are the facts, not checks, that a person accepted.

    Accepted when no fact failed, unless waived, and every number from 1 to 8 was established. A waiver of what can
    never be waived has no effect and is said so.
    """
    judged = tuple(_waived(fact) if fact.name in waivers else fact for fact in sorted(facts, key=lambda f: f.number))
    failing = [fact for fact in judged if fact.outcome == "failed"]
    reasons = [fact.message for fact in failing]
    missing = [str(number) for number in FACT_NUMBERS if number not in {fact.number for fact in judged}]
    if missing and not failing:
        reasons.append(f"not established: fact {', '.join(missing)}")
    if commit is None and not reasons:
        reasons.append("no commit was named")
    return Verdict(
        accepted=not reasons,
        commit=commit,
        facts=judged,
        reasons=tuple(reasons),
        warnings=tuple(fact.message for fact in judged if fact.outcome in ("warning", "waived")),
        code=(failing[0].code or REJECTED) if failing else (REJECTED if reasons else None),
    )


def waived_by(waivers: Iterable[Waiver]) -> Waived:
    kinds = [each.what.partition(":") for each in waivers]
    known: frozenset[FactName] = frozenset(WAIVABLE_FACTS)
    return Waived(
        facts=frozenset(fact for fact in known if any(kind == "fact" and name == fact for kind, _, name in kinds)),
        checks=frozenset(name for kind, _, name in kinds if kind == "check"),
    )


def used_waivers(waivers: Sequence[Waiver], verdict: Verdict, outcomes: Sequence[CheckOutcome]) -> tuple[Waiver, ...]:
    """Those without which the verdict would be another one: a waiver of what passed says nothing about the commit."""
    used = {f"fact:{fact.name}" for fact in verdict.facts if fact.outcome == "waived"}
    used |= {f"check:{each.name}" for each in outcomes if each.outcome != "passed"}
    return tuple(each for each in waivers if each.what in used)


def _is_on(outcome: CheckOutcome, commit: str | None) -> bool:
    return commit is None or outcome.commit == commit or outcome.outcome == "not-run"


def _on_another_commit(outcome: CheckOutcome, commit: str | None) -> str:
    ran_on = short(outcome.commit) if outcome.commit else "an unknown commit"
    return f"check {visible(outcome.name, limit=NAME_LIMIT)} ran on {ran_on} instead of {short(commit or '')}"


def _check_failure(outcome: CheckOutcome) -> str:
    """Why the check did not pass; empty when it did."""
    name = visible(outcome.name, limit=NAME_LIMIT)
    match outcome.outcome:
        case "passed":
            return ""
        case "failed" if outcome.signal is not None:
            return f"check {name} ended by signal {outcome.signal}"
        case "failed":
            return f"check {name} failed with exit code {outcome.exit_code}"
        case "timed-out":
            return f"check {name} timed out after {outcome.duration_ms // 1000} s"
        case "not-run":
            return f"check {name} did not run"
        case "error":
            return f"check {name} could not be run: {visible(outcome.tail or 'no reason known', limit=NAME_LIMIT)}"


def _waived(fact: Fact) -> Fact:
    if fact.outcome != "failed":
        return fact
    if not fact.is_waivable:
        return _with(fact, fact.outcome, f"{fact.message} (this can never be waived)")
    return _with(fact, "waived", f"waived: {fact.message}")


def _with(fact: Fact, outcome: FactOutcome, message: str) -> Fact:
    return Fact(fact.number, fact.name, outcome, line(message), fact.code, fact.is_waivable)
