"""Differences of trees and added objects, read without a process per question, are what git says."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import repos
from repos import git

from coordinate_agents.worktrees.diff import changed, raw_changes
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.history import read_complete_history
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.repository import open_repository
from coordinate_agents.worktrees.tree_objects import MAX_NEW, TooLargeError, loose_paths, parse_tree

OID = bytes(20)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "repo")


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


def shuffle(repo: Path, chance: random.Random, *, may_add: bool, may_delete: bool) -> str:
    """Change some files of a small tree with awkward names, and commit."""
    names = ["a", "a.b", "a0", "d/x", "d/x.y", "d/x0", "d-e", "d/e/f", "d/e/ö", "z\tz", "sub/link", "A"]
    for name in chance.sample(names, 4):
        path = repo / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        exists = os.path.lexists(path)
        if exists and may_delete and chance.random() < 0.4:
            path.unlink()
        elif exists or may_add:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            kind = chance.choice(["file", "file", "link", "executable"])
            if kind == "link":
                path.symlink_to(f"to {chance.random()}")
            else:
                path.write_text(f"{chance.random()}\n")
                path.chmod(0o755 if kind == "executable" else 0o644)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    return git(repo, "rev-parse", "HEAD")


@pytest.mark.parametrize(("may_add", "may_delete"), [(True, True), (True, False), (False, True)])
def test_random_changes_are_those_of_diff_tree(repo: Path, judge: Judge, may_add: bool, may_delete: bool) -> None:
    chance = random.Random(3)
    shuffle(repo, chance, may_add=True, may_delete=False)
    shuffle(repo, chance, may_add=True, may_delete=False)
    commits = [shuffle(repo, chance, may_add=may_add, may_delete=may_delete) for _ in range(12)]
    for old, new in zip(commits, [*commits[1:], commits[0]], strict=True):
        fields = iter(judge.git("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "-M", old, new).fields())
        expected = []
        for meta in fields:
            words = meta.split(" ")
            paths = [next(fields)] if words[4][0] not in "RC" else [next(fields), next(fields)]
            expected.append((words[4][0], words[1], words[3], paths[-1]))
        letters = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R", "copied": "C", "type": "T"}
        found = raw_changes(judge, old, new)
        assert [(letters[c.path.kind], c.mode, c.oid, c.path.path) for c in found] == expected
        names = judge.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new).fields()
        assert changed(judge, old, new) == tuple(sorted(names))


def test_added_objects_are_all_that_rev_list_finds(repo: Path, judge: Judge) -> None:
    chance = random.Random(5)
    base = shuffle(repo, chance, may_add=True, may_delete=False)
    git(repo, "checkout", "-q", "-b", "side")
    shuffle(repo, chance, may_add=True, may_delete=False)
    git(repo, "checkout", "-q", "main")
    (repo / "own").write_text("own\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "own")
    git(repo, "merge", "-q", "--no-edit", "-X", "ours", "side")
    head = git(repo, "rev-parse", "HEAD")
    between = judge.commits.between(base, [head])
    assert between is not None

    added = judge.trees.added(base, between)

    assert added is not None
    listed = set(git(repo, "rev-list", "--objects", "--no-object-names", head, f"^{base}").splitlines())
    assert set(added) >= listed
    assert set(added) - listed <= set(git(repo, "rev-list", "--objects", "--no-object-names", head).splitlines())


@pytest.mark.parametrize("missing", ["HEAD:d/new", "HEAD:d", "HEAD^{tree}", "HEAD~1^{tree}"])
def test_a_missing_object_is_an_error_also_after_it_was_read(repo: Path, judge: Judge, missing: str) -> None:
    base = git(repo, "rev-parse", "HEAD")
    (repo / "d").mkdir()
    for number in range(2):
        (repo / "d" / "new").write_text(f"{number}\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", str(number))
    head, gone = git(repo, "rev-parse", "HEAD"), git(repo, "rev-parse", missing)
    assert len(read_complete_history(judge, base, [head]).commits) == 2
    (repo / ".git" / "objects" / gone[:2] / gone[2:]).unlink()

    with pytest.raises(WorktreeError):
        read_complete_history(judge, base, [head])


def test_packed_objects_are_left_to_git_and_found(repo: Path, judge: Judge) -> None:
    base = git(repo, "rev-parse", "HEAD")
    head = repos.commit_file(repo, "x", "x")
    git(repo, "gc", "-q", "--prune=now")

    assert loose_paths(judge.user_objects, [head]) is None
    assert set(read_complete_history(judge, base, [head]).commits) == {head}


def test_many_changes_are_left_to_git_and_complete(repo: Path, judge: Judge) -> None:
    base = git(repo, "rev-parse", "HEAD")
    for number in range(MAX_NEW + 1):
        (repo / f"f{number}").write_text("x")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "many")
    head = git(repo, "rev-parse", "HEAD")

    assert judge.trees.changes(judge.tree_of(base), judge.tree_of(head)) is None
    assert len(changed(judge, base, head)) == MAX_NEW + 1


@pytest.mark.parametrize(
    "data",
    [
        b"100644 b\0" + OID + b"100644 a\0" + OID,
        b"100644 a\0" + OID + b"100644 a\0" + OID,
        b"100644 a\0" + OID + b"40000 a\0" + OID,
        b"100644 .GIT\0" + OID,
        b"100644 ..\0" + OID,
        b"100644 a/b\0" + OID,
        b"100664 a\0" + OID,
        b"040000 a\0" + OID,
        b"100644 a\0" + OID[:19],
        b"100644 a",
        b"100644 \0" + OID,
    ],
)
def test_a_strange_tree_is_left_to_git(data: bytes) -> None:
    with pytest.raises(TooLargeError):
        parse_tree(data, 20)


def test_a_folder_sorts_as_git_sorts_it() -> None:
    data = b"100644 a.b\0" + OID + b"40000 a\0" + OID + b"100644 a0\0" + OID
    assert list(parse_tree(data, 20)) == [b"a.b", b"a", b"a0"]
