"""Commits and trees written through the kept process are the same bytes, checked and durable."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import repos
from bench import Calls
from repos import git

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import write_commit
from coordinate_agents.worktrees.repository import open_repository


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


def test_many_commits_take_one_process_and_are_in_the_users_store(
    repo: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text_of(repo, message) for message in ("one\n", "zwei ü\r\n\r\n", "no line end")]
    calls = Calls(tmp_path, monkeypatch)

    written = [judge.write_commit(text) for text in texts]

    assert calls.verbs() == ["hash-object"]
    assert "core.fsync=loose-object" in calls.lines()[0]
    for oid, text in zip(written, texts, strict=True):
        assert git(repo, "cat-file", "commit", oid) == text.decode().replace("\r\n", "\n").strip()
        assert (repo / ".git/objects" / oid[:2] / oid[2:]).is_file()
    assert list(Path(judge.git_dir, "tmp").iterdir()) == []


def test_bytes_that_are_no_commit_are_refused_and_the_next_is_written(repo: Path, judge: Judge) -> None:
    with pytest.raises(WorktreeError) as raised:
        judge.write_commit(b"tree nothing\n\nx")
    assert (raised.value.code, "git hash-object failed" in raised.value.message) == ("INTERNAL_ERROR", True)
    assert judge.exists(judge.write_commit(text_of(repo, "good\n")))


def test_trees_are_checked_and_written_like_commits(repo: Path, judge: Judge) -> None:
    blob = git(repo, "rev-parse", "HEAD:README.md")
    tree = git(repo, "mktree", input=f"100644 blob {blob}\ta\n100755 blob {blob}\tb\n")
    text = b"".join(
        b"%s %s\0%s" % (mode, name, bytes.fromhex(blob)) for mode, name in ((b"100644", b"a"), (b"100755", b"b"))
    )
    assert judge.write_tree(text) == tree
    with pytest.raises(WorktreeError, match="git hash-object failed"):
        judge.write_tree(text[:-1])
    assert judge.write_tree(text) == tree


def test_a_killed_process_is_replaced(repo: Path, judge: Judge) -> None:
    first = judge.write_commit(text_of(repo, "first\n"))
    child = judge._writers["commit"]._kept.child
    assert child is not None
    child.kill()
    child.wait()
    assert judge.write_commit(text_of(repo, "first\n")) == first


def test_a_filter_of_the_user_has_no_part(repo: Path, judge: Judge) -> None:
    git(repo, "config", "filter.evil.clean", "sed s/good/evil/")
    (repo / ".git/info/attributes").write_text("* filter=evil\n")
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    oid = write_commit(judge, tree, [], date=7, message="good\n")
    assert git(repo, "show", "-s", "--format=%s", oid) == "good"
