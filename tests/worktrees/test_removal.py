"""A worktree goes only when nothing is lost with it; every reason to stay has its own name, and leaves it in place."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.aside import aside_path
from coordinate_agents.worktrees.lock import creation_lock
from coordinate_agents.worktrees.model import HeldFile, Refused, RemovalRequest, Removed, Worktree
from coordinate_agents.worktrees.ownership import admin_dir
from coordinate_agents.worktrees.worktrees import GitWorktrees


@pytest.fixture
def base(repo: Path) -> str:
    return commit_file(repo, ".gitignore", "out/\n")


@pytest.fixture
def made(trees: GitWorktrees, base: str, root: str) -> Worktree:
    return trees.create("g1", "api", base, root=root, nonce="n1")


@pytest.fixture
def request_(trees: GitWorktrees, made: Worktree) -> RemovalRequest:
    return RemovalRequest(made, "g1", "api", trees.freeze())


def pinned(repo: Path) -> list[str]:
    return git(repo, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/g1/api/").splitlines()


def registrations(repo: Path) -> list[str]:
    folder = repo / ".git/worktrees"
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def test_clean_worktree_goes_and_its_branch_stays(
    repo: Path, root: str, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    work = commit_file(Path(made.path), "work.txt", "work\n")
    Path(made.path, "out").mkdir()
    Path(made.path, "out/report.txt").write_text("report\n")

    seen = trees.contents(request_)
    assert (seen.refusal, seen.head, seen.extra) == (None, work, (HeldFile("out/report.txt", 7),))
    gone = trees.remove(replace(request_, ignored=("out/report.txt",)))

    assert gone == Removed(work, work, kept=(work,), bytes=7)
    assert not os.path.lexists(made.path)
    assert registrations(repo) == []
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(repo, "rev-parse", "coordinate-agents/g1/api") == work
    assert pinned(repo) == [work]
    assert not any(Path(root).iterdir()), "the empty folders of graph and repository go, too"
    assert trees.remove(request_) == Removed(work, work, was_missing=True)


def modified(made: Worktree, repo: Path) -> None:
    Path(made.path, "README.md").write_text("changed\n")


def untracked(made: Worktree, repo: Path) -> None:
    """CL-02: the user's configuration hides untracked files."""
    git(repo, "config", "status.showUntrackedFiles", "no")
    Path(made.path, "new.txt").write_text("precious\n")


def hidden_by_own_rules(made: Worktree, repo: Path) -> None:
    Path(made.path, ".git").read_text()
    commit_file(Path(made.path), ".gitignore", "out/\nsecret\n")
    Path(made.path, "secret").write_text("precious\n")


def hidden_by_flag(made: Worktree, repo: Path) -> None:
    git(made.path, "update-index", "--assume-unchanged", "README.md")
    Path(made.path, "README.md").write_text("changed\n")


def staged_only(made: Worktree, repo: Path) -> None:
    Path(made.path, "README.md").write_text("staged\n")
    git(made.path, "add", "README.md")
    git(made.path, "restore", "--worktree", "--source=HEAD", "README.md")


def broken_index(made: Worktree, repo: Path) -> None:
    Path(git(made.path, "rev-parse", "--git-path", "index")).write_bytes(b"no index")


def pipe_as_index(made: Worktree, repo: Path) -> None:
    index = Path(git(made.path, "rev-parse", "--git-path", "index"))
    index.unlink()
    os.mkfifo(index)


def folder_as_index(made: Worktree, repo: Path) -> None:
    index = Path(git(made.path, "rev-parse", "--git-path", "index"))
    index.unlink()
    index.mkdir()


def merging(made: Worktree, repo: Path) -> None:
    other = git(made.path, "commit-tree", "HEAD^{tree}", "-m", "other")
    git(made.path, "merge", "-q", "-s", "ours", "--no-ff", "--no-commit", "--allow-unrelated-histories", other)


