"""A worktree is made whole, or nothing of it remains; what the user has is never touched."""

import os
from pathlib import Path

import pytest
from bench import Calls
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees import git as runner
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.lock import creation_lock
from coordinate_agents.worktrees.worktrees import GitWorktrees

BRANCH = "coordinate-agents/g1/api"


def refs(repo: Path) -> str:
    return git(repo, "for-each-ref", "--format=%(refname) %(objectname)")


def nothing_left(repo: Path, root: str) -> None:
    assert "coordinate-agents/g1/api" not in refs(repo)
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert not [path for path in Path(root).rglob("*") if path.is_dir() and path.name == "api"]


def leave_registering_to_git(repo: Path) -> None:
    """A setting that changes nothing, but is one of those that only git follows."""
    git(repo, "config", "core.sharedRepository", "umask")


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD")


def test_new_worktree_is_an_ordinary_clean_linked_worktree(repo: Path, root: str, trees: GitWorktrees) -> None:
    commit_file(repo, "src/a b.txt", "text\n")
    made = trees.create("g1", "api", head(repo), root=root)

    assert made.path == str(Path(os.path.realpath(root), trees.facts.key, "g1", "api"))
    assert made.branch == BRANCH
    assert git(made.path, "status", "--porcelain", "--branch") == f"## {BRANCH}"
    assert git(made.path, "rev-parse", "HEAD") == head(repo)
    assert Path(made.path, "src/a b.txt").read_text() == "text\n"
    assert Path(made.path).stat().st_mode & 0o777 == 0o700
    assert trees.is_intact(made) is None
    assert f"locked coordinate-agents {made.nonce}" in git(repo, "worktree", "list", "--porcelain")
    assert git(repo, "status", "--porcelain") == ""


def test_agent_commits_there_with_its_own_git(repo: Path, root: str, trees: GitWorktrees) -> None:
    made = trees.create("g1", "api", head(repo), root=root)

    commit = commit_file(Path(made.path), "new.txt", "new\n")

    assert git(repo, "rev-parse", BRANCH) == commit
    assert trees.runtime_refs("g1") == {f"refs/heads/{BRANCH}": commit}


def test_branch_of_the_user_with_that_name_is_refused_and_untouched(repo: Path, root: str, trees: GitWorktrees) -> None:
    git(repo, "branch", BRANCH)
    before = refs(repo)
    commit_file(repo, "later.txt", "later\n")

    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", head(repo), root=root)

    assert raised.value.code == "WORKTREE_CONFLICT"
    assert BRANCH in raised.value.message
    assert f"{BRANCH} {before.split(f'{BRANCH} ')[1].splitlines()[0]}" in refs(repo)
    assert not Path(root, trees.facts.key, "g1", "api").exists()


@pytest.mark.parametrize("content", [None, "mine"])
def test_folder_that_exists_is_refused_and_no_branch_is_made(
    repo: Path, root: str, trees: GitWorktrees, content: str | None
) -> None:
    target = Path(os.path.realpath(root), trees.facts.key, "g1", "api")
    target.mkdir(parents=True)
    if content is not None:
        (target / "x").write_text(content)

    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", head(repo), root=root)

    assert raised.value.code == "WORKTREE_CONFLICT"
    assert str(target) in raised.value.message
    assert [path.name for path in target.iterdir()] == ([] if content is None else ["x"])
    assert BRANCH not in refs(repo)


@pytest.mark.parametrize("script", ["exit 1", "sleep 600", "touch ran"])
def test_post_checkout_hook_never_runs(repo: Path, root: str, trees: GitWorktrees, tmp_path: Path, script: str) -> None:
    hooks = tmp_path / "hk"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n{script}\n")
        (hooks / name).chmod(0o755)
    git(repo, "config", "core.hooksPath", str(hooks))

    made = trees.create("g1", "api", head(repo), root=root)

    assert trees.is_intact(made) is None
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("required", ["true", "false"])
def test_missing_smudge_filter_names_filter_and_file_and_leaves_nothing(repo: Path, root: str, required: str) -> None:
    (repo / ".gitattributes").write_text("*.bin filter=lfs\n")
    commit_file(repo, "a.bin", "version https://git-lfs.github.com/spec/v1\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-qm", "attributes")
    git(repo, "config", "filter.lfs.smudge", "no-such-lfs smudge")
    git(repo, "config", "filter.lfs.required", required)

    with GitWorktrees.open(str(repo)) as trees, pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", head(repo), root=root)

    assert raised.value.code == "SETUP_FAILED"
    assert "lfs" in raised.value.message
    if required == "true":
        assert "a.bin" in raised.value.message
    nothing_left(repo, root)


