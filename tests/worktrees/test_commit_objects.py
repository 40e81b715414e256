"""Commits read without a process per question say what git says, or leave the answer to git."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import repos
from repos import git

from coordinate_agents.worktrees.commit_objects import MAX_WALKED, parse
from coordinate_agents.worktrees.contained import containing
from coordinate_agents.worktrees.history import read_history
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.repository import open_repository

_FORMAT = "--format=%H%x00%T%x00%ct%x00%P%x00%s"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "repo")


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


def commit(repo: Path, *parents: str, message: str = "m", date: int = 1_700_000_000) -> str:
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    chosen = [word for oid in parents for word in ("-p", oid)]
    when = f"{date} +0000"
    return git(repo, "commit-tree", *chosen, "-m", message, tree, env=os.environ | {"GIT_COMMITTER_DATE": when})


def listed(repo: Path, base: str, *heads: str) -> list[str]:
    return git(repo, "rev-list", "--no-commit-header", _FORMAT, *heads, f"^{base}").splitlines()


def is_ancestor(repo: Path, ancestor: str, oid: str) -> bool:
    return ancestor in git(repo, "rev-list", oid).splitlines()


def test_history_of_random_graphs_is_what_rev_list_lists(repo: Path, judge: Judge) -> None:
    chance = random.Random(7)
    commits = [git(repo, "rev-parse", "HEAD")]
    for number in range(60):
        parents = sorted(set(chance.choices(commits[-8:], k=chance.choice([1, 1, 2]))))
        # Dates that lie: children older than their parents.
        commits.append(commit(repo, *parents, message=f"s {number}", date=1_600_000_000 + chance.randrange(1000)))
    for _ in range(40):
        base, *heads = chance.choices(commits, k=3)
        expected = {line.split("\0")[0]: line for line in listed(repo, base, *heads)}
        found = read_history(judge, base, heads).commits.values()
        texts = {c.id: f"{c.id}\0{c.tree}\0{c.committed_at}\0{' '.join(c.parents)}\0{c.subject}" for c in found}
        assert texts == expected
        if base != heads[0] and is_ancestor(repo, base, heads[0]):
            names = ("r",) if is_ancestor(repo, heads[0], heads[1]) else ()
            assert containing(judge, heads[0], {"r": heads[1]}, above=base) == names


@pytest.mark.parametrize(
    "message",
    [
        "one line", "one\ntwo \n\nbody", "\n\n  after blanks\n", "", "tab\t\n \nbody", "ends\r\nwith\r\n\r\nreturns",
        "späte Grüße", "parent of all", "encoding x",
    ],
)  # fmt: skip
def test_subject_is_what_git_prints(repo: Path, judge: Judge, message: str) -> None:
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0100\n\n{message}"
    oid = git(repo, "hash-object", "-t", "commit", "-w", "--stdin", input=text)

    found = judge.commits.read(oid)

    assert found is not None
    assert [found.committed_at, found.subject] == [7, git(repo, "show", "-s", "--format=%s", oid)]


@pytest.mark.parametrize(
    "text",
    [
        b"tree T\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0000\nencoding latin1\n\nx",
        b"tree T\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0000\nparent T\n\nx",
        b"tree T\nauthor A <a> 5 +0000\ncommitter C <c> no +0000\n\nx",
        b"tree T\ncommitter C <c> 7 +0000\nauthor A <a> 5 +0000\n\nx",
        b"tree T\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0000\n\nx\0y",
        b"tree T\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0000\n",
        b"",
    ],
)
def test_a_strange_commit_is_left_to_git(text: bytes) -> None:
    assert parse("0" * 40, text.replace(b"T", b"1" * 40)) is None


def test_a_long_history_is_left_to_git_and_complete(repo: Path, judge: Judge) -> None:
    base = tip = git(repo, "rev-parse", "HEAD")
    for number in range(MAX_WALKED + 2):
        tip = commit(repo, tip, message=str(number))

    assert judge.commits.between(base, [tip]) is None
    assert len(read_history(judge, base, [tip]).commits) == MAX_WALKED + 2


def test_a_way_around_base_is_left_to_git(repo: Path, judge: Judge) -> None:
    root = git(repo, "rev-parse", "HEAD")
    base, side = commit(repo, root, message="base"), commit(repo, root, message="side")
    head = commit(repo, base, side, message="head")

    assert judge.commits.between(base, [head]) is None
    assert set(read_history(judge, base, [head]).commits) == {side, head}
    assert judge.commits.between(head, [base]) is None
    assert read_history(judge, head, [base]).commits == {}


def test_a_commit_that_others_add_after_it_was_missed_is_found(repo: Path, judge: Judge) -> None:
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0000\n\nlate\n"
    oid = git(repo, "hash-object", "-t", "commit", "--stdin", input=text)
    assert (judge.commits.read(oid), judge.exists(oid)) == (None, False)

    git(repo, "hash-object", "-t", "commit", "-w", "--stdin", input=text)

    assert judge.exists(oid)
    found = judge.commits.read(oid)
    assert found is not None
    assert found.subject == "late"
    # Packed by somebody else, with the loose file gone.
    git(repo, "branch", "late", oid)
    git(repo, "gc", "-q", "--prune=now")
    assert judge.exists(oid)


def test_content_with_another_hash_than_its_name_is_not_believed(repo: Path, judge: Judge) -> None:
    good = commit(repo, message="good")
    other = commit(repo, message="other")
    objects = repo / ".git" / "objects"
    place = objects / other[:2] / other[2:]
    place.unlink()
    os.link(objects / good[:2] / good[2:], place)

    assert judge.commits.read(other) is None
    assert judge.commits.read(good) is not None


def test_a_shallow_boundary_ends_history_although_the_objects_are_there(repo: Path, judge: Judge) -> None:
    base = git(repo, "rev-parse", "HEAD")
    middle = commit(repo, base, message="middle")
    head = commit(repo, middle, message="head")
    (repo / ".git" / "shallow").write_text(f"{middle}\n")
    judge.copy_shallow()

    found = read_history(judge, base, [head])

    assert [found.commits[oid].parents for oid in (head, middle)] == [(middle,), ()]
