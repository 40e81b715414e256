"""The eight facts and the verdict, case by case; the words of a refusal are part of the product."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from coordinate_agents.graph.evidence import (
    CheckOutcome,
    Fact,
    FactName,
    SharedFacts,
    Verdict,
    check_fact,
    facts_of,
    judge,
    reread_fact,
)
from coordinate_agents.graph.model import ScopePolicy, SubtaskId, Task
from coordinate_agents.worktrees.model import ChangedPath, DirtyPath, Examination

BASE = "b" * 40
HEAD = "c" * 40
OTHER = "d" * 40
B, D = BASE[:12], OTHER[:12]
BRANCH = "coordinate-agents/g/api"
TASK = Task(id=SubtaskId("api"), title="api")
GOOD = Examination(
    head=HEAD,
    tree="e" * 40,
    branch_tip=HEAD,
    base_is_ancestor=True,
    tree_differs=True,
    commit_count=2,
    changed=(ChangedPath("src/a.py", "modified"),),
)
NOTHING = replace(GOOD, head=BASE, branch_tip=BASE, tree_differs=False, commit_count=0, changed=())


def dirty(**paths: Any) -> dict[str, Any]:
    """Fields of an examination: ``dirty(b="untracked")``."""
    entries = tuple(DirtyPath(path, kind) for path, kind in paths.items())
    return {"dirty": entries, "dirty_count": len(entries)}


def look(
    examination: Examination,
    *,
    task: Task = TASK,
    policy: ScopePolicy = "warn",
    copied: Sequence[str] = (),
    shared: SharedFacts | None = None,
) -> tuple[Fact, ...]:
    return facts_of(task, examination, base=BASE, branch=BRANCH, scope_policy=policy, copied=copied, shared=shared)


def failures(facts: Sequence[Fact]) -> list[tuple[int, str]]:
    return [(fact.number, fact.message) for fact in facts if fact.outcome == "failed"]


def test_ordinary_commit_gives_six_good_facts() -> None:
    assert look(GOOD) == (
        Fact(1, "branch", "ok", "on coordinate-agents/g/api at cccccccccccc"),
        Fact(2, "commit", "ok", "2 commits on bbbbbbbbbbbb"),
        Fact(3, "clean", "ok", "nothing uncommitted"),
        Fact(4, "nested", "ok", "no nested repository or changed submodule"),
        Fact(5, "shared", "ok", "shared git state as it was"),
        Fact(6, "scope", "ok", "1 changed path, no write intent declared"),
    )


# --- 1: branch -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("examination", "message"),
    [
        (
            replace(GOOD, head_state="other-branch", head_branch="mine", commit_count=1),  # EV-05
            "HEAD is on mine (1 commit) instead of coordinate-agents/g/api",
        ),
        (
            replace(GOOD, head_state="detached"),  # EV-05
            "HEAD is detached at cccccccccccc (2 commits) instead of on coordinate-agents/g/api",
        ),
        (replace(GOOD, branch_tip=None), "coordinate-agents/g/api is gone; HEAD is at cccccccccccc"),
        (replace(GOOD, branch_tip=OTHER), "coordinate-agents/g/api is at dddddddddddd, and HEAD at cccccccccccc"),
        (replace(GOOD, operation="rebase"), "a rebase is in progress"),
        (
            replace(GOOD, head_state="detached", operation="bisect", commit_count=0),
            "HEAD is detached at cccccccccccc (0 commits) instead of on coordinate-agents/g/api;"
            " a bisect is in progress",
        ),
        (
            replace(GOOD, head_state="other-branch", head_branch="a\x1b[31m\u202eb"),
            "HEAD is on a\\x1b[31m\\u202eb (2 commits) instead of coordinate-agents/g/api",
        ),
    ],
)
def test_head_that_is_not_on_the_branch_is_refused(examination: Examination, message: str) -> None:
    assert look(examination)[0] == Fact(1, "branch", "failed", message, "EVIDENCE_REJECTED")
    assert failures(look(examination)) == [(1, message)]


@pytest.mark.parametrize(
    ("examination", "message"),
    [
        (
            Examination(head=None, head_state="damaged"),  # GT-29
            "worktree damaged: its link to the repository is not the recorded one",
        ),
        (replace(GOOD, head_state="damaged"), "worktree damaged: its link to the repository is not the recorded one"),
        (Examination(head=None, head_state="missing"), "worktree missing: its folder is gone"),
        (Examination(head=None), "HEAD names no commit: coordinate-agents/g/api was deleted"),
        (
            Examination(head=None, branch_tip=OTHER, head_state="other-branch"),
            "HEAD names no commit; coordinate-agents/g/api is at dddddddddddd",
        ),
    ],
)
def test_worktree_that_cannot_be_read_is_refused_and_nothing_else_is_asked(
    examination: Examination, message: str
) -> None:
    assert look(examination) == (
        Fact(1, "branch", "failed", message, "EVIDENCE_REJECTED"),
        Fact(2, "commit", "noted", "not examined"),
        Fact(3, "clean", "noted", "not examined"),
        Fact(4, "nested", "noted", "not examined"),
        Fact(5, "shared", "noted", "not examined"),
        Fact(6, "scope", "noted", "not examined"),
    )


# --- 2: commit -------------------------------------------------------------------------------------------------------


def test_deliverable_left_untracked_without_a_commit_is_refused() -> None:  # EV-01
    assert failures(look(replace(NOTHING, **dirty(**{"deliverable.txt": "untracked"})))) == [
        (2, "no commit; 1 untracked file"),
        (3, "1 untracked file: deliverable.txt"),
    ]


def test_agent_that_did_nothing_is_refused() -> None:  # EV-03
    assert failures(look(NOTHING)) == [(2, "no commit")]


def test_commit_kept_from_being_made_by_a_lock_names_the_lock() -> None:  # GT-25
    locked = replace(NOTHING, **dirty(f="modified"), lock="/x/index.lock", lock_age_s=12.7)
    assert failures(look(locked)) == [
        (2, "no commit; 1 modified file; commit impossible: index.lock (12 s old)"),
        (3, "1 modified file: f; commit impossible: index.lock (12 s old)"),
    ]


def test_commits_elsewhere_are_named_when_the_branch_has_none() -> None:
    assert failures(look(replace(NOTHING, stray_commits=(OTHER, HEAD)))) == [
        (2, "no commit; 2 commits elsewhere, newest dddddddddddd")
    ]


def test_rewritten_history_is_refused_and_can_never_be_waived() -> None:  # EV-06, EV-08
    rewritten = look(replace(GOOD, base_is_ancestor=False))
    assert rewritten[1] == Fact(
        2,
        "commit",
        "failed",
        "start commit bbbbbbbbbbbb is not an ancestor of the result",
        "EVIDENCE_REJECTED",
        is_waivable=False,
    )
    assert failures(rewritten) == [(2, "start commit bbbbbbbbbbbb is not an ancestor of the result")]


def test_commit_without_a_change_is_refused() -> None:
    empty = replace(GOOD, tree_differs=False, commit_count=1, changed=())
    assert failures(look(empty)) == [(2, "1 commit without any change: the files are those of the start commit")]


def test_commit_that_existed_before_is_no_work() -> None:  # EV-03
    old = replace(GOOD, contained_in=("refs/heads/main", "refs/heads/x"))
    assert failures(look(old)) == [
        (2, "the result cccccccccccc is no new work: it is already in refs/heads/main and refs/heads/x")
    ]


def test_expecting_nothing_accepts_the_base_and_refuses_a_commit() -> None:
    audit = replace(TASK, expect="nothing", writes=())
    assert look(NOTHING, task=audit)[1:3] == (
        Fact(2, "commit", "ok", "no commit, as the subtask allows"),
        Fact(3, "clean", "ok", "nothing uncommitted"),
    )
    assert failures(look(GOOD, task=audit)) == [(2, "2 commits where none is expected")]
    assert failures(look(replace(NOTHING, **dirty(f="modified", g="untracked")), task=audit)) == [
        (3, "1 untracked file, 1 modified file where nothing may change: f and g")
    ]


def test_expecting_either_accepts_both_but_not_rewritten_history() -> None:
    either = replace(TASK, expect="either")
    assert failures(look(NOTHING, task=either)) == []
    assert failures(look(GOOD, task=either)) == []
    assert failures(look(replace(GOOD, tree_differs=False), task=either)) == []
    assert failures(look(replace(GOOD, base_is_ancestor=False), task=either)) == [
        (2, "start commit bbbbbbbbbbbb is not an ancestor of the result")
    ]
    assert failures(look(replace(NOTHING, contained_in=("refs/heads/main",)), task=either)) == []


# --- 3: clean, 4: nested ---------------------------------------------------------------------------------------------


def test_half_committed_work_names_what_is_not() -> None:  # EV-10
    half = look(replace(GOOD, **dirty(b="untracked", f="modified")))
    assert half[2] == Fact(3, "clean", "failed", "committed, but b and f are not", "DIRTY_WORKTREE")
    assert failures(half) == [(3, "committed, but b and f are not")]
    one = replace(GOOD, **dirty(b="untracked"))
    assert failures(look(one)) == [(3, "committed, but b is not")]


def test_file_hidden_by_the_agents_own_ignore_rule_counts() -> None:  # EV-10
    hidden = replace(GOOD, **dirty(out="untracked"), ignored_by_agent=("out",))
    assert failures(look(hidden)) == [
        (3, "committed, but out is not; out only ignored by rules that the start commit did not have")
    ]


def test_many_dirty_paths_are_counted_and_the_first_named() -> None:
    first = tuple(DirtyPath(f"f{number}", "untracked") for number in range(50))
    many = replace(GOOD, dirty=first, dirty_count=4000)
    assert failures(look(many)) == [(3, "committed, but f0, f1, f2, f3, f4 and 3995 more are not")]
    none_committed = replace(NOTHING, dirty=first, dirty_count=4000)
    assert failures(look(none_committed)) == [
        (2, "no commit; 4000 uncommitted files"),
        (3, "4000 uncommitted files: f0, f1, f2, f3, f4 and 3995 more"),
    ]


def test_refusal_stays_one_bounded_line_whatever_the_paths_are() -> None:
    names = {f"{number}\n\x1b[2J" + "ü" * 4000: "untracked" for number in range(9)}
    for fact in look(replace(GOOD, **dirty(**names))):
        assert len(fact.message.encode()) <= 2048
        assert fact.message.isprintable()


def test_nested_repository_is_named() -> None:  # GT-10
    scaffolded = look(replace(GOOD, **dirty(app="nested")))
    assert scaffolded[3] == Fact(
        4, "nested", "failed", "app is a nested repository", "EVIDENCE_REJECTED", is_waivable=True
    )
    assert failures(scaffolded) == [(4, "app is a nested repository")]


def test_many_nested_repositories_are_counted_after_the_first() -> None:
    five = {f"app{number}": "nested" for number in range(5)}
    told = "; ".join(f"{name} is a nested repository" for name in five)
    assert failures(look(replace(GOOD, **dirty(**five)))) == [(4, told)]
    assert failures(look(replace(GOOD, **dirty(**five, b="nested", c="nested")))) == [(4, f"{told}; 2 more")]


def test_submodule_with_unsaved_work_is_named() -> None:  # GT-09
    unsaved = replace(GOOD, **dirty(b="untracked", sub="submodule"))
    assert failures(look(unsaved)) == [
        (3, "committed, but b is not"),
        (4, "sub is a submodule with changes or commits that exist only there"),
    ]


# --- 5: shared state, 6: scope ---------------------------------------------------------------------------------------


def test_changed_refs_of_other_subtasks_fail() -> None:  # SY-05
    shared = SharedFacts(restored=("refs/heads/coordinate-agents/g/ui",))
    message = "refs of other subtasks were changed and set back: refs/heads/coordinate-agents/g/ui"
    assert look(GOOD, shared=shared)[4:-1] == (
        Fact(5, "shared", "failed", message, "SHARED_STATE_CHANGED", is_waivable=True),
    )


def test_user_ref_that_holds_commits_of_this_attempt_fails() -> None:
    message = "commits of this attempt were put on the user's refs: refs/heads/main"
    assert failures(look(replace(GOOD, moved_user_refs=("refs/heads/main",)))) == [(5, message)]


def test_planted_configuration_warns_and_an_ordinary_change_is_noted() -> None:  # SY-04
    shared = SharedFacts(dangerous=("config:core.fsmonitor", "hook:post-commit"), notes=("branch x was made",))
    assert look(GOOD, shared=shared)[4:-1] == (
        Fact(
            5,
            "shared",
            "warning",
            "shared git state that can run code changed: config:core.fsmonitor and hook:post-commit",
            "SHARED_STATE_CHANGED",
        ),
        Fact(5, "shared", "noted", "branch x was made"),
    )


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("refs/heads/main", "refs/heads/hijack\x1b[2J", f"your checkout went from main ({B}) to hijack\\x1b[2J ({D})"),
        ("refs/heads/main", "refs/heads/main", f"main of your checkout went from {B} to {D}"),
        ("", "refs/heads/main", f"your checkout went from a detached HEAD ({B}) to main ({D})"),
    ],
)
def test_checkout_that_moved_meanwhile_is_told_where_no_work_was_found_and_else_noted(
    was: str, now: str, told: str
) -> None:
    """EV-11: whose doing it was is not known, so it fails nobody."""
    moved = {"moved_root": ((was, BASE), (now, OTHER))}
    assert failures(look(replace(NOTHING, **moved))) == [(2, f"no commit; meanwhile {told}")]
    facts = look(replace(GOOD, **moved))
    assert (failures(facts), facts[4]) == ([], Fact(5, "shared", "noted", f"meanwhile {told}"))


@pytest.mark.parametrize(("policy", "outcome"), [("observe", "noted"), ("warn", "warning"), ("strict", "failed")])
def test_changed_path_outside_the_intent_follows_the_policy(policy: ScopePolicy, outcome: str) -> None:
    task = replace(TASK, writes=("src/**",))
    renamed = (ChangedPath("src/a", "modified"), ChangedPath("src/new", "renamed", old="lib/old"))
    fact = look(replace(GOOD, changed=renamed), task=task, policy=policy)[5]
    assert (fact.outcome, fact.message, fact.code, fact.is_waivable) == (
        outcome,
        "1 of 3 changed paths outside the write intent: lib/old",
        "INTENT_SCOPE_DRIFT",
        policy == "strict",
    )


def test_changed_paths_within_the_intent_are_good() -> None:
    task = replace(TASK, writes=("src/**",))
    assert look(GOOD, task=task, policy="strict")[5] == Fact(
        6, "scope", "ok", "1 changed path, all within the write intent"
    )


@pytest.mark.parametrize(("copied", "path"), [(".env", ".env"), ("keys", "keys/a/b"), ("keys/", "keys/a")])
def test_copied_file_in_the_commit_fails_under_every_policy(copied: str, path: str) -> None:
    leaked = replace(GOOD, changed=(ChangedPath(path, "added"),))
    message = f"committed, though only brought by copy: {path}"
    assert look(leaked, policy="observe", copied=["other", copied])[6] == Fact(
        6, "copied", "failed", message, "INTENT_SCOPE_DRIFT", is_waivable=True
    )


def test_path_beside_a_copied_one_or_its_removal_is_good() -> None:
    beside = (ChangedPath(".env.example", "added"), ChangedPath(".env", "deleted"), ChangedPath("x/keys", "added"))
    assert failures(look(replace(GOOD, changed=beside), copied=[".env", "keys"])) == []


def test_link_that_leads_outside_warns() -> None:  # SY-03
    assert look(replace(GOOD, outside_links=("out",)))[6] == Fact(
        6, "scope", "warning", "links that point outside the repository: out"
    )


# --- 7: checks, 8: read again ----------------------------------------------------------------------------------------

PASSED = CheckOutcome("tests", ("pytest", "-q"), "passed", exit_code=0, commit=HEAD)
LINT = CheckOutcome("lint", ("ruff",), "failed", exit_code=1, commit=HEAD)


def test_passed_checks_are_named() -> None:
    assert check_fact([PASSED, replace(PASSED, name="lint")], commit=HEAD) == Fact(
        7, "checks", "ok", "2 checks passed: tests and lint"
    )


def test_no_checks_is_noted_as_such() -> None:
    assert check_fact([]) == Fact(7, "checks", "noted", "no checks are configured")


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (LINT, "check lint failed with exit code 1"),
        (replace(LINT, exit_code=None, signal=9), "check lint ended by signal 9"),
        (replace(LINT, outcome="timed-out", duration_ms=600_400), "check lint timed out after 600 s"),
        (replace(LINT, outcome="not-run", commit=None), "check lint did not run"),
        (replace(LINT, outcome="error", tail="no such\nfile"), "check lint could not be run: no such\\nfile"),
        (replace(LINT, outcome="error"), "check lint could not be run: no reason known"),
        (replace(PASSED, commit=OTHER), "check tests ran on dddddddddddd instead of cccccccccccc"),  # EV-13
        (replace(PASSED, commit=None), "check tests ran on an unknown commit instead of cccccccccccc"),
    ],
)
def test_check_that_did_not_pass_on_this_commit_fails(outcome: CheckOutcome, message: str) -> None:
    assert check_fact([PASSED, outcome], commit=HEAD) == Fact(
        7, "checks", "failed", message, "CHECK_FAILED", is_waivable=True
    )


def test_waived_check_is_said_to_be_waived() -> None:
    assert check_fact([PASSED, LINT], ["lint", "tests"], commit=HEAD) == Fact(
        7, "checks", "waived", "waived: check lint failed with exit code 1", "CHECK_FAILED", is_waivable=True
    )


def test_waiver_of_one_check_leaves_another_standing() -> None:
    other = replace(LINT, name="types")
    assert check_fact([LINT, other], ["lint"], commit=HEAD).message == "check types failed with exit code 1"


def test_waiver_does_not_cover_a_check_of_another_commit() -> None:
    assert check_fact([replace(LINT, commit=OTHER)], ["lint"], commit=HEAD).outcome == "failed"


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (reread_fact(HEAD, HEAD), Fact(8, "unmoved", "ok", "still at cccccccccccc, and clean")),
        (
            reread_fact(HEAD, OTHER),  # EV-07
            Fact(
                8,
                "unmoved",
                "failed",
                "the branch moved from cccccccccccc to dddddddddddd during the verification",
                "EVIDENCE_REJECTED",
            ),
        ),
        (
            reread_fact(HEAD, None),
            Fact(
                8,
                "unmoved",
                "failed",
                "no commit could be read again; the worktree or its branch is gone",
                "EVIDENCE_REJECTED",
            ),
        ),
        (
            reread_fact(HEAD, HEAD, 2),
            Fact(8, "unmoved", "failed", "2 uncommitted files appeared during the verification", "EVIDENCE_REJECTED"),
        ),
        (
            reread_fact(HEAD, HEAD, 1, checks_in_worktree=["tests"]),  # EV-15
            Fact(8, "unmoved", "noted", "1 file left by checks in the worktree (tests)"),
        ),
    ],
)
def test_second_reading_decides_whether_the_first_still_holds(fact: Fact, expected: Fact) -> None:
    assert fact == expected


# --- the verdict -----------------------------------------------------------------------------------------------------


def verdict(facts: Sequence[Fact], waivers: Sequence[FactName] = ()) -> Verdict:
    return judge([*facts, check_fact([PASSED], commit=HEAD), reread_fact(HEAD, HEAD)], waivers, commit=HEAD)


def test_all_facts_good_is_accepted_with_the_full_hash() -> None:
    facts = look(GOOD)
    made = verdict(facts)
    assert (made.accepted, made.commit, made.reasons, made.warnings, made.code) == (True, HEAD, (), (), None)
    assert [fact.number for fact in made.facts] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_first_failed_fact_gives_the_code_and_all_give_reasons() -> None:
    made = verdict(look(replace(GOOD, **dirty(b="untracked", app="nested"))))
    assert (made.accepted, made.code) == (False, "DIRTY_WORKTREE")
    assert made.reasons == ("committed, but b is not", "app is a nested repository")


def test_warning_is_accepted_and_kept() -> None:
    made = verdict(look(GOOD, task=replace(TASK, writes=("docs/**",))))
    assert (made.accepted, made.warnings) == (True, ("1 of 1 changed path outside the write intent: src/a.py",))


def test_waived_fact_is_accepted_and_said_so() -> None:
    drifted = look(GOOD, task=replace(TASK, writes=("docs/**",)), policy="strict")
    assert not verdict(drifted).accepted
    made = verdict(drifted, ["scope"])
    assert (made.accepted, made.warnings) == (
        True,
        ("waived: 1 of 1 changed path outside the write intent: src/a.py",),
    )


@pytest.mark.parametrize(
    ("examination", "name"),
    [
        (replace(GOOD, head_state="detached"), "branch"),
        (replace(GOOD, base_is_ancestor=False), "commit"),
        (replace(GOOD, **dirty(b="untracked")), "clean"),
        (Examination(head=None, head_state="damaged"), "branch"),
    ],
)
def test_branch_ancestry_and_cleanliness_can_never_be_waived(examination: Examination, name: FactName) -> None:
    made = verdict(look(examination), ["branch", "commit", "clean", "nested", "shared", "scope", "checks", "unmoved"])
    assert not made.accepted
    (reason,) = made.reasons
    assert reason.endswith(" (this can never be waived)")
    assert [fact.name for fact in made.facts if fact.outcome == "failed"] == [name]


def test_fact_that_was_not_established_is_a_refusal() -> None:
    made = judge(look(GOOD), commit=HEAD)
    assert (made.accepted, made.reasons, made.code) == (False, ("not established: fact 7, 8",), "EVIDENCE_REJECTED")


def test_verdict_without_a_commit_is_a_refusal() -> None:
    facts = [*look(GOOD), check_fact([]), reread_fact(HEAD, HEAD)]
    made = judge(facts, commit=None)
    assert (made.accepted, made.reasons) == (False, ("no commit was named",))


def test_facts_in_any_order_give_the_same_verdict() -> None:
    facts = [*look(GOOD), check_fact([PASSED], commit=HEAD), reread_fact(HEAD, HEAD)]
    assert judge(reversed(facts), commit=HEAD) == judge(facts, commit=HEAD)
