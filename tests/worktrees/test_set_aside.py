"""Everything in a worktree fits into one pinned commit, and comes back from it byte for byte."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import BringBackRequest, BroughtBack, Refused, RemovalRequest, Removed, Worktree
from coordinate_agents.worktrees.worktrees import GitWorktrees


@pytest.fixture
def base(repo: Path) -> str:
    commit_file(repo, ".gitignore", "out/\n")
    commit_file(repo, ".gitattributes", "*.txt text eol=crlf\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    git(repo, "add", "run.sh")
    return commit_file(repo, "folder/file", "was a folder\n")


@pytest.fixture
def made(trees: GitWorktrees, base: str, root: str) -> Worktree:
    return trees.create("g1", "api", base, root=root, nonce="n1")


@pytest.fixture
def request_(trees: GitWorktrees, made: Worktree) -> RemovalRequest:
    return RemovalRequest(made, "g1", "api", trees.freeze())


def spoil(made: Worktree) -> None:
    """One of everything that can be lost: changed, staged, deleted, new, ignored, odd names, links, odd bytes."""
    top = Path(made.path)
    commit_file(top, "work.md", "committed\n")
    (top / "README.md").write_text("staged\n")
    git(top, "add", "README.md")
    (top / "README.md").write_text("changed after it was staged\n")
    (top / "run.sh").chmod(0o644)
    (top / "lines.txt").write_bytes(b"lf\ncrlf\r\n\x00\xff")
    (top / "folder/file").unlink()
    (top / "folder").rmdir()
    (top / "folder").write_text("is a file now\n")
    (top / "out/deep").mkdir(parents=True)
    (top / "out/deep/report.bin").write_bytes(bytes(range(256)))
    (top / 'odd "name"\n\\ü').write_text("odd\n")
    (top / "link").symlink_to("/nowhere")
    (top / "tool").write_text("#!/bin/sh\n")
    (top / "tool").chmod(0o755)
    git(top, "add", "-N", "tool")


def everything(made: Worktree) -> dict[str, tuple[bool, bytes]]:
    """Every file: whether it may be executed, and its bytes; links with what they name."""
    found = {}
    for path in Path(made.path).rglob("*"):
        name = str(path.relative_to(made.path))
        if path.is_symlink():
            found[name] = (False, os.fsencode(path.readlink()))
        elif path.is_file() and name != ".git":
            found[name] = (os.access(path, os.X_OK) and bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found


def staged(made: Worktree) -> str:
    return git(made.path, "diff", "--cached", "--diff-filter=M")


def undo(trees: GitWorktrees, made: Worktree, tip: str, commit: str | None, root: str, nonce: str) -> BroughtBack:
    request = BringBackRequest("g1", "api", made.base, tip, nonce, commit)
    return trees.bring_back(request, root=root, frozen=trees.freeze())


def test_everything_that_was_set_aside_comes_back_as_it_was(
    repo: Path, root: str, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    spoil(made)
    before, index = everything(made), staged(made)
    tip = git(made.path, "rev-parse", "HEAD")

    commit = trees.set_aside(request_)
    assert commit is not None
    assert trees.set_aside(request_) == commit
    assert git(repo, "rev-parse", "refs/coordinate-agents/g1/api/discard-1") == commit
    assert git(repo, "rev-parse", f"{commit}^1") == tip
    assert everything(made) == before
    gone = trees.remove(replace(request_, discarded=commit))
    assert isinstance(gone, Removed)
    assert not os.path.lexists(made.path)
    git(repo, "update-ref", "-d", f"refs/heads/{made.branch}")  # graph-cleanup --branches
    git(repo, "gc", "-q", "--prune=now")

    back = undo(trees, made, tip, commit, root, "n2")

    assert back.lost == ()
    assert everything(back.worktree) == before
    assert staged(back.worktree) == index
    assert git(repo, "rev-parse", made.branch) == tip
    assert trees.is_intact(back.worktree) is None
    assert undo(trees, made, tip, commit, root, "n2") == back
    assert everything(back.worktree) == before


def test_clean_worktree_has_nothing_to_set_aside(trees: GitWorktrees, request_: RemovalRequest, repo: Path) -> None:
    assert trees.set_aside(request_) is None
    assert git(repo, "for-each-ref", "refs/coordinate-agents/g1/api/") == ""


def test_clean_worktree_comes_back_on_its_branch(
    root: str, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    tip = commit_file(Path(made.path), "work", "work")
    assert isinstance(trees.remove(request_), Removed)
    back = undo(trees, made, tip, None, root, "n2").worktree
    assert git(back.path, "rev-parse", "HEAD") == tip
    assert git(back.path, "status", "--porcelain") == ""
    assert git(back.path, "symbolic-ref", "--short", "HEAD") == made.branch


@pytest.mark.parametrize("name", ["README.md", "late", "out/late", "index"])
def test_what_changed_after_it_was_set_aside_keeps_the_worktree(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest, name: str
) -> None:
    spoil(made)
    commit = trees.set_aside(request_)
    if name == "index":
        git(made.path, "add", "folder")
    else:
        Path(made.path, name).write_text("later")
    before = everything(made)

    refused = trees.remove(replace(request_, discarded=commit))

    assert isinstance(refused, Refused)
    assert refused.reason == "changed"
    assert everything(made) == before


def test_detached_head_in_the_middle_of_a_merge_comes_back_detached_and_says_what_is_lost(
    root: str, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    tip = git(made.path, "rev-parse", "HEAD")
    git(made.path, "checkout", "-q", "--detach")
    commit_file(Path(made.path), "side", "side")
    head = git(made.path, "rev-parse", "HEAD")
    other = git(made.path, "commit-tree", "HEAD^{tree}", "-p", "HEAD~1", "-m", "other")
    git(made.path, "merge", "-q", "--no-commit", "--no-ff", other)
    Path(made.path, "half").write_text("half")
    before = everything(made)

    commit = trees.set_aside(request_)
    assert isinstance(trees.remove(replace(request_, discarded=commit)), Removed)
    back = undo(trees, made, tip, commit, root, "n2")

    assert everything(back.worktree) == before
    assert git(back.worktree.path, "rev-parse", "HEAD") == head
    assert git(back.worktree.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert git(back.worktree.path, "rev-parse", made.branch) == tip
    assert back.lost == ("the merge that was in progress; its commits are pinned",)


def test_clean_worktree_on_another_branch_is_set_aside_and_comes_back_at_its_commit(
    root: str, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    tip = git(made.path, "rev-parse", "HEAD")
    git(made.path, "checkout", "-q", "-b", "mine")
    commit_file(Path(made.path), "side", "side")
    before, head = everything(made), git(made.path, "rev-parse", "HEAD")

    commit = trees.set_aside(request_)
    assert isinstance(trees.remove(replace(request_, discarded=commit)), Removed)
    back = undo(trees, made, tip, commit, root, "n2")

    assert everything(back.worktree) == before
    assert [git(back.worktree.path, "rev-parse", name) for name in ("HEAD", "mine", made.branch)] == [head, head, tip]
    assert back.lost == ("its HEAD on mine, which is detached at that commit now",)


def test_branch_that_moved_meanwhile_is_not_mixed_with_what_was_set_aside(
    repo: Path, root: str, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    spoil(made)
    commit = trees.set_aside(request_)
    assert isinstance(trees.remove(replace(request_, discarded=commit)), Removed)
    later = git(repo, "commit-tree", f"{made.branch}^{{tree}}", "-p", made.branch, "-m", "by hand")
    git(repo, "update-ref", f"refs/heads/{made.branch}", later)

    with pytest.raises(WorktreeError) as raised:
        undo(trees, made, later, commit, root, "n2")

    assert (raised.value.code, raised.value.next) == ("WORKTREE_CONFLICT", f"git show --stat {commit}")
    assert not os.path.lexists(made.path)


def test_repository_of_its_own_cannot_be_set_aside(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    make_repo(Path(made.path, "app"))
    with pytest.raises(WorktreeError) as raised:
        trees.set_aside(request_)
    assert raised.value.code == "CLEANUP_REFUSED"
    assert "app is a nested repository or submodule" in raised.value.message
    assert Path(made.path, "app/README.md").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=2m none '{place}' 2>/dev/null") != 0:
        pytest.skip("mounting is not allowed here")
    yield place
    os.system(f"umount -l '{place}'")


def test_disk_that_fills_while_it_is_set_aside_costs_nothing(small_disk: Path, tmp_path: Path) -> None:
    repo = make_repo(small_disk / "repo")
    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=str(tmp_path / "trees"))
        Path(made.path, "large").write_bytes(os.urandom(4 << 20))
        before = everything(made)

        with pytest.raises(WorktreeError) as raised:
            trees.set_aside(RemovalRequest(made, "g1", "api", trees.freeze()))

        assert raised.value.code == "DISK_FULL"
        assert everything(made) == before
        assert git(repo, "for-each-ref", "refs/coordinate-agents/") == ""
        assert trees.is_intact(made) is None
