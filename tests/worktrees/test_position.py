"""Where a worktree stands: HEAD, branch, an operation in progress, a lock, damage (EV-05, EV-08, GT-25, GT-29)."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench, agent
from repos import git

from coordinate_agents.worktrees.errors import WorktreeError


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit("f", "1\n")
    bench.commit("g", "1\n")
    yield bench
    bench.close()


def test_commits_on_another_branch_are_named(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git checkout -qb mine; echo x > x; git add x; git commit -qm x")

    seen = bench.examine(worktree)

    assert (seen.head_state, seen.head_branch, seen.commit_count) == ("other-branch", "mine", 1)
    assert seen.branch_tip == worktree.base
    assert seen.head == git(worktree.path, "rev-parse", "mine")


def test_commits_on_a_detached_head_are_named(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git checkout -q --detach; echo x > x; git add x; git commit -qm x")

    seen = bench.examine(worktree)

    assert (seen.head_state, seen.head_branch, seen.commit_count) == ("detached", None, 1)


def test_deleted_branch_without_a_commit_has_no_head(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, 'git update-ref -d "$(git symbolic-ref HEAD)"')

    seen = bench.examine(worktree)

    assert (seen.head, seen.branch_tip, seen.head_state) == (None, None, "on-branch")


def test_branch_aimed_at_the_users_branch_is_another_branch(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git symbolic-ref refs/heads/coordinate-agents/g1/a refs/heads/main; echo 2 > f; git commit -qam x")

    seen = bench.examine(worktree)

    assert (seen.head_state, seen.head_branch) == ("other-branch", "main")
    assert seen.moved_user_refs == ("refs/heads/main",)


@pytest.mark.parametrize(
    ("script", "operation"),
    [
        ("git merge -q other || true", "merge"),
        ("git rebase -q other || true", "rebase"),
        ("git cherry-pick other || true", "cherry-pick"),
        ("git revert --no-edit HEAD~1 || true", "revert"),
        ("git bisect start HEAD main~2", "bisect"),
    ],
)
def test_operation_in_progress_is_named(bench: Bench, script: str, operation: str) -> None:
    git(bench.repo, "checkout", "-q", "-b", "other")
    bench.commit("f", "other\n")
    git(bench.repo, "checkout", "-q", "main")
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x; echo 3 > f; git commit -qam y; echo 4 > f; git commit -qam z")

    agent(worktree, script)

    assert bench.examine(worktree).operation == operation


def test_index_lock_is_reported_with_its_age_and_left(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, 'touch "$(git rev-parse --git-dir)/index.lock"; git commit -qam x; exit 0')
    lock = bench.repo / ".git" / "worktrees" / "a" / "index.lock"
    os.utime(lock, (1, 1))

    seen = bench.examine(worktree)

    assert seen.lock == str(lock)
    assert seen.lock_age_s is not None
    assert seen.lock_age_s > 3600
    assert lock.exists()


def test_worktree_without_its_git_file_is_damaged_and_answers_nothing(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "rm .git; exit 0")

    seen = bench.examine(worktree)

    assert (seen.head_state, seen.head, seen.dirty_count) == ("damaged", None, 0)
    assert seen.branch_tip == worktree.base


def test_broken_worktree_below_the_checkout_does_not_lead_to_the_users_branch(bench: Bench) -> None:
    git(bench.repo, "checkout", "-q", "-b", "userwork")
    bench.place = bench.repo
    worktree = bench.worktree()
    agent(worktree, "rm .git; exit 0")
    assert git(worktree.path, "rev-parse", "--abbrev-ref", "HEAD") == "userwork"

    seen = bench.examine(worktree)

    assert (seen.head_state, seen.head, seen.head_branch) == ("damaged", None, None)


def test_worktree_that_is_gone_is_missing(bench: Bench) -> None:
    worktree = bench.worktree()
    shutil.rmtree(worktree.path)

    assert bench.examine(worktree).head_state == "missing"


def test_worktree_replaced_by_another_folder_is_damaged(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "cd .. && cp -r a copy && mv a old && mv copy a")

    assert bench.examine(worktree).head_state == "damaged"


def test_head_that_names_no_commit_is_an_error_with_a_next_step(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x")
    head = git(worktree.path, "rev-parse", "HEAD")
    (bench.repo / ".git" / "objects" / head[:2] / head[2:]).unlink()

    with pytest.raises(WorktreeError) as caught:
        bench.examine(worktree)

    assert caught.value.code == "EVIDENCE_REJECTED"
    assert caught.value.next == f"git -C {worktree.path} fsck"


@pytest.mark.parametrize("lost", ["HEAD^{tree}", "HEAD~1"])
def test_head_that_cannot_be_read_whole_is_an_error_of_the_evidence(bench: Bench, lost: str) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x; echo 3 > f; git commit -qam y")
    oid = git(worktree.path, "rev-parse", lost)
    (bench.repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()

    with pytest.raises(WorktreeError, match="could not be judged") as caught:
        bench.examine(worktree)

    assert caught.value.code == "EVIDENCE_REJECTED"


def test_branch_of_the_graph_stays_readable_after_pack_refs(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo 2 > f; git commit -qam x; git pack-refs --all; rm -rf ../../repo/.git/refs/heads/coord*")

    seen = bench.examine(worktree)

    assert (seen.head, seen.branch_tip, seen.commit_count) == (seen.head, seen.head, 1)
    assert seen.head != worktree.base