def rebasing(made: Worktree, repo: Path) -> None:
    commit_file(Path(made.path), "a", "a")
    env = {**os.environ, "GIT_SEQUENCE_EDITOR": "sed -i 1s/pick/edit/"}
    git(made.path, "rebase", "-q", "-i", "HEAD~1", env=env)


def bisecting(made: Worktree, repo: Path) -> None:
    git(made.path, "bisect", "start")


def detached(made: Worktree, repo: Path) -> None:
    git(made.path, "checkout", "-q", "--detach")
    git(made.path, "commit", "-q", "--allow-empty", "-m", "only here")


def elsewhere(made: Worktree, repo: Path) -> None:
    """EV-05"""
    git(made.path, "checkout", "-q", "-b", "mine")
    git(made.path, "commit", "-q", "--allow-empty", "-m", "on another branch")


def scaffolded(made: Worktree, repo: Path) -> None:
    """GT-10: the commit holds a pointer, the folder the only copy."""
    app = Path(made.path, "app")
    app.mkdir()
    git(app, "init", "-q")
    commit_file(app, "s", "s")
    git(made.path, "add", "-A")
    git(made.path, "commit", "-q", "-m", "app")


def ignored_clone_with_own_commit(made: Worktree, repo: Path) -> None:
    git(made.path, "clone", "-q", str(repo), "out/clone")
    commit_file(Path(made.path, "out/clone"), "own", "own")


def unlocked(made: Worktree, repo: Path) -> None:
    git(repo, "worktree", "unlock", made.path)


def locked_by_the_user(made: Worktree, repo: Path) -> None:
    git(repo, "worktree", "unlock", made.path)
    git(repo, "worktree", "lock", "--reason", "mine", made.path)


def replaced(made: Worktree, repo: Path) -> None:
    """CL-06: another worktree of the user's stands where ours was."""
    Path(made.path).rename(f"{made.path}.away")
    git(repo, "worktree", "add", "-q", "-f", "-f", "--detach", made.path)


def linked(made: Worktree, repo: Path) -> None:
    Path(made.path).rename(f"{made.path}.away")
    Path(made.path).symlink_to(f"{made.path}.away")


def linked_parent(made: Worktree, repo: Path) -> None:
    parent = Path(made.path).parent
    parent.rename(f"{parent}.away")
    parent.symlink_to(f"{parent}.away")


def moved(made: Worktree, repo: Path) -> None:
    git(repo, "worktree", "move", "-f", "-f", made.path, f"{made.path}.moved")


def own_repository(made: Worktree, repo: Path) -> None:
    Path(made.path, ".git").unlink()
    git(made.path, "init", "-q")


def unlinked(made: Worktree, repo: Path) -> None:
    Path(made.path, ".git").unlink()


def headless(made: Worktree, repo: Path) -> None:
    git(made.path, "checkout", "-q", "--orphan", "nothing")


STAYS: list[tuple[Callable[[Worktree, Path], None], str, str]] = [
    (modified, "dirty", "uncommitted changes: README.md"),
    (hidden_by_flag, "dirty", "uncommitted changes: README.md"),
    (untracked, "untracked", "untracked files: new.txt"),
    (hidden_by_own_rules, "ignored-by-agent", "files that only the agent's own rules ignore: secret"),
    (staged_only, "staged", "staged versions that are in no commit: README.md"),
    (broken_index, "staged", "its index cannot be read, and may hold staged changes"),
    (pipe_as_index, "staged", "its index cannot be read, and may hold staged changes"),
    (folder_as_index, "staged", "its index cannot be read, and may hold staged changes"),
    (merging, "operation", "a merge is in progress"),
    (rebasing, "operation", "a rebase is in progress"),
    (bisecting, "operation", "a bisect is in progress"),
    (detached, "detached", "its HEAD is detached at "),
    (elsewhere, "other-branch", "its HEAD is on mine at "),
    (scaffolded, "nested", "app is a nested repository or submodule that holds what exists nowhere else"),
    (ignored_clone_with_own_commit, "nested", "out/clone is a nested repository or submodule that"),
    (unlocked, "locked", "the Runtime's lock on it was removed"),
    (locked_by_the_user, "locked", "somebody locked it: mine"),
    (replaced, "foreign", "its folder was replaced by another one"),
    (linked, "linked", "its folder is reached through a link"),
    (linked_parent, "linked", "its folder is reached through a link"),
    (moved, "moved", "it was moved to "),
    (own_repository, "foreign", "its .git file is missing or is not a link file"),
    (unlinked, "foreign", "its .git file is missing or is not a link file"),
    (headless, "foreign", "its HEAD names no commit that can be read"),
]