def test_filter_that_was_configured_at_freeze_fills_the_files(repo: Path, root: str) -> None:
    git(repo, "config", "filter.rot.smudge", "tr a-z n-za-m")
    git(repo, "config", "filter.rot.clean", "tr a-z n-za-m")
    (repo / ".gitattributes").write_text("*.rot filter=rot\n")
    git(repo, "add", ".gitattributes")
    commit_file(repo, "a.rot", "hello\n")

    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=root)

    assert Path(made.path, "a.rot").read_text() == "hello\n"
    assert git(repo, "show", "HEAD:a.rot") == "uryyb"
    assert git(made.path, "status", "--porcelain") == ""


def test_filter_that_an_agent_configured_later_does_not_run(
    repo: Path, root: str, trees: GitWorktrees, tmp_path: Path
) -> None:
    frozen = trees.freeze()
    git(repo, "config", "filter.evil.smudge", f"touch {tmp_path}/ran; cat")
    (repo / ".gitattributes").write_text("* filter=evil\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-qm", "attributes")

    trees.create("g1", "api", head(repo), root=root, frozen=frozen)
    trees.create("g1", "other", head(repo), root=root)

    assert not (tmp_path / "ran").exists()


def test_line_endings_of_the_user_are_kept_and_the_worktree_can_be_made(repo: Path, root: str) -> None:
    git(repo, "config", "core.autocrlf", "true")
    commit_file(repo, "c.txt", "one\ntwo\n")

    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=root)

    assert Path(made.path, "c.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert git(made.path, "status", "--porcelain") == ""


def test_file_whose_stored_form_contradicts_its_attributes_does_not_stop_a_start(repo: Path, root: str) -> None:
    (repo / "c.txt").write_bytes(b"one\r\n")
    git(repo, "add", "c.txt")
    git(repo, "commit", "-qm", "crlf")
    commit_file(repo, ".gitattributes", "*.txt text\n")

    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=root)

    assert trees.is_intact(made) is None


def test_resume_from_a_kept_commit_starts_the_branch_there(repo: Path, root: str, trees: GitWorktrees) -> None:
    base = head(repo)
    later = commit_file(repo, "b.txt", "b\n")

    made = trees.create("g1", "api", base, root=root, resume_from=later)

    assert git(made.path, "rev-parse", "HEAD") == later
    assert made.base == base


def test_branch_known_by_a_pin_is_used_and_its_tip_kept(repo: Path, root: str, trees: GitWorktrees) -> None:
    base = head(repo)
    tip = commit_file(repo, "b.txt", "b\n")
    git(repo, "update-ref", f"refs/heads/{BRANCH}", tip)
    trees.pin("g1", "api", "kept", tip)

    made = trees.create("g1", "api", base, root=root)

    assert git(made.path, "rev-parse", "HEAD") == base
    assert trees.runtime_refs("g1")["refs/coordinate-agents/g1/api/kept-1"] == tip


def test_clean_worktree_of_an_earlier_attempt_is_used_again(repo: Path, root: str, trees: GitWorktrees) -> None:
    base = head(repo)
    first = trees.create("g1", "api", base, root=root)
    work = commit_file(Path(first.path), "work.txt", "work\n")

    second = trees.create("g1", "api", base, root=root)

    assert (second.path, second.inode) == (first.path, first.inode)
    assert second.nonce != first.nonce
    assert git(second.path, "status", "--porcelain") == ""
    assert git(second.path, "rev-parse", "HEAD") == base
    assert not Path(second.path, "work.txt").exists()
    assert work in trees.runtime_refs("g1").values()
    assert trees.is_intact(second) is None


def test_dirty_worktree_of_an_earlier_attempt_is_refused_and_kept(repo: Path, root: str, trees: GitWorktrees) -> None:
    first = trees.create("g1", "api", head(repo), root=root)
    Path(first.path, "unsaved.txt").write_text("only here\n")

    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", head(repo), root=root)

    assert raised.value.code == "DIRTY_WORKTREE"
    assert Path(first.path, "unsaved.txt").read_text() == "only here\n"
    assert trees.is_intact(first) is None


