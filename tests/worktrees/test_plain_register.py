"""A worktree registered without git is one that git would have registered, and git works with it as with its own."""

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import repos
from bench import Calls
from repos import commit_file, git

from coordinate_agents.worktrees import ownership
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.lock import repository_lock
from coordinate_agents.worktrees.model import Worktree
from coordinate_agents.worktrees.plain_register import register_plainly
from coordinate_agents.worktrees.register import Place, _add, reserve, undo, worktree_path
from coordinate_agents.worktrees.worktrees import GitWorktrees

BRANCH = "coordinate-agents/g1/api"


@pytest.fixture
def judge(trees: GitWorktrees) -> Judge:
    return trees._judge


def place_of(judge: Judge, root: str, slug: str) -> Place:
    return Place("g1", slug, worktree_path(judge.facts, root, "g1", slug))


def reserved(judge: Judge, root: str, base: str, *, branch: str, slug: str = "api") -> Worktree:
    with repository_lock(judge.facts.state_dir):
        return reserve(judge, place_of(judge, root, slug), base, branch=branch, target=base, nonce="n1")


def seen(admin: Path, top: str) -> dict[str, tuple[int, str]]:
    """Everything of an admin folder: mode and text, with the time of the reflog and the root as words."""
    found = {}
    for path in sorted(admin.rglob("*")):
        text = "" if path.is_dir() else path.read_text().replace(top, "ROOT")
        found[str(path.relative_to(admin))] = (path.stat().st_mode, re.sub(r"> \d+ ", "> TIME ", text))
    return found


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("branch", [BRANCH, ""])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_registration_has_the_files_that_git_makes(tmp_path: Path, object_format: str, branch: str, umask: int) -> None:
    repo = repos.make_repo(tmp_path / "repo", object_format=object_format)
    base = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", BRANCH)
    before = os.umask(umask)
    try:
        found = []
        with GitWorktrees.open(str(repo)) as trees:
            for way in ("theirs", "ours"):
                root = os.path.realpath(tmp_path / way)
                worktree = reserved(trees._judge, root, base, branch=branch)
                if way == "theirs":
                    assert _add(trees._judge, worktree, branch or base).code == 0
                else:
                    assert register_plainly(trees._judge, worktree) == "api"
                admin = repo / ".git/worktrees/api"
                link = Path(worktree.path, ".git")
                found.append(
                    (
                        seen(admin, root),
                        link.read_text(),
                        link.lstat().st_mode,
                        list(Path(worktree.path).iterdir()) == [link],
                    )
                )
                undo(trees._judge, place_of(trees._judge, root, "api"), ownership.with_admin(worktree, "api"))
                assert not (repo / ".git/worktrees").exists()
        assert found[0] == found[1]
    finally:
        os.umask(before)


def test_git_works_with_it_as_with_its_own(repo: Path, root: str, trees: GitWorktrees, tmp_path: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    made = trees.create("g1", "api", base, root=root)

    assert git(repo, "worktree", "list", "--porcelain").split("\n\n")[1].split("\n") == [
        f"worktree {made.path}",
        f"HEAD {base}",
        f"branch refs/heads/{BRANCH}",
        f"locked coordinate-agents {made.nonce}",
    ]
    assert git(made.path, "reflog", "show", "--format=%H %gn", "HEAD") == f"{base} coordinate-agents"
    commit_file(Path(made.path), "new", "new\n")
    assert git(repo, "fsck", "--strict") == ""
    git(repo, "worktree", "unlock", made.path)
    git(repo, "worktree", "prune")
    assert Path(made.path).is_dir()
    git(repo, "worktree", "move", made.path, str(tmp_path / "moved"))
    assert git(tmp_path / "moved", "status", "--porcelain", "--branch") == f"## {BRANCH}"
    git(repo, "worktree", "lock", "--reason", "mine", str(tmp_path / "moved"))
    git(repo, "worktree", "unlock", str(tmp_path / "moved"))
    git(repo, "worktree", "remove", str(tmp_path / "moved"))
    assert not (repo / ".git/worktrees").exists()


def test_name_that_is_taken_gets_the_next_number_as_with_git(repo: Path, root: str, trees: GitWorktrees) -> None:
    for number, folder in enumerate(["x", "y"]):
        git(repo, "worktree", "add", "-q", "--detach", str(Path(root, folder, "api")))
        assert (repo / f".git/worktrees/api{number or ''}").is_dir()

    made = trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)

    assert made.admin_name == "api2"
    assert trees.is_intact(made) is None


