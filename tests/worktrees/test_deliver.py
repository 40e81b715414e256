"""A branch that the user named holds a commit: new or moved forward, never under somebody's feet, never backward."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench
from repos import git

from coordinate_agents.worktrees.deliver import deliver, remotes, subjects
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import Delivered, DeliveryRequest, Squash

ANN = Squash("Ann User", "ann@example.org", "All of it\n\nTrailer: x\n")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def request_(bench: Bench) -> DeliveryRequest:
    base = bench.head()
    return DeliveryRequest("release", bench.head_of("a", base, {"f": "1\n"}).commit, base)


def refused(bench: Bench, request: DeliveryRequest) -> tuple[str, str]:
    before = git(bench.repo, "for-each-ref")
    with pytest.raises(WorktreeError) as caught:
        deliver(bench.judge, request)
    assert git(bench.repo, "for-each-ref") == before
    return caught.value.code, caught.value.message


def squashed(request: DeliveryRequest, **changes: str) -> DeliveryRequest:
    values = {"branch": request.branch, "commit": request.commit, "base": request.base, **changes}
    return DeliveryRequest(**values, squash=ANN)  # type: ignore[arg-type]


def test_a_new_branch_stands_at_the_commit_and_a_second_call_moves_nothing(
    bench: Bench, request_: DeliveryRequest
) -> None:
    assert deliver(bench.judge, request_) == Delivered(request_.commit, None, None, is_moved=True)
    assert bench.head("release") == request_.commit
    assert deliver(bench.judge, request_) == Delivered(request_.commit, request_.commit, None, is_moved=False)


def test_a_branch_that_the_commit_contains_moves_forward(bench: Bench, request_: DeliveryRequest) -> None:
    git(bench.repo, "branch", "release")
    git(bench.repo, "pack-refs", "--all")
    assert deliver(bench.judge, request_) == Delivered(request_.commit, request_.base, None, is_moved=True)


def test_a_branch_with_work_of_its_own_is_refused_squashed_or_not(bench: Bench, request_: DeliveryRequest) -> None:
    git(bench.repo, "branch", "release", bench.head_of("b", request_.base, {"g": "1\n"}).commit)
    for asked in (request_, squashed(request_)):
        code, message = refused(bench, asked)
        assert code == "WORKTREE_CONFLICT"
        assert "(it has 1 commit of its own), so it would not move forward" in message


def test_a_branch_that_somebody_works_on_is_refused_wherever_that_is(bench: Bench, request_: DeliveryRequest) -> None:
    """In the main checkout, a linked one, one in the middle of a rebase or a bisect of the branch."""
    git(bench.repo, "checkout", "-q", "-b", "release")
    assert f"checked out in {bench.repo}" in refused(bench, request_)[1]
    git(bench.repo, "checkout", "-q", "main")
    linked = bench.place / "linked tree"
    git(bench.repo, "worktree", "add", "-q", str(linked), "release")
    assert f"checked out in {linked}" in refused(bench, request_)[1]
    git(linked, "-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--force-rebase", "--root")
    assert git(linked, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert f"checked out in {linked}" in refused(bench, request_)[1]
    git(linked, "rebase", "--abort")
    git(linked, "bisect", "start")
    git(linked, "checkout", "-q", "--detach")
    assert f"checked out in {linked}" in refused(bench, request_)[1]
    git(linked, "bisect", "reset", "HEAD")
    git(linked, "checkout", "-q", "--detach")
    assert deliver(bench.judge, request_).is_moved


def test_an_unborn_branch_that_is_checked_out_is_not_made(bench: Bench, request_: DeliveryRequest) -> None:
    git(bench.repo, "checkout", "-q", "--orphan", "release")
    assert refused(bench, request_)[0] == "WORKTREE_CONFLICT"


def test_a_symbolic_branch_is_not_followed_to_another_one(bench: Bench, request_: DeliveryRequest) -> None:
    git(bench.repo, "branch", "other")
    git(bench.repo, "symbolic-ref", "refs/heads/release", "refs/heads/other")
    assert "symbolic" in refused(bench, request_)[1]


def test_a_branch_in_whose_folder_another_one_stands_is_refused_by_git(bench: Bench, request_: DeliveryRequest) -> None:
    git(bench.repo, "branch", "release/1")
    assert refused(bench, request_)[0] == "WORKTREE_CONFLICT"


@pytest.mark.parametrize(
    "name",
    ["", "-d", "a b", "HEAD", "@", "@{-1}", "a..b", "refs/heads/x", "coordinate-agents", "coordinate-agents/x/y"],
)
def test_a_name_that_is_none_or_is_the_runtimes_is_bad_usage(
    bench: Bench, request_: DeliveryRequest, name: str
) -> None:
    assert refused(bench, DeliveryRequest(name, request_.commit, request_.base))[0] == "INVALID_USAGE"


def test_a_squashed_commit_is_the_users_and_the_same_again_finds_it(bench: Bench, request_: DeliveryRequest) -> None:
    asked = squashed(request_)
    done = deliver(bench.judge, asked)
    assert (done.previous, done.parent, done.is_moved) == (None, request_.base, True)
    told = git(bench.repo, "show", "-s", "--format=%P|%an <%ae>|%cn|%B", "release")
    assert told == f"{request_.base}|Ann User <ann@example.org>|Ann User|{ANN.message.strip()}"
    assert git(bench.repo, "diff", "release", request_.commit) == ""
    again = deliver(bench.judge, asked)
    assert (again.commit, again.is_moved) == (done.commit, False)


def test_a_squash_on_a_branch_keeps_what_it_had_and_adds_one_commit(bench: Bench, request_: DeliveryRequest) -> None:
    git(bench.repo, "branch", "release", request_.commit)
    further = bench.head_of("b", bench.head_of("c", request_.commit, {"g": "1\n"}).commit, {"h": "1\n"}).commit
    done = deliver(bench.judge, squashed(request_, commit=further))
    assert (done.previous, done.parent) == (request_.commit, request_.commit)
    assert git(bench.repo, "rev-list", "--count", f"{request_.commit}..release") == "1"
    assert deliver(bench.judge, squashed(request_, commit=further)).is_moved is False


def test_a_further_squash_stands_on_the_earlier_one_only_when_that_is_named(
    bench: Bench, request_: DeliveryRequest
) -> None:
    first = deliver(bench.judge, squashed(request_)).commit
    other = bench.head_of("b", request_.base, {"f": "2\n"}).commit
    assert "would not move forward" in refused(bench, squashed(request_, commit=other))[1]
    done = deliver(bench.judge, squashed(request_, commit=other, earlier=first))
    assert (done.previous, done.parent) == (first, first)
    assert git(bench.repo, "diff", "release", other) == ""


def test_the_subjects_are_those_of_the_commits_between_oldest_first(bench: Bench, request_: DeliveryRequest) -> None:
    further = bench.head_of("b", request_.commit, {"g": "1\n"}).commit
    told = ((request_.commit, "work of a"), (further, "work of b"))
    assert subjects(bench.judge, request_.base, further, limit=9) == told
    assert subjects(bench.judge, request_.base, further, limit=1) == told[:1]


def test_the_remotes_are_named_without_their_addresses(bench: Bench) -> None:
    assert remotes(bench.judge) == ()
    git(bench.repo, "remote", "add", "up.stream", "https://user:word@example.org/x")
    git(bench.repo, "remote", "add", "origin", "/nowhere")
    assert remotes(bench.judge) == ("up.stream", "origin")
