"""What an examination shows of honest, careless and lying agents (cases EV-*, GT-25, GT-29, SY-03)."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench, Calls, agent
from repos import git

from coordinate_agents.worktrees.examine import reread
from coordinate_agents.worktrees.model import ChangedPath, DirtyPath, Examination, RefSnapshot
from coordinate_agents.worktrees.ownership import Record, write_record


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit("f", "1\n")
    bench.commit("g", "1\n")
    yield bench
    bench.close()


def test_honest_work_is_seen_whole(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f && git mv g h && git add -A && git commit -qm one && echo k > k && git add k")
    agent(worktree, "git commit -qm 'two: the last'")

    seen = bench.examine(worktree)

    assert seen == Examination(
        head=git(worktree.path, "rev-parse", "HEAD"),
        tree=git(worktree.path, "rev-parse", "HEAD^{tree}"),
        branch_tip=git(worktree.path, "rev-parse", "HEAD"),
        head_state="on-branch",
        head_branch=worktree.branch,
        base_is_ancestor=True,
        tree_differs=True,
        commit_count=2,
        subject="two: the last",
        changed=(
            ChangedPath("f", "modified"),
            ChangedPath("h", "renamed", "g"),
            ChangedPath("k", "added"),
        ),
    )


def test_nothing_done_shows_head_at_base(bench: Bench) -> None:
    worktree = bench.worktree()

    seen = bench.examine(worktree)

    assert (seen.head, seen.commit_count, seen.tree_differs, seen.contained_in) == (worktree.base, 0, False, ())
    assert seen.base_is_ancestor
    assert seen.dirty_count == 0


def test_work_left_uncommitted_is_counted(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo work > deliverable.txt; exit 0")

    seen = bench.examine(worktree)

    assert (seen.commit_count, seen.dirty) == (0, (DirtyPath("deliverable.txt", "untracked"),))


def test_empty_commit_has_the_tree_of_base(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git commit -q --allow-empty -m done")

    seen = bench.examine(worktree)

    assert (seen.commit_count, seen.tree_differs, seen.changed) == (1, False, ())


def test_commit_and_its_revert_have_the_tree_of_base(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f && git commit -qam x && git revert -n HEAD && git commit -qm back")

    seen = bench.examine(worktree)

    assert (seen.commit_count, seen.tree_differs, seen.operation) == (2, False, None)


def test_commits_left_on_another_branch_are_strays(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git checkout -qb mine; echo x > x; git add x; git commit -qm x; git checkout -q -")

    seen = bench.examine(worktree)

    assert (seen.head, seen.head_state) == (worktree.base, "on-branch")
    assert seen.stray_commits == (git(worktree.path, "rev-parse", "mine"),)


def test_commit_that_was_amended_or_reset_away_is_a_stray(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam first; echo 3 > f; git commit -q --amend -am second")
    first = git(worktree.path, "rev-parse", "HEAD@{1}")

    assert bench.examine(worktree).stray_commits == (first,)


def test_visit_to_the_users_branches_leaves_no_stray(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x")
    bench.commit("later", "the user works on\n")
    agent(worktree, "git checkout -q --detach main; git checkout -q coordinate-agents/g1/a")

    assert bench.examine(worktree).stray_commits == ()


AMEND = "echo y > y; git add y; git commit -q --amend -m x"
RESET = "git reset -q --hard HEAD~1; echo y > y; git add y; git commit -qm y"
SOFT = "git reset -q --soft HEAD~2; git commit -qm z"
ORPHAN = "git checkout -q --orphan o; git commit -qm o; git branch -f coordinate-agents/g1/a o; git checkout -q -"
OWN_REF_DELETED = 'git update-ref -d "$(git symbolic-ref HEAD)"; git commit -q --allow-empty -m x'


@pytest.mark.parametrize("script", [AMEND, RESET, SOFT, OWN_REF_DELETED])
def test_rewritten_history_does_not_contain_base(bench: Bench, script: str) -> None:
    worktree = bench.worktree()
    agent(worktree, script)

    seen = bench.examine(worktree)

    assert seen.head is not None
    assert not seen.base_is_ancestor
    assert seen.head_state == "on-branch"


def test_orphan_branch_does_not_contain_base(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git checkout -q --orphan o; git commit -qm o")

    seen = bench.examine(worktree)

    assert (seen.head_state, seen.head_branch, seen.base_is_ancestor) == ("other-branch", "o", False)


@pytest.mark.parametrize("date", ["2001-01-01T00:00:00Z", "2089-01-01T00:00:00Z"])
def test_odd_dates_hide_and_invent_nothing(bench: Bench, date: str) -> None:
    """EV-09."""
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x", GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)

    seen = bench.examine(worktree)

    assert (seen.base_is_ancestor, seen.commit_count, seen.contained_in) == (True, 1, ())


def test_foreign_old_commit_is_contained_in_its_branch(bench: Bench) -> None:
    git(bench.repo, "checkout", "-q", "-b", "feature")
    bench.commit("f", "feature\n")
    git(bench.repo, "checkout", "-q", "main")
    worktree = bench.worktree()
    agent(worktree, "git merge -q --ff-only feature")

    seen = bench.examine(worktree)

    assert (seen.commit_count, seen.contained_in) == (1, ("refs/heads/feature",))


def test_branch_made_later_from_the_work_is_no_container(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x; git branch backup; git update-ref refs/remotes/origin/a HEAD")

    seen = bench.examine(worktree)

    assert (seen.contained_in, seen.moved_user_refs) == ((), ())


def test_siblings_work_claimed_as_own_is_contained_in_its_branch(bench: Bench) -> None:
    worktree, sibling = bench.worktree("a"), bench.worktree("b")
    agent(sibling, "echo 2 > f; git commit -qam x")
    agent(worktree, "git reset -q --hard coordinate-agents/g1/b")

    assert bench.examine(worktree).contained_in == ("refs/heads/coordinate-agents/g1/b",)
    assert bench.examine(worktree, siblings=()).contained_in == ()


def test_dependent_that_was_started_on_the_work_is_no_container(bench: Bench) -> None:
    worktree = bench.worktree("a")
    agent(worktree, "echo 2 > f; git commit -qam x")
    dependent = bench.worktree("b", git(worktree.path, "rev-parse", "HEAD"))
    write_record(bench.judge.facts, GRAPH, "b", Record(dependent, "ready"))
    agent(dependent, "echo 3 > g; git commit -qam y")
    assert bench.examine(worktree).contained_in == ()

    thief = bench.worktree("c")
    write_record(bench.judge.facts, GRAPH, "c", Record(thief, "ready"))
    agent(thief, "git reset -q --hard coordinate-agents/g1/a")
    assert bench.examine(thief, "c").contained_in == ("refs/heads/coordinate-agents/g1/a",)


def test_own_earlier_pins_and_shared_base_are_no_containers(bench: Bench) -> None:
    worktree = bench.worktree("a")
    bench.worktree("b")
    agent(worktree, f"echo 2 > f; git commit -qam x; git update-ref refs/coordinate-agents/{GRAPH}/a/kept-1 HEAD")

    assert bench.examine(worktree).contained_in == ()


def test_sibling_that_only_looked_rejects_nobody(bench: Bench) -> None:
    worktree = bench.worktree("a")
    agent(worktree, f"echo 2 > f; git commit -qam x; git update-ref refs/coordinate-agents/{GRAPH}/b/kept-1 HEAD")

    assert bench.examine(worktree).contained_in == ()


def test_users_branch_moved_onto_the_work_is_named(bench: Bench) -> None:
    git(bench.repo, "branch", "release")
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x; git update-ref refs/heads/release HEAD")

    assert bench.examine(worktree).moved_user_refs == ("refs/heads/release",)


def test_user_who_commits_and_packs_refs_meanwhile_is_not_blamed(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x")
    bench.commit("mine", "the user works on\n")
    git(bench.repo, "pack-refs", "--all")

    seen = bench.examine(worktree)

    assert (seen.moved_user_refs, seen.contained_in, seen.commit_count) == ((), (), 1)
    assert seen.head == git(worktree.path, "rev-parse", "HEAD")


def test_work_in_the_users_checkout_leaves_the_worktree_empty(bench: Bench) -> None:
    """EV-11."""
    worktree = bench.worktree()
    agent(
        worktree,
        "R=$(git worktree list --porcelain | sed -n '1s/^worktree //p'); echo leak >> \"$R/f\";"
        " git -C \"$R\" checkout -qb hijack; git commit -q --allow-empty -m 'implements f'",
    )

    seen = bench.examine(worktree)

    assert (seen.commit_count, seen.tree_differs, seen.dirty_count) == (1, False, 0)
    root = git(bench.repo, "rev-parse", "HEAD")
    assert seen.moved_root == (("refs/heads/main", root), ("refs/heads/hijack", root))
    assert git(bench.repo, "status", "--porcelain") == "M f"  # nothing was reset


def test_head_that_moves_after_the_look_is_seen_by_reading_again(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo x > x; git add x; git commit -qm x")
    seen = bench.examine(worktree)
    assert reread(bench.judge, bench.request(worktree)) == (seen.head, 0)

    agent(worktree, "git commit -q --amend -m sneaky; echo z >> x; git commit -qam late; echo left > left")

    again = reread(bench.judge, bench.request(worktree))
    assert again == (git(worktree.path, "rev-parse", "HEAD"), 1)
    assert again[0] != seen.head


def test_reading_again_a_worktree_that_is_gone_finds_no_head(bench: Bench) -> None:
    worktree = bench.worktree()
    request = bench.request(worktree)
    shutil.rmtree(worktree.path)

    assert reread(bench.judge, request) == (None, 0)


def test_links_that_lead_outside_are_named_and_honest_ones_are_not(bench: Bench, tmp_path: Path) -> None:
    worktree = bench.worktree()
    agent(
        worktree,
        f"mkdir -p d/e; ln -s AGENTS.md CLAUDE.md; ln -s ../f d/up; ln -sfn {tmp_path} out;"
        " ln -s ~/.bashrc .graph-prompt; ln -s ../../../x d/e/climb; ln -s .git/config conf;"
        " ln -s d link; ln -s link/../../y twice;"
        " git add -A; git commit -qm links",
    )

    assert bench.examine(worktree).outside_links == (".graph-prompt", "conf", "d/e/climb", "out", "twice")


def test_path_with_newline_and_quote_is_carried_whole(bench: Bench) -> None:
    worktree = bench.worktree()
    Path(worktree.path, 'a\n"b').write_text("x")
    Path(worktree.path, os.fsdecode(b"\xff.txt")).write_text("x")

    seen = bench.examine(worktree)

    assert [entry.path for entry in seen.dirty] == ['a\n"b', "\udcff.txt"]


def test_more_dirt_than_the_limit_is_counted_whole(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "for n in 1 2 3 4 5; do echo > n$n; done")

    seen = bench.examine(worktree, dirty_limit=2)

    assert ([entry.path for entry in seen.dirty], seen.dirty_count) == (["n1", "n2"], 5)


def test_what_setup_left_is_blamed_on_nobody(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo > setup.log; mkdir deps; echo > deps/a; echo > mine")

    seen = bench.examine(worktree, baseline=("setup.log", "deps/a"))

    assert seen.dirty == (DirtyPath("mine", "untracked"),)


def test_honest_work_costs_two_git_processes(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worktree = bench.worktree()
    bench.worktree("b")
    agent(worktree, "echo 2 > f; git commit -qam x")
    bench.examine(worktree)  # the kept cat-file and the base's rules
    calls = Calls(tmp_path, monkeypatch)

    bench.examine(worktree)

    assert calls.verbs() == [
        "read-tree",
        "ls-files",
    ]


def test_odd_refs_of_the_user_disturb_nothing(bench: Bench) -> None:
    git(bench.repo, "tag", "a-blob", git(bench.repo, "rev-parse", "HEAD:f"))
    git(bench.repo, "tag", "a-tree", git(bench.repo, "rev-parse", "HEAD^{tree}"))
    git(bench.repo, "tag", "-a", "-m", "x", "noted")
    git(bench.repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
    worktree = bench.worktree()
    missing = "0123456789" * 4
    before = RefSnapshot({**bench.before.refs, "refs/heads/gone": missing})
    agent(worktree, "echo 2 > f; git commit -qam x; git tag -f a-blob HEAD:g 2> /dev/null")
    bench.commit("more", "user\n")

    seen = bench.examine(worktree, first_refs=before, attempt_refs=before)

    assert (seen.contained_in, seen.moved_user_refs, seen.commit_count) == ((), (), 1)


def test_every_ref_that_contains_the_work_is_named_up_to_a_bound(bench: Bench) -> None:
    git(bench.repo, "checkout", "-q", "-b", "feature")
    bench.commit("f", "feature\n")
    for number in range(20):
        git(bench.repo, "branch", f"copy-{number:02}")
    bench.commit("f", "further\n")
    git(bench.repo, "checkout", "-q", "main")
    worktree = bench.worktree()
    agent(worktree, "git reset -q --hard copy-00")

    named = bench.examine(worktree).contained_in

    assert len(named) == 8
    assert set(named) <= {f"refs/heads/copy-{number:02}" for number in range(20)} | {"refs/heads/feature"}