ODD = [
    ("core.sharedRepository", "group"),
    ("core.sparseCheckout", "true"),
    ("core.logAllRefUpdates", "always"),
    ("core.logAllRefUpdates", "false"),
    ("include.path", "more"),
    ("includeIf.gitdir:/x.path", "more"),
]


@pytest.mark.parametrize("setting", ODD)
def test_settings_that_only_git_follows_leave_it_to_git(
    repo: Path, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]
) -> None:
    git(repo, "config", *setting)
    with GitWorktrees.open(str(repo)) as trees:
        calls = Calls(tmp_path, monkeypatch)
        made = trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
        assert [line for line in calls.lines() if line.startswith("worktree add")]
        assert trees.is_intact(made) is None


def test_extension_of_worktrees_leaves_it_to_git(
    repo: Path, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "extensions.noop", "true")
    with GitWorktrees.open(str(repo)) as trees:
        calls = Calls(tmp_path, monkeypatch)
        trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
        git(repo, "config", "--unset", "extensions.worktreeConfig")
        trees.create("g1", "db", git(repo, "rev-parse", "HEAD"), root=root)
        added = [line for line in calls.lines() if line.startswith("worktree add")]
        assert [line.rsplit("/", 1)[1] for line in added] == ["api"]


def test_branch_that_a_checkout_waits_on_is_left_to_git_which_refuses(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    git(repo, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")

    with pytest.raises(WorktreeError, match="already") as raised:
        trees.create("g1", "api", base, root=root)

    assert raised.value.code == "WORKTREE_CONFLICT"
    assert git(repo, "for-each-ref", f"refs/heads/{BRANCH}") == ""
    assert not (repo / ".git/worktrees").exists()


def test_branch_that_existed_and_is_checked_out_is_refused(repo: Path, root: str, trees: GitWorktrees) -> None:
    base = git(repo, "rev-parse", "HEAD")
    made = trees.create("g1", "api", base, root=root)
    git(repo, "worktree", "remove", "-f", "-f", made.path)
    git(repo, "worktree", "add", "-q", str(Path(root, "mine")), BRANCH)

    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", base, root=root, resume_from=base)

    assert raised.value.code == "WORKTREE_CONFLICT"
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2


def test_folder_that_cannot_be_registered_leaves_nothing(repo: Path, root: str, judge: Judge) -> None:
    git(repo, "branch", BRANCH)
    worktree = reserved(judge, root, git(repo, "rev-parse", "HEAD"), branch=BRANCH)
    Path(worktree.path, ".git").write_text("mine")

    with repository_lock(judge.facts.state_dir):
        assert register_plainly(judge, worktree) is None

    assert Path(worktree.path, ".git").read_text() == "mine"
    assert not (repo / ".git/worktrees").exists()
    assert not list(Path(judge.git_dir, "tmp").iterdir())


def test_registration_is_never_seen_half_made(repo: Path, root: str, trees: GitWorktrees) -> None:
    """The user's own `worktree list` fails on one of git's own that is being made ("failed to read …/commondir")."""
    base = git(repo, "rev-parse", "HEAD")
    is_over = threading.Event()
    failed: list[str] = []

    def look() -> Iterator[str]:
        while not is_over.is_set():
            for admin in (repo / ".git/worktrees").glob("*"):
                names = {path.name for path in admin.glob("*")}
                if names and not {"HEAD", "commondir", "gitdir", "locked"} <= names and admin.exists():
                    yield f"{admin.name}: {sorted(names)}"

    watcher = threading.Thread(target=lambda: failed.extend(look()))
    watcher.start()
    try:
        for number in range(30):
            trees.create("g1", f"s{number}", base, root=root)
    finally:
        is_over.set()
        watcher.join()
    assert failed == []
