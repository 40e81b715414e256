"""Runtime refs are read and moved exactly; refs of the user never."""

from pathlib import Path

import pytest
from bench import Calls
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import RefSnapshot
from coordinate_agents.worktrees.worktrees import GitWorktrees

API = "refs/heads/coordinate-agents/g1/api"
PIN = "refs/coordinate-agents/g1/api/kept-1"


def head(repo: Path, name: str = "HEAD") -> str:
    return git(repo, "rev-parse", name)


def test_snapshot_holds_user_refs_and_stash_entries_but_no_runtime_refs(repo: Path, trees: GitWorktrees) -> None:
    first = head(repo)
    for text in ("one", "two"):
        (repo / "README.md").write_text(text)
        git(repo, "stash", "push", "-q")
    git(repo, "tag", "-a", "v1", "-m", "v1")
    git(repo, "update-ref", API, first)
    git(repo, "update-ref", PIN, first)

    assert trees.refs() == RefSnapshot(
        {"refs/heads/main": first, "refs/tags/v1": head(repo, "v1"), "refs/stash": head(repo, "stash@{0}")},
        (head(repo, "stash@{0}"), head(repo, "stash@{1}")),
        "refs/heads/main",
    )


@pytest.mark.parametrize("packed", [False, True])
def test_runtime_refs_are_found_loose_and_packed(repo: Path, trees: GitWorktrees, packed: bool) -> None:
    first, second = head(repo), commit_file(repo, "b.txt", "b\n")
    git(repo, "update-ref", API, first)
    git(repo, "update-ref", PIN, first)
    git(repo, "update-ref", "refs/heads/coordinate-agents/g10/api", first)
    assert trees.runtime_refs("g1") == {API: first, PIN: first}
    if packed:
        git(repo, "pack-refs", "--all")
        git(repo, "update-ref", API, second)
        assert trees.runtime_refs("g1") == {API: second, PIN: first}
    git(repo, "update-ref", "-d", API)
    git(repo, "update-ref", "-d", PIN)
    assert trees.runtime_refs("g1") == {}


def test_moved_and_deleted_runtime_refs_are_restored(repo: Path, trees: GitWorktrees) -> None:
    first, second = head(repo), commit_file(repo, "b.txt", "b\n")
    wanted = {API: first, PIN: first, "refs/coordinate-agents/g1/api/verified-1": second}
    for name, oid in wanted.items():
        git(repo, "update-ref", name, oid)
    git(repo, "pack-refs", "--all")
    git(repo, "update-ref", API, second)
    git(repo, "update-ref", "-d", PIN)

    assert trees.restore_refs(wanted) == (PIN, API)
    assert trees.runtime_refs("g1") == wanted
    assert trees.restore_refs(wanted) == ()


def test_symbolic_runtime_ref_is_restored_without_moving_its_target(repo: Path, trees: GitWorktrees) -> None:
    first, second = head(repo), commit_file(repo, "b.txt", "b\n")
    git(repo, "update-ref", API, first)
    git(repo, "pack-refs", "--all")
    git(repo, "symbolic-ref", API, "refs/heads/main")
    assert trees.runtime_refs("g1") == {}

    assert trees.restore_refs({API: first}) == (API,)

    assert head(repo, "main") == second
    assert trees.runtime_refs("g1") == {API: first}