@pytest.mark.parametrize(("change", "reason", "said"), STAYS, ids=[each[0].__name__ for each in STAYS])
def test_worktree_that_holds_something_or_is_not_ours_stays_in_place(
    repo: Path,
    trees: GitWorktrees,
    made: Worktree,
    request_: RemovalRequest,
    change: Callable[[Worktree, Path], None],
    reason: str,
    said: str,
) -> None:
    """CL-05: commits of a detached HEAD, a merge, a rebase and a bisect in progress are among them."""
    change(made, repo)
    parent = Path(made.path).parent.resolve()
    before = whole(parent)

    looked = trees.contents(request_).refusal
    refused = trees.remove(request_)

    assert isinstance(refused, Refused)
    assert (refused.reason, refused.stands_at) == (reason, None)
    assert refused.message.startswith(said)
    assert looked == refused
    assert whole(parent) == before
    assert registrations(repo) != []


def whole(folder: Path) -> dict[str, bytes | str]:
    """Every file below the folder with its content, links as what they name."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = "folder"
    return found


def test_what_the_next_step_of_a_detached_head_says_settles_it(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest, repo: Path
) -> None:
    detached(made, repo)
    only = git(made.path, "rev-parse", "HEAD")
    refused = trees.remove(request_)
    assert isinstance(refused, Refused)
    subprocess.run(refused.next, shell=True, check=True, capture_output=True)

    assert isinstance(trees.remove(request_), Removed)
    assert only in pinned(repo)


@pytest.mark.parametrize("lock", [unlocked, locked_by_the_user])
def test_what_the_next_step_of_a_foreign_lock_says_settles_it(
    trees: GitWorktrees,
    made: Worktree,
    request_: RemovalRequest,
    repo: Path,
    lock: Callable[[Worktree, Path], None],
) -> None:
    lock(made, repo)
    refused = trees.remove(request_)
    assert isinstance(refused, Refused)
    subprocess.run(refused.next, shell=True, check=True, capture_output=True, cwd=repo)
    assert isinstance(trees.remove(request_), Removed)


def test_commits_that_only_its_reflog_holds_are_pinned_before_it_goes(
    repo: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    lost = commit_file(Path(made.path), "lost", "lost")
    git(made.path, "reset", "-q", "--hard", "HEAD~1")
    stray = git(made.path, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "private")
    git(made.path, "update-ref", "refs/worktree/private", stray)

    gone = trees.remove(request_)

    assert isinstance(gone, Removed)
    assert {lost, stray} <= set(pinned(repo))
    assert set(gone.kept) == {lost, stray}


def test_links_go_and_their_targets_stay(tmp_path: Path, trees: GitWorktrees, repo: Path, root: str, base: str) -> None:
    """CL-09: a shared folder and the root are linked from inside."""
    shared = tmp_path / "node_modules"
    shared.mkdir()
    (shared / "package").write_text("shared\n")
    commit_file(repo, ".gitignore", "out/\nnode_modules\nslash\n")
    made = trees.create("g1", "web", git(repo, "rev-parse", "HEAD"), root=root)
    Path(made.path, "node_modules").symlink_to(shared)
    Path(made.path, "slash").symlink_to("/")
    Path(made.path, "out").mkdir()
    Path(made.path, "out/link").symlink_to(shared)

    gone = trees.remove(RemovalRequest(made, "g1", "web", trees.freeze()))

    assert isinstance(gone, Removed)
    assert whole(shared) == {"package": b"shared\n"}
    assert not os.path.lexists(made.path)


def test_worktree_whose_folder_was_deleted_by_hand_loses_its_registration(
    repo: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    """GT-05: only a registration that carries our nonce goes, and its private commits are pinned."""
    git(repo, "worktree", "add", "-q", "--detach", f"{repo}-other")
    lost = commit_file(Path(made.path), "lost", "lost")
    git(made.path, "reset", "-q", "--hard", "HEAD~1")
    subprocess.run(["rm", "-rf", made.path, f"{repo}-other"], check=True)

    assert trees.contents(request_).is_missing
    gone = trees.remove(request_)

    assert gone == Removed(made.base, made.base, kept=(lost,), was_missing=True)
    assert registrations(repo) == [f"{repo.name}-other"]


def test_worktree_in_use_stays_and_goes_once_the_process_ended(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    """CL-08: a process that only has a file open counts like one that stands there."""
    Path(made.path, "out").mkdir()
    with Path(made.path, "out/log").open("w") as log:
        user = subprocess.Popen(["sleep", "60"], stdout=log, cwd="/")
    try:
        refused = trees.remove(request_)
    finally:
        user.kill()
        user.wait()

    assert isinstance(refused, Refused)
    said = f"process {user.pid} (sleep) has open {made.path}/out/log"
    assert (refused.reason, refused.message, refused.next) == ("in-use", said, f"kill {user.pid}")
    assert isinstance(trees.remove(request_), Removed)


def test_file_that_came_after_the_look_keeps_the_worktree(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    Path(made.path, "out").mkdir()
    Path(made.path, "out/late").write_text("late")
    refused = trees.remove(replace(request_, ignored=()))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.paths) == ("changed", ("out/late",))
    assert Path(made.path, "out/late").read_text() == "late"


def test_copy_goes_while_it_is_that_of_the_checkout_and_stays_once_it_was_edited(
    repo: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    (repo / "out").mkdir()
    (repo / "out/env").write_text("A=1\n")
    trees.bring(made, copy=["out/env"], link=[])
    request = replace(request_, copies=("out/env",))
    assert trees.contents(request).refusal is None

    Path(made.path, "out/env").write_text("A=2\n")
    refused = trees.remove(request)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.paths) == ("copied", ("out/env",))

    Path(made.path, "out/env").write_text("A=1\n")
    assert isinstance(trees.remove(request), Removed)


def test_what_setup_left_is_listed_and_goes(trees: GitWorktrees, made: Worktree, request_: RemovalRequest) -> None:
    Path(made.path, "made-by-setup").write_text("123")
    request = replace(request_, baseline=("made-by-setup",))
    assert trees.contents(request).extra == (HeldFile("made-by-setup", 3),)
    assert isinstance(trees.remove(request), Removed)


def test_new_folder_in_its_place_keeps_both_and_the_next_call_goes_on(
    repo: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    Path(made.path).rename(aside_path(made))  # as a call that was killed leaves it
    Path(made.path).mkdir()
    Path(made.path, "mine").write_text("mine")

    refused = trees.remove(request_)

    assert isinstance(refused, Refused)
    assert (refused.reason, refused.stands_at) == ("reappeared", aside_path(made))
    assert Path(made.path, "mine").read_text() == "mine"
    subprocess.run(refused.next, shell=True, check=True)
    assert isinstance(trees.remove(request_), Removed)
    assert Path(f"{made.path}.other", "mine").read_text() == "mine"
    assert not os.path.lexists(aside_path(made))


def test_second_call_at_once_says_busy(trees: GitWorktrees, request_: RemovalRequest) -> None:
    with creation_lock(trees.facts.state_dir, "g1", "api"):
        refused = trees.remove(request_)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.message) == ("busy", "another process makes or removes it")


@pytest.mark.parametrize("path", ["repo", "home", "other", "/", ".", ""])
def test_record_that_names_another_folder_removes_nothing(
    tmp_path: Path, repo: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest, path: str
) -> None:
    """CL-06: whatever the record says, the folder must be the one that was made, with our registration."""
    other = make_repo(tmp_path / "other")
    wrong = {"repo": str(repo), "home": str(tmp_path), "other": str(other)}.get(path, path)
    device, inode = made.device, made.inode
    if wrong:
        found = Path(wrong).stat()
        device, inode = found.st_dev, found.st_ino
    before = whole(tmp_path / "other")

    refused = trees.remove(replace(request_, worktree=replace(made, path=wrong, device=device, inode=inode)))

    assert isinstance(refused, Refused)
    assert refused.reason in ("foreign", "moved", "linked")
    assert whole(tmp_path / "other") == before
    assert (repo / "README.md").exists()
    assert trees.is_intact(made) is None


def test_submodule_at_its_recorded_commit_goes_and_one_with_a_new_file_stays(
    tmp_path: Path, repo: Path, trees: GitWorktrees, root: str
) -> None:
    """GT-09: removal works when, and only when, tree and submodules hold nothing unsaved."""
    library = make_repo(tmp_path / "library")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sub")
    git(repo, "commit", "-q", "-m", "sub")
    made = trees.create("g1", "web", git(repo, "rev-parse", "HEAD"), root=root)
    git(made.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    request = RemovalRequest(made, "g1", "web", trees.freeze())
    Path(made.path, "sub/new").write_text("x")

    refused = trees.remove(request)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.paths) == ("nested", ("sub",))

    Path(made.path, "sub/new").unlink()
    assert isinstance(trees.remove(request), Removed)
    assert registrations(repo) == []


def test_undeletable_file_is_named_and_the_next_call_finishes(
    repo: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    """CL-07: what is left is said, and nobody takes the half for the whole."""
    Path(made.path, "out/keep").mkdir(parents=True)
    stuck = Path(made.path, "out/keep/stuck")
    stuck.write_text("x")
    if subprocess.run(["chattr", "+i", stuck], capture_output=True).returncode != 0:
        pytest.skip("this file system has no immutable files")
    refused = trees.remove(request_)
    assert isinstance(refused, Refused)
    left = refused.stands_at
    assert left is not None
    rest = [path for path in Path(left).rglob("*") if path.is_file()]
    subprocess.run(["chattr", "-i", *rest], check=True)

    assert refused.reason == "undeletable"
    assert [path.name for path in rest] == ["stuck"]
    assert not os.path.lexists(made.path)
    assert registrations(repo) == ["api"]
    assert isinstance(trees.remove(request_), Removed)
    assert not os.path.lexists(left)
    assert registrations(repo) == []


@pytest.mark.parametrize("name", ["locked", "out/locked"])
def test_folder_that_cannot_be_read_keeps_the_worktree_also_where_the_base_ignores_it(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest, name: str
) -> None:
    folder = Path(made.path, name)
    folder.mkdir(parents=True)
    (folder / "file").write_text("x")
    folder.chmod(0)
    if os.access(folder, os.R_OK):
        folder.chmod(0o755)
        pytest.skip("root reads every folder")
    refused = trees.remove(request_)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.paths) == ("unreadable", (name,))
    subprocess.run(refused.next, shell=True, check=True)
    assert (folder / "file").read_text() == "x"


def test_file_system_mounted_inside_keeps_the_worktree(
    tmp_path: Path, trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("x")
    inside = Path(made.path, "out/mnt")
    inside.mkdir(parents=True)
    if subprocess.run(["mount", "--bind", tmp_path / "outside", inside], capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        refused = trees.remove(request_)
    finally:
        subprocess.run(["umount", inside], check=True)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.paths) == ("mounted", (str(inside),))
    assert whole(tmp_path / "outside") == {"file": b"x"}


def test_staged_version_that_a_commit_holds_does_not_keep_it(
    trees: GitWorktrees, made: Worktree, request_: RemovalRequest
) -> None:
    """An index that lags behind HEAD, as after a commit made elsewhere, holds nothing of its own."""
    index = Path(admin_dir(trees.facts, made), "index")
    before = index.read_bytes()
    commit_file(Path(made.path), "README.md", "later\n")
    index.write_bytes(before)
    assert trees.contents(request_).refusal is None