def test_same_nonce_returns_the_worktree_that_was_made(repo: Path, root: str, trees: GitWorktrees) -> None:
    first = trees.create("g1", "api", head(repo), root=root, nonce="n1")
    Path(first.path, "left-by-setup").write_text("x")

    assert trees.create("g1", "api", head(repo), root=root, nonce="n1") == first


def test_worktree_whose_folder_is_gone_is_laid_out_again_at_its_branch(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    first = trees.create("g1", "api", head(repo), root=root)
    work = commit_file(Path(first.path), "work.txt", "work\n")
    git(first.path, "commit", "-q", "--amend", "-m", "amended")
    amended = git(repo, "rev-parse", BRANCH)
    Path(first.path).rename(Path(root, "moved-away"))

    again = trees.recreate("g1", "api", first, root=root)

    assert git(again.path, "rev-parse", "HEAD") == amended
    assert git(again.path, "status", "--porcelain") == ""
    assert {work, amended} <= set(trees.runtime_refs("g1").values())
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2


def test_registration_of_somebody_else_at_the_path_is_reported_and_left(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    path = Path(os.path.realpath(root), trees.facts.key, "g1", "api")
    path.parent.mkdir(parents=True)
    git(repo, "worktree", "add", "-q", "-b", "t", str(path))
    git(repo, "worktree", "lock", str(path))
    for entry in sorted(path.rglob("*"), reverse=True):
        entry.unlink()
    path.rmdir()

    with pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", head(repo), root=root)

    assert raised.value.code == "WORKTREE_CONFLICT"
    assert str(path) in git(repo, "worktree", "list", "--porcelain")
    assert not path.exists()
    assert BRANCH not in refs(repo)


def test_worktree_root_inside_the_checkout_is_refused(repo: Path, trees: GitWorktrees) -> None:
    for inside in (repo / "trees", repo / ".git" / "trees"):
        with pytest.raises(WorktreeError) as raised:
            trees.create("g1", "api", head(repo), root=str(inside))
        assert raised.value.code == "WORKTREE_CONFLICT"
        assert not inside.exists()


def test_user_clean_does_not_reach_worktrees_or_state(repo: Path, root: str, trees: GitWorktrees) -> None:
    made = trees.create("g1", "api", head(repo), root=root)
    Path(made.path, "unsaved.txt").write_text("x")

    git(repo, "clean", "-ffdxq")

    assert git(repo, "status", "--porcelain", "--ignored") == ""
    assert Path(made.path, "unsaved.txt").exists()
    assert trees.is_intact(made) is None


def test_root_reached_through_a_link_gives_the_real_path(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "to-repo").symlink_to(repo)
    with GitWorktrees.open(str(tmp_path / "to-repo")) as trees, GitWorktrees.open(str(repo)) as same:
        assert trees.facts == same.facts
        made = trees.create("g1", "api", head(repo), root=str(tmp_path / "link"))
        assert made.path.startswith(str(tmp_path / "real"))
        assert same.is_intact(made) is None


def test_sparse_checkout_of_the_user_gives_a_complete_worktree(repo: Path, root: str) -> None:
    commit_file(repo, "in/a.txt", "a\n")
    commit_file(repo, "out/b.txt", "b\n")
    git(repo, "sparse-checkout", "set", "--cone", "in")
    assert not (repo / "out").exists()

    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=root)

    assert Path(made.path, "out/b.txt").read_text() == "b\n"
    assert git(made.path, "status", "--porcelain") == ""
    git(made.path, "reset", "-q", "--hard")
    assert Path(made.path, "out/b.txt").exists()
    assert not (repo / "out").exists()


def test_submodule_folder_is_empty_and_the_worktree_clean(repo: Path, root: str, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    git(repo, "commit", "-qm", "submodule")

    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=root)

    assert list(Path(made.path, "sub").iterdir()) == []
    assert git(made.path, "status", "--porcelain") == ""


def test_tag_with_the_name_of_the_branch_does_not_mislead(repo: Path, root: str, trees: GitWorktrees) -> None:
    base = head(repo)
    later = commit_file(repo, "b.txt", "b\n")
    git(repo, "tag", BRANCH, base)

    made = trees.create("g1", "api", later, root=root)

    assert git(made.path, "rev-parse", "HEAD") == later
    assert git(made.path, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"


def test_base_that_does_not_exist_leaves_nothing(repo: Path, root: str, trees: GitWorktrees) -> None:
    with pytest.raises(WorktreeError):
        trees.create("g1", "api", "0" * 39 + "1", root=root)
    nothing_left(repo, root)


def test_creation_that_another_process_is_busy_with_is_refused(repo: Path, root: str, trees: GitWorktrees) -> None:
    with creation_lock(trees.facts.state_dir, "g1", "api"), pytest.raises(WorktreeError) as raised:
        trees.create("g1", "api", head(repo), root=root)
    assert raised.value.code == "WORKTREE_CONFLICT"


@pytest.mark.parametrize(
    "message",
    [
        "fatal: failed to read .git/worktrees/x/commondir: Success",
        "fatal: could not open '/r/.git/worktrees/api/locked' for writing: No such file or directory",
    ],
)
def test_race_with_another_git_is_tried_again(
    repo: Path, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    leave_registering_to_git(repo)
    real = runner.git_program()
    flaky = tmp_path / "git"
    flaky.write_text(
        f'#!/bin/sh\ncase "$*" in "worktree add"*) if [ ! -e {tmp_path}/failed ]; then touch {tmp_path}/failed; '
        f'echo "{message}" >&2; exit 128; fi ;; esac\nexec {real} "$@"\n'
    )
    flaky.chmod(0o755)
    monkeypatch.setattr(runner, "git_program", lambda: str(flaky))
    with GitWorktrees.open(str(repo)) as trees:
        made = trees.create("g1", "api", head(repo), root=root)
        assert trees.is_intact(made) is None
    assert (tmp_path / "failed").exists()


@pytest.mark.parametrize("is_packed", [False, True], ids=["loose objects", "packed objects"])
def test_creation_costs_only_git_processes_that_are_kept(
    repo: Path, root: str, trees: GitWorktrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_packed: bool
) -> None:
    if is_packed:
        git(repo, "gc", "-q")
    frozen = trees.freeze()
    calls = Calls(tmp_path, monkeypatch)

    trees.create("g1", "api", head(repo), root=root, frozen=frozen)

    asked = {line.split()[0] for line in calls.lines()}
    assert asked - {"rev-parse"} == ({"update-ref", "cat-file"} if is_packed else {"update-ref"})


def test_success_is_judged_by_looking_and_not_by_the_exit_code(
    repo: Path, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_registering_to_git(repo)
    real = runner.git_program()
    liar = tmp_path / "git"
    monkeypatch.setattr(runner, "git_program", lambda: str(liar))
    with_failure = f'{real} "$@"; exit 1'
    without_work = "exit 0"
    for script in (with_failure, without_work):
        liar.write_text(f'#!/bin/sh\ncase "$*" in "worktree add"*) {script} ;; esac\nexec {real} "$@"\n')
        liar.chmod(0o755)
        with GitWorktrees.open(str(repo)) as trees:
            if script == with_failure:
                made = trees.create("g1", "api", head(repo), root=root)
                assert trees.is_intact(made) is None
            else:
                with pytest.raises(WorktreeError) as raised:
                    trees.create("g1", "db", head(repo), root=root)
                assert raised.value.code == "WORKTREE_CONFLICT"
                assert "g1/db" not in refs(repo)
                assert not Path(root, trees.facts.key, "g1", "db").exists()


def test_add_that_hangs_is_ended_and_leaves_nothing(
    repo: Path, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_registering_to_git(repo)
    real = runner.git_program()
    slow = tmp_path / "git"
    slow.write_text(f'#!/bin/sh\ncase "$*" in "worktree add"*) exec sleep 300 ;; esac\nexec {real} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(runner, "git_program", lambda: str(slow))
    monkeypatch.setattr("coordinate_agents.worktrees.register.ADD_TIMEOUT_S", 0.5)
    with GitWorktrees.open(str(repo)) as trees, pytest.raises(WorktreeError, match="did not end within"):
        trees.create("g1", "api", head(repo), root=root)
    nothing_left(repo, root)