def test_link_in_place_of_a_runtime_ref_is_no_value_and_its_target_is_kept(
    repo: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    first, second = head(repo), commit_file(repo, "b.txt", "b\n")
    git(repo, "update-ref", API, first)
    git(repo, "pack-refs", "--all")
    (tmp_path / "target").write_text(f"{second}\n")
    (repo / ".git" / API).parent.mkdir(parents=True, exist_ok=True)
    (repo / ".git" / API).symlink_to(tmp_path / "target")
    assert trees.runtime_refs("g1") == {}

    assert trees.restore_refs({API: first}) == (API,)

    assert trees.runtime_refs("g1") == {API: first}
    assert (tmp_path / "target").read_text() == f"{second}\n"


def test_refs_of_the_user_are_never_restored(repo: Path, trees: GitWorktrees) -> None:
    with pytest.raises(WorktreeError):
        trees.restore_refs({"refs/heads/main": head(repo)})


def test_restoring_to_a_commit_that_is_gone_changes_nothing(repo: Path, trees: GitWorktrees) -> None:
    first = head(repo)
    git(repo, "update-ref", API, first)
    with pytest.raises(WorktreeError) as raised:
        trees.restore_refs({API: "1" * 40, PIN: first})
    assert raised.value.code == "WORKTREE_CONFLICT"
    assert trees.runtime_refs("g1") == {API: first}


@pytest.mark.parametrize(
    ("branch", "named"),
    [
        ("coordinate-agents", "Your branch coordinate-agents stands where the Runtime needs coordinate-agents/g1."),
        ("coordinate-agents/g1", "Your branch coordinate-agents/g1 stands where"),
        ("coordinate-agents/g1/api/x", "Your branch coordinate-agents/g1/api/x stands where the Runtime needs"),
        ("coordinate-agents/g1/integration", "Your branch coordinate-agents/g1/integration stands where"),
        ("coordinate-agents/g1/api", "Your branch coordinate-agents/g1/api stands where the Runtime needs"),
    ],
)
def test_branch_that_makes_names_impossible_is_named_and_untouched(
    repo: Path, trees: GitWorktrees, branch: str, named: str
) -> None:
    git(repo, "branch", branch)
    with pytest.raises(WorktreeError) as raised:
        trees.check_names("g1", ["db", "api"])
    assert raised.value.code == "WORKTREE_CONFLICT"
    assert raised.value.message.startswith(named)
    assert raised.value.next == f"git branch -m {branch} NEW-NAME"
    assert head(repo, branch) == head(repo)


def test_other_branches_are_no_obstacle(repo: Path, root: str, trees: GitWorktrees) -> None:
    for name in ("graph", "task", "coordinate-agents-x", "coordinate-agents/g10/api", "coordinate-agents/g1/apis/x"):
        git(repo, "branch", name)
    trees.check_names("g1", ["api"])
    trees.create("g1", "api", head(repo), root=root)
    trees.check_names("g1", ["api"])


def test_pin_takes_the_next_free_number_once_per_commit(repo: Path, trees: GitWorktrees) -> None:
    first, second = head(repo), commit_file(repo, "b.txt", "b\n")
    base = "refs/coordinate-agents/g1/api"
    assert trees.pin("g1", "api", "kept", first) == f"{base}/kept-1"
    assert trees.pin("g1", "api", "kept", second) == f"{base}/kept-2"
    assert trees.pin("g1", "api", "kept", first) == f"{base}/kept-1"
    assert trees.pin("g1", "api", "verified", first) == f"{base}/verified-1"
    git(repo, "pack-refs", "--all", "--prune")
    third = commit_file(repo, "c.txt", "c\n")
    assert trees.pin("g1", "api", "kept", third) == f"{base}/kept-3"


def test_pinning_what_does_not_exist_is_an_error(trees: GitWorktrees) -> None:
    with pytest.raises(WorktreeError):
        trees.pin("g1", "api", "kept", "1" * 40)
    assert trees.runtime_refs("g1") == {}


def test_tips_and_stashes_survive_their_deletion_and_gc(repo: Path, trees: GitWorktrees) -> None:
    git(repo, "checkout", "-q", "-b", "side")
    side = commit_file(repo, "s.txt", "s\n")
    git(repo, "tag", "-a", "v1", "-m", "v1")
    tag = head(repo, "v1")
    stashes = []
    for text in ("one", "two"):
        (repo / "README.md").write_text(text)
        git(repo, "stash", "push", "-q")
        stashes.append(head(repo, "stash"))
    git(repo, "checkout", "-q", "main")

    trees.keep_tips("g1", trees.refs())
    git(repo, "branch", "-q", "-D", "side")
    git(repo, "tag", "-d", "v1")
    git(repo, "stash", "clear")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")

    for oid in (side, tag, *stashes):
        assert git(repo, "cat-file", "-e", oid) == ""
    assert trees.runtime_refs("g1") == {}


def test_many_tips_are_pinned_by_those_that_contain_them(repo: Path, trees: GitWorktrees) -> None:
    for number in range(80):
        git(repo, "commit", "-q", "--allow-empty", "-m", str(number))
        git(repo, "tag", f"t{number}")
    git(repo, "branch", "side", "HEAD~40")
    snapshot = trees.refs()

    trees.keep_tips("g1", snapshot)

    pinned = git(repo, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/g1/+tips").split()
    assert pinned == [head(repo)]


def test_tips_that_are_pinned_already_cost_no_git_call(
    repo: Path, trees: GitWorktrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = trees.refs()
    trees.keep_tips("g1", snapshot)
    calls = Calls(tmp_path, monkeypatch)

    trees.keep_tips("g1", snapshot)

    assert calls.lines() == []
    assert git(repo, "for-each-ref", "--format=%(objectname)", "refs/coordinate-agents/g1/+tips") == head(repo)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_everything_that_only_the_worktree_holds_is_kept(tmp_path: Path, object_format: str) -> None:
    repo = make_repo(tmp_path / "repo", object_format=object_format)
    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=str(tmp_path / "trees"))
        path = Path(made.path)
        amended_away = commit_file(path, "a.txt", "a\n")
        git(path, "commit", "-q", "--amend", "-m", "other words")
        reset_away = head(path)
        git(path, "reset", "-q", "--hard", "HEAD~1")
        git(path, "checkout", "-q", "--detach")
        detached = commit_file(path, "d.txt", "d\n")
        git(path, "checkout", "-q", made.branch.removeprefix("refs/heads/"))
        private = git(path, "commit-tree", head(repo) + "^{tree}", "-m", "private")
        git(path, "update-ref", "refs/worktree/mine", private)
        other = git(path, "commit-tree", head(repo) + "^{tree}", "-m", "merge head")
        tip = commit_file(path, "t.txt", "t\n")
        (repo / ".git/worktrees/api/MERGE_HEAD").write_text(f"{other}\n")

        kept = trees.keep("g1", "api", made)

        assert set(kept) == {amended_away, reset_away, detached, private, other, tip}
        assert trees.keep("g1", "api", made) == ()
        pins = {name: oid for name, oid in trees.runtime_refs("g1").items() if "/kept-" in name}
        assert set(pins.values()) == set(kept)
        git(repo, "worktree", "remove", "-f", "-f", made.path)
        git(repo, "branch", "-q", "-D", made.branch)
        git(repo, "reflog", "expire", "--expire=now", "--all")
        git(repo, "gc", "-q", "--prune=now")
        assert [git(repo, "cat-file", "-t", oid) for oid in kept] == ["commit"] * 6


def test_commits_that_a_newer_one_contains_need_no_pin_of_their_own(repo: Path, root: str, trees: GitWorktrees) -> None:
    made = trees.create("g1", "api", head(repo), root=root)
    assert trees.keep("g1", "api", made) == ()
    commit_file(Path(made.path), "a.txt", "a\n")
    tip = commit_file(Path(made.path), "b.txt", "b\n")
    assert trees.keep("g1", "api", made) == (tip,)


def test_stash_of_the_user_is_not_touched_by_any_call(repo: Path, root: str, trees: GitWorktrees) -> None:
    (repo / "README.md").write_text("mine")
    git(repo, "stash", "push", "-q")
    before = (git(repo, "stash", "list"), (repo / ".git/logs/refs/stash").read_bytes())

    made = trees.create("g1", "api", head(repo), root=root)
    trees.keep_tips("g1", trees.refs())
    commit = commit_file(Path(made.path), "a.txt", "a\n")
    trees.keep("g1", "api", made)
    trees.remove_pristine(trees.pristine("g1", "api", commit, root=root))

    assert (git(repo, "stash", "list"), (repo / ".git/logs/refs/stash").read_bytes()) == before
