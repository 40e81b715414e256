"""Whether a worktree is ours is read from both sides; whatever an agent exchanges is noticed and left alone."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import ensure_text, read_regular, remove_tree
from coordinate_agents.worktrees.lock import repository_lock
from coordinate_agents.worktrees.model import Worktree
from coordinate_agents.worktrees.ownership import admin_dir
from coordinate_agents.worktrees.worktrees import GitWorktrees


@pytest.fixture
def made(repo: Path, root: str, trees: GitWorktrees) -> Worktree:
    return trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)


def other_folder(made: Worktree) -> None:
    Path(made.path).rename(f"{made.path}.away")
    shutil.copytree(f"{made.path}.away", made.path, symlinks=True)


def link_in_its_place(made: Worktree) -> None:
    Path(made.path).rename(f"{made.path}.away")
    Path(made.path).symlink_to(f"{made.path}.away")


def linked_parent(made: Worktree) -> None:
    parent = Path(made.path).parent
    parent.rename(f"{parent}.away")
    parent.symlink_to(f"{parent}.away")


def own_repository(made: Worktree) -> None:
    Path(made.path, ".git").unlink()
    git(made.path, "init", "-q")


def emptied(made: Worktree) -> None:
    """As a new folder that got the number of the removed one."""
    for path in Path(made.path).iterdir():
        path.unlink()
    Path(made.path, "mine").write_text("mine\n")


def same_names(made: Worktree) -> None:
    Path(made.path, ".git").unlink()
    Path(made.path, "README.md").rename(f"{made.path}/other")
    Path(made.path, "README.md").write_text("# sample\n")


def pointing_elsewhere(made: Worktree) -> None:
    other = make_repo(Path(made.path).parent / "other")
    Path(made.path, ".git").write_text(f"gitdir: {other}/.git\n")


def unlocked(made: Worktree) -> None:
    git(made.path, "worktree", "unlock", made.path)


def moved(made: Worktree) -> None:
    git(made.path, "worktree", "move", "-f", "-f", made.path, f"{made.path}.moved")


def unregistered(made: Worktree) -> None:
    shutil.rmtree(Path(made.path, ".git").read_text().removeprefix("gitdir: ").strip())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda made: shutil.rmtree(made.path), "its folder is missing"),
        (moved, "its folder is missing"),
        (other_folder, "its folder was replaced by another one"),
        (unregistered, "its registration is missing"),
        (link_in_its_place, "its folder was replaced by something else"),
        (linked_parent, "its folder is reached through a link"),
        (lambda made: Path(made.path, ".git").unlink(), "its .git file is missing or is not a link file"),
        (emptied, "its folder was replaced by another one"),
        (same_names, "its folder was replaced by another one"),
        (own_repository, "its .git file is missing or is not a link file"),
        (pointing_elsewhere, "its .git file points at another repository"),
        (unlocked, "its registration is no longer locked by the Runtime"),
    ],
)
def test_damage_is_named(made: Worktree, trees: GitWorktrees, damage: Callable[[Worktree], None], said: str) -> None:
    assert trees.is_intact(made) is None
    damage(made)
    assert trees.is_intact(made) == said


@pytest.mark.parametrize("version", [2, 3, 4])
def test_worktree_without_its_git_file_is_known_by_a_file_of_its_index(
    repo: Path, made: Worktree, trees: GitWorktrees, version: int
) -> None:
    for name in ("a/deep", "a/deeper", "b"):
        Path(made.path, name).parent.mkdir(exist_ok=True)
        Path(made.path, name).write_text(name)
    git(made.path, "add", "-A")
    if version == 3:
        Path(made.path, "intended").write_text("")
        git(made.path, "add", "-N", "intended")
    git(made.path, "update-index", f"--index-version={version}")
    assert Path(admin_dir(trees.facts, made), "index").read_bytes()[7] == version
    for name in (".git", "README.md", "a/deep", "a/deeper"):
        Path(made.path, name).unlink()
    said = trees.is_intact(made)
    assert said == "its .git file is missing or is not a link file"
    assert subprocess.run(shlex.split(trees.mending(made, said)), cwd=repo, check=False).returncode == 0
    assert trees.is_intact(made) is None
    # Nothing is left by which it could be known.
    for name in (".git", "b", "intended") if version == 3 else (".git", "b"):
        Path(made.path, name).unlink()
    assert trees.is_intact(made) == "its folder was replaced by another one"


def test_what_is_advised_after_the_repository_was_moved_mends_its_worktrees(
    repo: Path, made: Worktree, trees: GitWorktrees
) -> None:
    elsewhere = repo.rename(repo.parent / "elsewhere")
    with GitWorktrees.open(str(elsewhere)) as again:
        said = again.is_intact(made)
        assert said == "its .git file points at a repository that is not there (was yours moved?)"
        assert subprocess.run(shlex.split(again.mending(made, said)), cwd=elsewhere, check=False).returncode == 0
        assert again.is_intact(made) is None


def test_registration_that_points_elsewhere_is_named(made: Worktree, trees: GitWorktrees, tmp_path: Path) -> None:
    Path(admin_dir(trees.facts, made), "gitdir").write_text(f"{tmp_path}/x/.git\n")
    assert trees.is_intact(made) == "its registration points at another folder"


def test_relative_links_are_understood(made: Worktree, trees: GitWorktrees) -> None:
    admin = Path(admin_dir(trees.facts, made))
    Path(made.path, ".git").write_text(f"gitdir: {os.path.relpath(admin, made.path)}\n")
    (admin / "gitdir").write_text(f"{os.path.relpath(made.path, admin)}/.git\n")
    assert git(made.path, "status", "--porcelain") == ""
    assert trees.is_intact(made) is None


def test_worktree_without_its_git_file_never_leads_to_the_users_branch(
    repo: Path, made: Worktree, trees: GitWorktrees, root: str
) -> None:
    git(repo, "checkout", "-q", "-b", "userwork")
    tip = commit_file(repo, "mine.txt", "mine\n")
    Path(made.path, ".git").unlink()

    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", made.base, root=root)

    assert raised.value.code == "WORKTREE_CONFLICT"
    assert "damaged" in raised.value.message
    assert trees.keep("g1", "api", made) == ()
    assert git(repo, "rev-parse", "userwork") == tip
    assert git(repo, "branch", "--show-current") == "userwork"


def test_link_committed_by_an_agent_is_written_as_a_link(
    repo: Path, root: str, trees: GitWorktrees, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (repo / "out").symlink_to(victim)
    (repo / "CLAUDE.md").symlink_to("README.md")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "links")

    made = trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)

    assert Path(made.path, "out").readlink() == victim
    assert Path(made.path, "CLAUDE.md").read_text() == "# sample\n"
    assert list(victim.iterdir()) == []


def test_layout_does_not_write_through_a_link_that_an_agent_left(
    repo: Path, root: str, trees: GitWorktrees, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    base = git(repo, "rev-parse", "HEAD")
    with_folder = commit_file(repo, "out/file.txt", "text\n")
    made = trees.create("g1", "api", base, root=root)
    Path(made.path, "out").symlink_to(victim)
    git(made.path, "add", "out")
    git(made.path, "commit", "-qm", "link")

    again = trees.create("g1", "api", with_folder, root=root)

    assert Path(again.path, "out/file.txt").read_text() == "text\n"
    assert not Path(again.path, "out").is_symlink()
    assert list(victim.iterdir()) == []


def test_pristine_worktree_is_detached_at_the_commit_and_removed_whole(
    repo: Path, root: str, made: Worktree, trees: GitWorktrees
) -> None:
    before = git(repo, "for-each-ref")
    check = trees.pristine("g1", "api", made.base, root=root)
    assert git(check.path, "rev-parse", "HEAD") == made.base
    assert git(check.path, "status", "--porcelain") == ""
    assert git(repo, "for-each-ref") == before
    Path(check.path, "build").mkdir()
    Path(check.path, "build/x").write_text("x")
    Path(check.path, "build").chmod(0o500)

    trees.remove_pristine(check)

    assert not Path(check.path).exists()
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2
    assert trees.is_intact(made) is None
    assert trees.left_pristine("g1") == ()
    trees.remove_pristine(check)


def test_several_pristine_worktrees_of_one_commit_do_not_meet(root: str, made: Worktree, trees: GitWorktrees) -> None:
    checks = [trees.pristine("g1", "api", made.base, root=root) for _ in range(3)]
    assert len({check.path for check in checks}) == 3
    assert trees.left_pristine("g1") == tuple(sorted(checks, key=lambda check: check.path))
    for check in trees.left_pristine("g1"):
        trees.remove_pristine(check)
    assert trees.left_pristine("g1") == ()


def test_pristine_worktree_whose_git_file_a_check_removed_is_still_ours(
    root: str, made: Worktree, trees: GitWorktrees
) -> None:
    check = trees.pristine("g1", "api", made.base, root=root)
    Path(check.path, ".git").unlink()
    trees.remove_pristine(check)
    assert not Path(check.path).exists()


def test_pristine_worktree_with_nothing_of_its_own_is_removed_only_when_it_is_empty(
    root: str, made: Worktree, trees: GitWorktrees
) -> None:
    check = trees.pristine("g1", "api", made.base, root=root)
    emptied(check)
    with pytest.raises(WorktreeError) as raised:
        trees.remove_pristine(check)
    assert raised.value.code == "CLEANUP_REFUSED"
    Path(check.path, "mine").unlink()
    trees.remove_pristine(check)
    assert not Path(check.path).exists()


def test_link_inside_a_pristine_worktree_is_removed_and_not_followed(
    root: str, made: Worktree, trees: GitWorktrees, tmp_path: Path
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("mine")
    check = trees.pristine("g1", "api", made.base, root=root)
    Path(check.path, "link").symlink_to(tmp_path / "precious")
    trees.remove_pristine(check)
    assert (tmp_path / "precious/file").read_text() == "mine"


def test_folder_that_took_the_place_of_a_pristine_worktree_is_kept(
    root: str, made: Worktree, trees: GitWorktrees
) -> None:
    check = trees.pristine("g1", "api", made.base, root=root)
    Path(check.path).rename(f"{check.path}.away")
    Path(check.path).mkdir()
    Path(check.path, "mine").write_text("mine")

    with pytest.raises(WorktreeError) as raised:
        trees.remove_pristine(check)

    assert raised.value.code == "CLEANUP_REFUSED"
    assert Path(check.path, "mine").read_text() == "mine"


def test_worktree_of_a_subtask_is_never_removed_as_pristine(made: Worktree, trees: GitWorktrees) -> None:
    with pytest.raises(WorktreeError) as raised:
        trees.remove_pristine(made)
    assert raised.value.code == "CLEANUP_REFUSED"
    assert trees.is_intact(made) is None


def test_failed_layout_of_a_pristine_worktree_leaves_nothing(repo: Path, root: str) -> None:
    for key, value in (("smudge", "false"), ("clean", "cat"), ("required", "true")):
        git(repo, "config", f"filter.f.{key}", value)
    commit_file(repo, ".gitattributes", "*.md filter=f\n")
    with GitWorktrees.open(str(repo)) as trees:
        with pytest.raises(WorktreeError):
            trees.pristine("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
        assert trees.left_pristine("g1") == ()
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert [path for path in Path(root).rglob("*") if path.is_file()] == []


def test_integration_branch_and_worktree_follow_the_commit(repo: Path, root: str, trees: GitWorktrees) -> None:
    first, second = git(repo, "rev-parse", "HEAD"), commit_file(repo, "b.txt", "b\n")

    made = trees.publish_integration("g1", first, expected=None, root=root)
    assert (made.branch, Path(made.path).name) == ("coordinate-agents/g1/integration", "integration")
    assert git(made.path, "rev-parse", "HEAD") == first

    again = trees.publish_integration("g1", second, expected=first, root=root)
    assert again.path == made.path
    assert git(again.path, "rev-parse", made.branch) == second
    assert Path(again.path, "b.txt").read_text() == "b\n"
    assert git(again.path, "status", "--porcelain") == ""
    back = trees.publish_integration("g1", first, expected=second, root=root)
    assert not Path(back.path, "b.txt").exists()
    assert git(back.path, "status", "--porcelain") == ""


def test_integration_branch_that_is_elsewhere_is_not_moved(repo: Path, root: str, trees: GitWorktrees) -> None:
    first, second = git(repo, "rev-parse", "HEAD"), commit_file(repo, "b.txt", "b\n")
    git(repo, "update-ref", "refs/heads/coordinate-agents/g1/integration", first)
    for expected in (None, second):
        with pytest.raises(WorktreeError) as raised:
            trees.publish_integration("g1", second, expected=expected, root=root)
        assert raised.value.code == "WORKTREE_CONFLICT"
    assert git(repo, "rev-parse", "coordinate-agents/g1/integration") == first


@pytest.mark.parametrize("change", ["tracked", "untracked", "merging"])
def test_changes_in_the_integration_worktree_are_never_overwritten(
    repo: Path, root: str, trees: GitWorktrees, change: str
) -> None:
    first, second = git(repo, "rev-parse", "HEAD"), commit_file(repo, "b.txt", "b\n")
    made = trees.publish_integration("g1", first, expected=None, root=root)
    if change == "tracked":
        Path(made.path, "README.md").write_text("mine")
    elif change == "untracked":
        Path(made.path, "b.txt").write_text("mine")
    else:
        Path(admin_dir(trees.facts, made), "MERGE_HEAD").write_text(f"{second}\n")

    with pytest.raises(WorktreeError) as raised:
        trees.publish_integration("g1", second, expected=first, root=root)

    assert raised.value.code == "DIRTY_WORKTREE"
    assert git(repo, "rev-parse", "coordinate-agents/g1/integration") == first
    if change != "merging":
        assert Path(made.path, "README.md" if change == "tracked" else "b.txt").read_text() == "mine"


def test_what_a_check_left_in_the_integration_worktree_stays_when_it_is_in_nobodys_way(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    first, second = git(repo, "rev-parse", "HEAD"), commit_file(repo, "dir/b.txt", "b\n")
    made = trees.publish_integration("g1", first, expected=None, root=root)
    Path(made.path, "coverage.xml").write_text("left")

    trees.publish_integration("g1", second, expected=first, root=root)
    assert Path(made.path, "coverage.xml").read_text() == "left"
    assert git(made.path, "status", "--porcelain") == "?? coverage.xml"

    third = commit_file(repo, "coverage.xml/x", "x\n")
    with pytest.raises(WorktreeError) as raised:
        trees.publish_integration("g1", third, expected=second, root=root)
    assert raised.value.code == "DIRTY_WORKTREE"
    assert Path(made.path, "coverage.xml").read_text() == "left"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_folder_that_another_user_put_into_a_shared_root_is_not_used(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    planted = Path(root, trees.facts.key)
    planted.mkdir(parents=True)
    os.chown(planted, 12345, 12345)
    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
    assert raised.value.code == "WORKTREE_CONFLICT"
    assert git(repo, "for-each-ref", "refs/heads/coordinate-agents") == ""


def test_link_that_was_planted_for_a_folder_is_not_followed(
    repo: Path, root: str, trees: GitWorktrees, tmp_path: Path
) -> None:
    (tmp_path / "victim").mkdir()
    Path(root, trees.facts.key).mkdir(parents=True)
    Path(root, trees.facts.key, "g1").symlink_to(tmp_path / "victim")
    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
    assert raised.value.code == "WORKTREE_CONFLICT"
    assert list((tmp_path / "victim").iterdir()) == []


def test_state_folder_that_is_a_link_is_refused(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (repo / ".git/coordinate-agents").symlink_to(tmp_path / "victim")
    with pytest.raises(WorktreeError) as raised:
        GitWorktrees.open(str(repo))
    assert raised.value.code == "STATE_TAMPERED"
    assert list((tmp_path / "victim").iterdir()) == []


def test_inherited_variables_of_git_lead_no_call_elsewhere(
    repo: Path, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo(tmp_path / "other")
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    head = git(repo, "rev-parse", "HEAD")
    with monkeypatch.context() as patch:
        for name, place in {"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/index", "GIT_WORK_TREE": "."}.items():
            patch.setenv(name, str(other / place))
        with GitWorktrees.open(str(repo)) as trees:
            frozen = trees.freeze()
            made = trees.create("g1", "api", trees.resolve("HEAD"), root=root, frozen=frozen)
            trees.keep_tips("g1", trees.refs())
            trees.remove_pristine(trees.pristine("g1", "api", head, root=root))
            trees.publish_integration("g1", head, expected=None, root=root)
    assert git(made.path, "status", "--porcelain") == ""
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before


def test_refs_and_worktrees_that_an_agent_attacked_are_noticed_and_commits_found(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    api, db = (trees.create("g1", slug, base, root=root) for slug in ("api", "db"))
    verified = commit_file(Path(db.path), "db.txt", "db\n")
    pin = trees.pin("g1", "db", "verified", verified)
    before = trees.refs()
    trees.keep_tips("g1", before)
    wanted = trees.runtime_refs("g1")

    evil = git(api.path, "commit-tree", "-m", "evil", "HEAD^{tree}")
    git(api.path, "update-ref", "refs/heads/main", evil)
    git(api.path, "worktree", "remove", "--force", "--force", db.path)
    git(api.path, "branch", "-D", db.branch)
    git(api.path, "update-ref", "-d", pin)

    assert trees.refs().refs["refs/heads/main"] != before.refs["refs/heads/main"]
    assert trees.is_intact(db) == "its folder is missing"
    assert trees.restore_refs(wanted) == (pin, f"refs/heads/{db.branch}")
    assert git(repo, "rev-parse", db.branch) == verified
    assert git(repo, "cat-file", "-t", base) == "commit"


def test_repository_lock_excludes_and_is_bounded(trees: GitWorktrees) -> None:
    state = trees.facts.state_dir
    with repository_lock(state), pytest.raises(WorktreeError) as raised, repository_lock(state, timeout_s=0.05):
        pass
    assert raised.value.code == "WORKTREE_CONFLICT"
    with repository_lock(state, timeout_s=0):
        pass
    assert Path(state, "git.lock").stat().st_mode & 0o777 == 0o600


def test_lock_is_not_taken_through_a_planted_link(trees: GitWorktrees, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    Path(trees.facts.state_dir, "git.lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"), repository_lock(trees.facts.state_dir):
        pass
    assert not victim.exists()


def test_files_are_replaced_and_read_without_following_links_or_waiting(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    assert read_regular(tmp_path) is None
    assert read_regular(tmp_path / "link") is None
    assert read_regular(tmp_path / "pipe") is None
    assert read_regular(target, 3) is None
    ensure_text(tmp_path / "link", b"ours")
    assert (target.read_text(), (tmp_path / "link").read_text()) == ("mine", "ours")


def test_tree_of_another_identity_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    found = folder.stat()
    assert not remove_tree(str(folder), (found.st_dev, found.st_ino + 1))
    assert folder.exists()
    assert remove_tree(str(folder), (found.st_dev, found.st_ino))
    assert remove_tree(str(folder), (found.st_dev, found.st_ino))
    assert remove_tree(str(tmp_path / "none/x"), (1, 1))
    assert list(tmp_path.iterdir()) == []


def test_removal_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    found = folder.stat()
    folder.rename(tmp_path / f".removed-{found.st_dev:x}-{found.st_ino:x}")

    assert remove_tree(str(folder), (found.st_dev, found.st_ino))

    assert list(tmp_path.iterdir()) == []
