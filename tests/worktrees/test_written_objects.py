"""Commits and trees that the Runtime writes as files are what git would have written, checked and durable."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import repos
from bench import Calls
from repos import git

from coordinate_agents.worktrees import loose
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import write_commit
from coordinate_agents.worktrees.repository import open_repository
from coordinate_agents.worktrees.tree_objects import TooLargeError


@pytest.fixture(params=["repo", "re po\nwith a line"])
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return repos.make_repo(tmp_path / str(request.param))


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


def text_of(repo: Path, message: str) -> bytes:
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    return f"tree {tree}\nauthor A <a> 5 +0000\ncommitter C <c> 7 +0100\n\n{message}".encode()


def test_commits_take_no_process_and_are_durable_in_the_users_store(
    repo: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[str]
) -> None:
    texts = [text_of(repo, message) for message in ("one\n", "zwei ü\r\n\r\n", "no line end", "")]
    ids = [git(repo, "hash-object", "-t", "commit", "--stdin", input=text.decode()) for text in texts]
    calls = Calls(tmp_path, monkeypatch)

    written = [judge.write_commit(text) for text in texts]

    assert (written, calls.verbs()) == (ids, [])
    assert len(synced) == len(texts) and all("/tmp_obj_" in name for name in synced)
    for oid, text in zip(written, texts, strict=True):
        assert git(repo, "cat-file", "commit", oid) == text.decode().replace("\r\n", "\n").strip()
        stored = repo / ".git/objects" / oid[:2] / oid[2:]
        assert stored.is_file() and not stored.stat().st_mode & 0o222
    assert git(repo, "fsck", "--strict", "--no-dangling", *written) == ""
    assert list((repo / ".git/objects").glob("*/tmp_obj_*")) == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: b"tree nothing\n\nx",
        lambda text: text.replace(b"A <a>", b"A <a <b>"),
        lambda text: text.replace(b"author A", b"author A\ngpgsig x"),
        lambda text: text + b"\0",
        lambda text: text.replace(b" 5 +0000", b" 05 +0000"),
    ],
)
def test_bytes_that_are_no_commit_are_refused_and_nothing_is_written(
    repo: Path, judge: Judge, broken: Callable[[bytes], bytes]
) -> None:
    before = sorted((repo / ".git/objects").rglob("*"))
    with pytest.raises(WorktreeError) as raised:
        judge.write_commit(broken(text_of(repo, "good\n")))
    assert raised.value.code == "INTERNAL_ERROR"
    assert sorted((repo / ".git/objects").rglob("*")) == before
    assert judge.exists(judge.write_commit(text_of(repo, "good\n")))


def test_trees_are_checked_and_written_like_commits(repo: Path, judge: Judge) -> None:
    blob = git(repo, "rev-parse", "HEAD:README.md")
    tree = git(repo, "mktree", input=f"100644 blob {blob}\ta\n100755 blob {blob}\tb\n")
    (repo / ".git/objects" / tree[:2] / tree[2:]).unlink()
    text = b"".join(
        b"%s %s\0%s" % (mode, name, bytes.fromhex(blob)) for mode, name in ((b"100644", b"a"), (b"100755", b"b"))
    )
    assert judge.write_tree(text) == tree
    assert git(repo, "ls-tree", "--name-only", tree) == "a\nb"
    for wrong in (text[:-1], text + text, text.replace(b" a\0", b" .git\0")):
        with pytest.raises(TooLargeError):
            judge.write_tree(wrong)


def test_an_object_that_is_there_is_young_again_and_a_damaged_one_is_whole(repo: Path, judge: Judge) -> None:
    text = text_of(repo, "again\n")
    oid = judge.write_commit(text)
    stored = repo / ".git/objects" / oid[:2] / oid[2:]
    os.utime(stored, (1, 1))
    assert judge.write_commit(text) == oid and stored.stat().st_mtime > 1
    stored.chmod(0o644)
    stored.write_bytes(b"")
    assert judge.write_commit(text) == oid
    assert git(repo, "cat-file", "-t", oid) == "commit"


@pytest.mark.parametrize(("name", "date"), [("A", 1700000000000), ("A", 2**60), ("", 5)])
def test_what_git_writes_is_written(repo: Path, judge: Judge, name: str, date: int) -> None:
    """A commit whose date was given in milliseconds made every merge with it fail."""
    tree, who = git(repo, "rev-parse", "HEAD^{tree}"), f"{name} <a@b> {min(date, 2**53)} +0000"
    text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\nlate\n"
    expected = git(repo, "hash-object", "-t", "commit", "--stdin", input=text)
    assert write_commit(judge, tree, [], date=date, message="late\n", author=(name, "a@b")) == expected
    assert git(repo, "cat-file", "-t", expected) == "commit"


def test_a_folder_or_draft_that_a_prune_takes_meanwhile_is_made_again(
    repo: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, passed = text_of(repo, "pruned\n"), []

    def prune_once(name: str) -> None:
        passed.append(name)
        if passed == ["commit.file"]:
            git(repo, "prune", "--expire=now")

    monkeypatch.setattr(loose, "crash_point", prune_once)
    oid = judge.write_commit(text)
    assert passed == ["commit.file", "commit.file", "commit.written"]
    assert git(repo, "cat-file", "-t", oid) == "commit"


def test_what_stands_in_the_way_in_the_store_is_no_error_of_ours(repo: Path, judge: Judge) -> None:
    text = text_of(repo, "nowhere\n")
    oid = git(repo, "hash-object", "-t", "commit", "--stdin", input=text.decode())
    (repo / ".git/objects" / oid[:2]).write_text("in the way")
    with pytest.raises(WorktreeError, match="could not be written"):
        judge.write_commit(text)


def test_a_machine_that_takes_nothing_more_says_so_itself(
    repo: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        judge.write_commit(text_of(repo, "full\n"))
    assert list((repo / ".git/objects").glob("*/tmp_obj_*")) == []


def test_a_filter_of_the_user_has_no_part(repo: Path, judge: Judge) -> None:
    git(repo, "config", "filter.evil.clean", "sed s/good/evil/")
    (repo / ".git/info/attributes").write_text("* filter=evil\n")
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    oid = write_commit(judge, tree, [], date=7, message="good\n")
    assert git(repo, "show", "-s", "--format=%s", oid) == "good"
