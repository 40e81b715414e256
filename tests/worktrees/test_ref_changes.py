"""Refs changed through the kept process: the same guarantees as with a process for each change."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import repos
from bench import Calls
from repos import commit_file, git

from coordinate_agents.worktrees import ref_changes
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.refs import RefChange, change_refs
from coordinate_agents.worktrees.repository import open_repository

A = "refs/coordinate-agents/g/a/kept-1"
B = "refs/coordinate-agents/g/b/kept-1"
BRANCH = "refs/heads/coordinate-agents/g/a"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "repo")


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


def values(repo: Path) -> dict[str, str]:
    lines = git(repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/coordinate-agents").splitlines()
    return dict(line.split(" ") for line in lines)


def test_many_changes_take_one_process(
    repo: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(repo, "rev-parse", "HEAD")
    calls = Calls(tmp_path, monkeypatch)
    for number in range(20):
        change_refs(judge, [RefChange(f"{A}{number}", head, None)])
    assert calls.verbs() == ["update-ref"]
    assert values(repo) == {f"{A}{number}": head for number in range(20)}


def test_a_refused_transaction_changes_nothing_and_the_next_one_succeeds(repo: Path, judge: Judge) -> None:
    first = git(repo, "rev-parse", "HEAD")
    second = commit_file(repo, "x", "x")
    change_refs(judge, [RefChange(A, first, "")])
    for wrong in (RefChange(A, second, second), RefChange(A, second, ""), RefChange(A, "1" * 40, first)):
        with pytest.raises(WorktreeError) as raised:
            change_refs(judge, [RefChange(B, second, ""), wrong])
        assert raised.value.code == "WORKTREE_CONFLICT"
        assert A in raised.value.message
        assert values(repo) == {A: first}
    change_refs(judge, [RefChange(B, second, ""), RefChange(A, second, first)])
    assert values(repo) == {A: second, B: second}


def test_what_others_do_between_two_transactions_is_seen(repo: Path, judge: Judge) -> None:
    first = git(repo, "rev-parse", "HEAD")
    change_refs(judge, [RefChange(A, first, "")])

    second = commit_file(repo, "x", "x")  # an object that the kept process has never seen
    change_refs(judge, [RefChange(A, second, first)])
    git(repo, "pack-refs", "--all")
    git(repo, "gc", "-q", "--prune=now")
    change_refs(judge, [RefChange(A, first, second)])
    git(repo, "update-ref", A, second)
    git(repo, "pack-refs", "--all")
    with pytest.raises(WorktreeError):
        change_refs(judge, [RefChange(A, second, first)])
    change_refs(judge, [RefChange(A, first, second)])
    git(repo, "update-ref", "-d", A)
    change_refs(judge, [RefChange(A, second, "")])

    assert values(repo) == {A: second}


def test_a_folder_that_others_made_or_removed_in_between_is_seen(repo: Path, judge: Judge) -> None:
    head = git(repo, "rev-parse", "HEAD")
    change_refs(judge, [RefChange(A, head, None)])
    git(repo, "update-ref", f"{B}/below", head)
    with pytest.raises(WorktreeError, match="below"):
        change_refs(judge, [RefChange(B, head, "")])
    git(repo, "update-ref", "-d", f"{B}/below")
    change_refs(judge, [RefChange(B, head, "")])
    assert values(repo) == {A: head, B: head}


def test_a_symbolic_ref_is_replaced_and_what_it_names_stays(repo: Path, judge: Judge) -> None:
    first = git(repo, "rev-parse", "HEAD")
    second = commit_file(repo, "x", "x")
    change_refs(judge, [RefChange(B, first, "")])
    git(repo, "symbolic-ref", A, "refs/heads/main")

    change_refs(judge, [RefChange(A, first, None)])

    assert git(repo, "rev-parse", A, "main").split() == [first, second]


def test_no_hook_and_no_setting_of_the_user_takes_part(repo: Path, judge: Judge, tmp_path: Path) -> None:
    hook = repo / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    hook.chmod(0o755)
    change_refs(judge, [RefChange(A, git(repo, "rev-parse", "HEAD"), None)])
    assert len(values(repo)) == 1
    assert not (tmp_path / "ran").exists()


def test_a_killed_process_is_replaced(repo: Path, judge: Judge) -> None:
    head = git(repo, "rev-parse", "HEAD")
    change_refs(judge, [RefChange(A, head, None)])
    child = judge._changer._kept.child
    assert child is not None
    child.kill()
    child.wait()

    change_refs(judge, [RefChange(B, head, "")])

    assert values(repo) == {A: head, B: head}


def test_an_old_process_is_replaced_so_that_reflogs_have_the_time(
    repo: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(repo, "rev-parse", "HEAD")
    change_refs(judge, [RefChange(A, head, None)])
    child = judge._changer._kept.child
    assert child is not None
    monkeypatch.setattr(ref_changes, "MAX_AGE_S", 0.0)

    change_refs(judge, [RefChange(BRANCH, head, "")])

    assert child.returncode is not None
    assert judge._changer._kept.child is not child


def test_threads_change_refs_one_after_the_other(repo: Path, judge: Judge) -> None:
    head = git(repo, "rev-parse", "HEAD")
    won: list[int] = []

    def work(number: int) -> None:
        for name in (A, f"refs/coordinate-agents/g/t{number}/kept-1"):
            try:
                change_refs(judge, [RefChange(name, head, "")])
                won.append(number)
            except WorktreeError as error:
                assert error.code == "WORKTREE_CONFLICT"

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(won) == 9
    assert len(values(repo)) == 9


def test_many_refs_at_once_are_set_together(repo: Path, judge: Judge) -> None:
    head = git(repo, "rev-parse", "HEAD")
    change_refs(judge, [RefChange(f"{A}{number}", head, "") for number in range(1000)])
    assert len(values(repo)) == 1000


def test_closing_the_judge_ends_the_process(repo: Path) -> None:
    with Judge.open(open_repository(str(repo))) as judge:
        change_refs(judge, [RefChange(A, git(repo, "rev-parse", "HEAD"), None)])
        child = judge._changer._kept.child
    assert child is not None
    assert child.returncode is not None
