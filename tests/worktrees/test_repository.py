"""Which repositories are opened, what is said of those that are not, and which commit a base names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.repository import open_repository, resolve
from coordinate_agents.worktrees.worktrees import GitWorktrees


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


def head(repo: Path, name: str = "HEAD") -> str:
    return git(repo, "rev-parse", name)


def refused(code: str, root: Path | str) -> WorktreeError:
    with pytest.raises(WorktreeError) as raised:
        open_repository(str(root))
    assert raised.value.code == code
    return raised.value


def test_facts_of_an_ordinary_repository(repo: Path) -> None:
    facts = open_repository(str(repo / "."))
    assert (facts.root, facts.git_dir, facts.common_dir) == (str(repo), str(repo / ".git"), str(repo / ".git"))
    assert facts.state_dir == str(repo / ".git/coordinate-agents")
    assert (facts.object_format, facts.is_bare, facts.is_shallow, facts.is_partial) == ("sha1", False, False, False)
    assert facts.key.startswith("repo-")
    assert facts.git_version.startswith("2.")


def test_folder_below_the_root_opens_the_same_repository(repo: Path) -> None:
    commit_file(repo, "a/b/c.txt", "c\n")
    assert open_repository(str(repo / "a/b")) == open_repository(str(repo))


def test_state_root_of_its_own_holds_the_state(repo: Path, tmp_path: Path) -> None:
    facts = open_repository(str(repo), state_root=str(tmp_path / "state"))
    assert facts.state_dir == str(tmp_path / "state" / facts.key)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("name", ["a b", "it's", "nl\nx", "nl\n", "ünï", "-x", "semi;colon $(id)", "true\n/x"])
def test_strange_paths_open_and_get_worktrees(tmp_path: Path, name: str, object_format: str) -> None:
    repo = make_repo(tmp_path / name, object_format=object_format)
    commit_file(repo, "dir/ü x", "x\n")
    with GitWorktrees.open(str(repo)) as trees:
        assert trees.facts.root == str(repo)
        assert trees.facts.object_format == object_format
        made = trees.create("g1", "api", trees.resolve("HEAD"), root=str(tmp_path / f"trees {name}"))
        assert git(made.path, "status", "--porcelain") == ""
        assert git(made.path, "rev-parse", "HEAD") == head(repo)
        commit = commit_file(Path(made.path), "new", "new\n")
        assert trees.keep("g1", "api", made) == (commit,)
        check = trees.pristine("g1", "api", commit, root=str(tmp_path / f"trees {name}"))
        assert Path(check.path, "new").exists()
        trees.remove_pristine(check)
        assert not Path(check.path).exists()


def test_linked_worktree_as_root_shares_state_and_key(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    side = commit_file(tmp_path / "linked", "s.txt", "s\n")
    with GitWorktrees.open(str(tmp_path / "linked")) as trees:
        assert trees.facts.root == str(tmp_path / "linked")
        assert trees.facts.common_dir == str(repo / ".git")
        assert trees.facts.key == open_repository(str(repo)).key
        assert trees.resolve("HEAD") == side
        made = trees.create("g1", "api", side, root=str(tmp_path / "trees"))
        assert git(made.path, "rev-parse", "HEAD") == side
    assert git(tmp_path / "linked", "status", "--porcelain") == ""
    assert git(repo, "status", "--porcelain") == ""


def test_submodule_as_root_opens(repo: Path, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    git(other, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo), "sub")
    with GitWorktrees.open(str(other / "sub")) as trees:
        assert trees.facts.root == str(other / "sub")
        made = trees.create("g1", "api", head(repo), root=str(tmp_path / "trees"))
        assert git(made.path, "status", "--porcelain") == ""
    assert git(other / "sub", "status", "--porcelain") == ""


def test_no_repository_is_refused(tmp_path: Path) -> None:
    assert "is in no git repository" in refused("NOT_A_REPOSITORY", tmp_path).message
    assert "is not a folder" in refused("NOT_A_REPOSITORY", tmp_path / "none").message


def test_inside_of_the_git_dir_is_refused(repo: Path) -> None:
    assert "inside a git dir" in refused("NOT_A_REPOSITORY", repo / ".git").message


def test_reftable_is_refused(repo: Path) -> None:
    (repo / ".git/reftable").mkdir()
    assert refused("REPOSITORY_UNSUPPORTED", repo).next == "git refs migrate --ref-format=files"


def test_unknown_extension_is_refused_with_the_words_of_git(repo: Path) -> None:
    git(repo, "config", "core.repositoryformatversion", "1")
    git(repo, "config", "extensions.fromTheFuture", "true")
    assert "fromthefuture" in refused("REPOSITORY_UNSUPPORTED", repo).message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_repository_of_another_user_is_refused_with_gits_own_advice(
    repo: Path, isolation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in [repo, *repo.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)

    error = refused("REPOSITORY_UNSUPPORTED", repo)

    assert error.next == f"git config --global --add safe.directory {repo}"
    assert not (isolation / ".gitconfig").exists()
    git(repo.parent, "config", "--global", "--add", "safe.directory", str(repo))
    assert open_repository(str(repo)).root == str(repo)


def test_branch_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "empty")
    with GitWorktrees.open(str(tmp_path / "empty")) as trees, pytest.raises(WorktreeError) as raised:
        trees.resolve("HEAD")
    assert raised.value.code == "REPOSITORY_UNSUPPORTED"
    assert raised.value.message == "The repository has no commit yet on branch main."


def test_orphan_branch_is_refused_although_others_have_commits(repo: Path, judge: Judge) -> None:
    git(repo, "checkout", "-q", "--orphan", "new")
    with pytest.raises(WorktreeError) as raised:
        resolve(judge, "HEAD")
    assert "no commit yet on branch new" in raised.value.message
    assert resolve(judge, "main") == head(repo, "main")


def test_bare_repository_needs_a_base_and_then_works(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    with GitWorktrees.open(str(tmp_path / "bare.git")) as trees:
        assert trees.facts.is_bare
        with pytest.raises(WorktreeError) as raised:
            trees.resolve("HEAD")
        assert raised.value.code == "REPOSITORY_UNSUPPORTED"
        assert "base: main" in (raised.value.next or "")
        made = trees.create("g1", "api", trees.resolve("main"), root=str(tmp_path / "trees"))
        assert git(made.path, "status", "--porcelain") == ""


def test_detached_head_is_a_base(repo: Path, judge: Judge) -> None:
    git(repo, "checkout", "-q", "--detach")
    assert resolve(judge, "HEAD") == head(repo)


def test_base_is_given_as_a_full_hash(repo: Path, judge: Judge) -> None:
    first = head(repo)
    commit_file(repo, "b.txt", "b\n")
    git(repo, "tag", "-a", "v1", "-m", "v1")
    for text, wanted in (("main", head(repo)), ("HEAD~1", first), (first[:9], first), ("v1", head(repo))):
        assert resolve(judge, text) == wanted


def test_branch_and_tag_of_one_name_are_not_guessed(repo: Path, judge: Judge) -> None:
    first = head(repo)
    git(repo, "tag", "main")
    assert resolve(judge, "main") == first
    second = commit_file(repo, "b.txt", "b\n")
    with pytest.raises(WorktreeError) as raised:
        resolve(judge, "main")
    assert raised.value.code == "TASK_GRAPH_INVALID"
    assert "refs/heads/main" in (raised.value.next or "")
    assert (resolve(judge, "refs/heads/main"), resolve(judge, "refs/tags/main")) == (second, first)


def test_branch_that_is_named_like_a_ref_does_not_mislead(repo: Path, judge: Judge) -> None:
    first = head(repo)
    git(repo, "branch", "refs/heads/x", first)
    second = commit_file(repo, "b.txt", "b\n")
    git(repo, "branch", "x", second)
    assert resolve(judge, "refs/heads/refs/heads/x") == first
    assert resolve(judge, "x") == second


@pytest.mark.parametrize("text", ["", "-x", "--all", ":/fix", "@{u}", "HEAD@{1}", "main^{/x}", "a\nb", "a\0b", "nope"])
def test_base_that_does_not_name_one_commit_is_refused(judge: Judge, text: str) -> None:
    with pytest.raises(WorktreeError) as raised:
        resolve(judge, text)
    assert raised.value.code == "TASK_GRAPH_INVALID"


def test_tree_is_no_base(judge: Judge) -> None:
    with pytest.raises(WorktreeError):
        resolve(judge, "HEAD^{tree}")


def test_replace_ref_does_not_change_the_base(repo: Path, judge: Judge) -> None:
    first = head(repo)
    second = commit_file(repo, "b.txt", "b\n")
    git(repo, "replace", second, first)
    assert resolve(judge, "main") == second


def test_dirty_checkout_stays_as_it_is(repo: Path, root: str, trees: GitWorktrees) -> None:
    (repo / "README.md").write_text("edited\n")
    (repo / "staged.txt").write_text("staged\n")
    git(repo, "add", "staged.txt")
    (repo / "new.txt").write_text("new\n")
    before = (git(repo, "status", "--porcelain"), (repo / ".git/index").read_bytes())

    made = trees.create("g1", "api", trees.resolve("HEAD"), root=root)
    trees.publish_integration("g1", made.base, expected=None, root=root)

    assert (git(repo, "status", "--porcelain"), (repo / ".git/index").read_bytes()) == before
    assert Path(made.path, "README.md").read_text() == "# sample\n"


def test_shallow_clone_gets_worktrees(repo: Path, root: str, tmp_path: Path) -> None:
    commit_file(repo, "b.txt", "b\n")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "clone")
    with GitWorktrees.open(str(tmp_path / "clone")) as trees:
        assert trees.facts.is_shallow
        made = trees.create("g1", "api", trees.resolve("HEAD"), root=root)
        assert git(made.path, "status", "--porcelain") == ""
        assert Path(made.path, "b.txt").exists()


@pytest.mark.parametrize("filtered", ["blob:none", "tree:0"])
def test_partial_clone_is_completed_before_the_agent_exists(
    repo: Path, root: str, tmp_path: Path, filtered: str
) -> None:
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(repo, "config", "uploadpack.allowAnySHA1InWant", "true")
    commit_file(repo, "deep/er/b.txt", "b\n")
    git(tmp_path, "clone", "-q", "--no-checkout", f"--filter={filtered}", f"file://{repo}", "clone")
    clone = tmp_path / "clone"
    with GitWorktrees.open(str(clone)) as trees:
        assert trees.facts.is_partial
        made = trees.create("g1", "api", trees.resolve("HEAD"), root=root)
    git(repo, "config", "uploadpack.allowFilter", "false")
    repo.rename(tmp_path / "gone")

    assert Path(made.path, "deep/er/b.txt").read_text() == "b\n"
    assert git(made.path, "status", "--porcelain") == ""
    commit_file(Path(made.path), "new.txt", "new\n")
    assert git(clone, "fsck", "--connectivity-only", "--no-dangling") == ""


def test_partial_clone_whose_remote_runs_a_program_is_refused(repo: Path, root: str, tmp_path: Path) -> None:
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repo}", "clone")
    git(tmp_path / "clone", "config", "remote.origin.url", f"ext::sh -c 'touch {tmp_path}/ran'")
    git(tmp_path / "clone", "config", "protocol.ext.allow", "always")
    with GitWorktrees.open(str(tmp_path / "clone")) as trees, pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", trees.resolve("HEAD"), root=root)
    assert raised.value.code == "REPOSITORY_UNSUPPORTED"
    assert not (tmp_path / "ran").exists()
    assert not list(Path(root).rglob("api"))
