"""A worktree in the middle of a merge: what the user's own git finds there, and what ends the merge."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench
from repos import git

from coordinate_agents.worktrees import giving_up, ownership
from coordinate_agents.worktrees.base import make_base
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.merge_end import conclude, finished_merge, identity_of_user
from coordinate_agents.worktrees.mid_merge import open_merge, scene_of
from coordinate_agents.worktrees.model import CommitId, FinishedMerge, Head, MergeConflict, MergeEnding, Worktree
from coordinate_agents.worktrees.resolutions import parents_of

SLUG = "+resolve-d"
ANN = MergeEnding("Ann User", "ann@example.org")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


class Conflict:
    """Two heads that do not merge, and the worktree in which a person merges them."""

    def __init__(self, bench: Bench, base: CommitId, heads: list[Head]) -> None:
        self.bench, self.base, self.heads = bench, base, heads
        made = make_base(bench.judge, GRAPH, "d", base, heads)
        assert isinstance(made, MergeConflict)
        self.conflict = made
        self.root = str(bench.place / "resolving")
        self.worktree = self.open(made)
        self.path = Path(self.worktree.path)

    def open(self, conflict: MergeConflict) -> Worktree:
        judge, frozen = self.bench.judge, self.bench.frozen
        return open_merge(judge, GRAPH, SLUG, self.base, conflict, root=self.root, frozen=frozen)

    def end(self, ending: MergeEnding = ANN) -> FinishedMerge:
        scene = scene_of(self.bench.judge, self.base, self.conflict.ours, self.conflict.theirs)
        return finished_merge(self.bench.judge, self.worktree, scene, ending, frozen=self.bench.frozen)

    def refused(self) -> str:
        before = self.seen()
        with pytest.raises(WorktreeError) as caught:
            self.end()
        assert caught.value.code == "DIRTY_WORKTREE"
        assert self.seen() == before
        return caught.value.message

    def seen(self) -> tuple[str, ...]:
        return git(self.path, "status", "--porcelain", "--branch"), git(self.path, "rev-parse", "HEAD")

    def write(self, name: str, text: str, *, added: bool = True) -> None:
        (self.path / name).write_text(text)
        if added:
            git(self.path, "add", "--", name)

    def commit(self) -> None:
        git(self.path, "commit", "-q", "--no-edit", "--allow-empty")


def in_f(bench: Bench) -> Conflict:
    base = bench.head()
    left = bench.head_of("a", base, {"f": "one\n", "a": "1\n"})
    return Conflict(bench, base, [left, bench.head_of("b", base, {"f": "two\n", "b": "2\n"})])


def merged_by_git(bench: Bench, heads: list[Head]) -> Path:
    """Where git's own merge of the two stops."""
    plain = bench.place / "plain"
    git(bench.repo, "worktree", "add", "-q", "--detach", str(plain), heads[0].commit)
    with pytest.raises(subprocess.CalledProcessError):
        git(plain, "merge", "-q", heads[1].commit)
    return plain


def test_worktree_stands_where_git_merge_would_leave_it(bench: Bench) -> None:
    made = in_f(bench)
    a, b = made.heads
    plain = merged_by_git(bench, made.heads)

    assert (made.path / "f").read_text() == (
        f"<<<<<<< a ({a.commit[:12]})\none\n=======\ntwo\n>>>>>>> b ({b.commit[:12]})\n"
    )
    assert git(made.path, "rev-parse", "HEAD", "MERGE_HEAD").split() == [a.commit, b.commit]
    assert git(made.path, "branch", "--show-current") == f"coordinate-agents/{GRAPH}/{SLUG}"
    assert git(made.path, "status", "--porcelain").splitlines() == ["A  b", "AA f"]
    for asked in (["ls-files", "--stage"], ["status", "--porcelain"], ["diff", "--name-status"]):
        assert git(made.path, *asked) == git(plain, *asked)


def test_modified_on_one_side_and_deleted_on_the_other_stands_as_git_leaves_it(bench: Bench) -> None:
    base = bench.commit("f", "old\n")
    tree = git(bench.repo, "rev-parse", f"{base}~1^{{tree}}")
    gone = Head("b", git(bench.repo, "commit-tree", tree, "-p", base, "-m", "gone"))
    made = Conflict(bench, base, [bench.head_of("a", base, {"f": "changed\n"}), gone])
    plain = merged_by_git(bench, made.heads)

    for asked in (["ls-files", "--stage"], ["status", "--porcelain"], ["diff", "--name-status"]):
        assert git(made.path, *asked) == git(plain, *asked)
    assert (made.path / "f").read_text() == "changed\n"
    git(made.path, "rm", "-q", "f")
    assert git(bench.repo, "ls-tree", "--name-only", made.end().commit) == "README.md"


def test_users_own_commands_finish_it(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")
    made.commit()

    done = made.end()

    assert done == FinishedMerge(git(made.path, "rev-parse", "HEAD"), "person")
    conclude(bench.judge, made.worktree, made.conflict.ours, done.commit)
    assert made.seen() == (f"## coordinate-agents/{GRAPH}/{SLUG}", done.commit)


def test_merge_that_was_only_added_is_committed_in_the_persons_name(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")

    done = made.end()
    conclude(bench.judge, made.worktree, made.conflict.ours, done.commit)
    conclude(bench.judge, made.worktree, made.conflict.ours, done.commit)

    assert done.made_by == "runtime"
    assert parents_of(bench.judge, done.commit) == [head.commit for head in made.heads]
    shown = git(made.path, "log", "-1", "--format=%an <%ae>|%s|%b", "HEAD")
    assert shown == "Ann User <ann@example.org>|Merge subtask b|After: a"
    assert git(made.path, "show", "HEAD:f") == "both"
    assert made.seen() == (f"## coordinate-agents/{GRAPH}/{SLUG}", done.commit)
    assert git(made.path, "status").splitlines()[-1] == "nothing to commit, working tree clean"


def test_paths_in_conflict_are_named(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n", added=False)

    assert "f is not resolved yet" in made.refused()


def test_markers_that_were_left_are_named_and_may_be_allowed(bench: Bench) -> None:
    made = in_f(bench)
    git(made.path, "add", "f")

    assert "f still has conflict markers" in made.refused()
    done = made.end(MergeEnding("Ann User", "ann@example.org", keeps_markers=True))
    assert "<<<<<<<" in git(bench.repo, "show", f"{done.commit}:f")


def test_underlined_heading_is_no_marker(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "Heading\n=======\n")

    assert made.end().made_by == "runtime"


def test_change_that_was_not_added_or_committed_is_refused(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")
    made.write("f", "both, better\n", added=False)
    assert "what is in f was not added" in made.refused()

    made.write("f", "both\n")
    made.commit()
    made.write("README.md", "later\n", added=False)
    assert "what is in README.md was not committed" in made.refused()


def test_commit_of_other_parents_is_refused(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")
    made.commit()
    git(made.path, "commit", "-q", "--allow-empty", "-m", "one more")
    assert "is not the one merge of" in made.refused()

    git(made.path, "reset", "-q", "--hard", made.conflict.ours)
    assert "was taken back" in made.refused()


def test_other_head_and_a_lock_are_refused(bench: Bench) -> None:
    made = in_f(bench)
    lock = Path(ownership.admin_dir(bench.judge.facts, made.worktree), "index.lock")
    lock.touch()
    assert "index.lock is in the way" in made.refused()
    lock.unlink()
    git(made.path, "checkout", "-q", "-f", "--detach", "HEAD")
    assert "its HEAD is detached" in made.refused()


def test_changes_beside_the_conflict_belong_to_the_answer_and_are_named(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")
    made.write("README.md", "told\n")
    made.write("new", "new\n")
    made.write("left", "untracked\n", added=False)

    done = made.end()

    assert (done.others, done.untracked) == (("README.md", "new"), ("left",))
    assert (made.path / "left").read_text() == "untracked\n"


def test_open_again_leaves_what_the_person_did(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "half way\n")
    assert made.open(made.conflict) == made.worktree
    assert (made.path / "f").read_text() == "half way\n"

    made.commit()
    assert made.open(made.conflict) == made.worktree
    assert git(made.path, "show", "HEAD:f") == "half way"


def test_merge_that_was_taken_back_is_opened_again(bench: Bench) -> None:
    made = in_f(bench)
    git(made.path, "merge", "--abort")

    made.open(made.conflict)

    assert git(made.path, "status", "--porcelain").splitlines() == ["A  b", "AA f"]


def test_next_conflict_takes_the_same_worktree(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")
    done = made.end()
    conclude(bench.judge, made.worktree, made.conflict.ours, done.commit)
    c = bench.head_of("c", made.base, {"f": "three\n"})
    following = make_base(bench.judge, GRAPH, "d", made.base, [*made.heads, c], resolutions=[done.commit])
    assert isinstance(following, MergeConflict)
    assert (following.ours, following.theirs) == (done.commit, c.commit)

    again = made.open(following)

    assert again.path == made.worktree.path
    assert (made.path / "f").read_text().startswith(f"<<<<<<< a + b ({done.commit[:12]})\nboth\n")
    assert git(made.path, "rev-parse", "HEAD", "MERGE_HEAD").split() == [done.commit, c.commit]


def test_identity_is_the_users_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    git(bench.repo, "config", "user.name", "Ann User")
    git(bench.repo, "config", "user.email", "ann@example.org")
    assert identity_of_user(bench.judge.facts) == ("Ann User", "ann@example.org")
    git(bench.repo, "config", "--unset", "user.email")
    git(bench.repo, "config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert identity_of_user(bench.judge.facts) is None
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ann@elsewhere.org")
    assert identity_of_user(bench.judge.facts) == ("Ann User", "ann@elsewhere.org")


def give_up(made: Conflict) -> CommitId | None:
    judge, frozen = made.bench.judge, made.bench.frozen
    return giving_up.give_up(judge, GRAPH, SLUG, made.worktree, made.conflict.ours, frozen=frozen)


def test_merge_that_is_given_up_is_kept_and_the_worktree_is_clean(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "half way\n", added=False)
    made.write("added", "1\n")
    made.write("left", "2\n", added=False)

    kept = give_up(made)

    assert kept is not None
    names = git(bench.repo, "ls-tree", "-r", "--name-only", kept).split()
    assert names == ["README.md", "a", "added", "b", "f", "left"]
    assert git(bench.repo, "show", f"{kept}:f") == "half way"
    assert git(bench.repo, "for-each-ref", "--points-at", kept, "--format=%(refname)").endswith(f"{SLUG}/discard-1")
    assert made.seen() == (f"## coordinate-agents/{GRAPH}/{SLUG}\n?? left", made.conflict.ours)
    assert sorted(path.name for path in made.path.iterdir()) == [".git", "README.md", "a", "f", "left"]
    assert (made.path / "f").read_text() == "one\n"
    made.open(made.conflict)
    assert git(made.path, "status", "--porcelain").splitlines() == ["A  b", "AA f", "?? left"]


def test_commit_of_a_merge_that_is_given_up_is_kept(bench: Bench) -> None:
    made = in_f(bench)
    made.write("f", "both\n")
    made.commit()
    commit = git(made.path, "rev-parse", "HEAD")

    assert give_up(made) is None

    assert made.seen() == (f"## coordinate-agents/{GRAPH}/{SLUG}", made.conflict.ours)
    assert f"{SLUG}/kept-" in git(bench.repo, "for-each-ref", "--points-at", commit, "--format=%(refname)")


def test_branch_that_outlived_worktree_and_record_is_known(bench: Bench) -> None:
    made = in_f(bench)
    git(bench.repo, "worktree", "remove", "--force", "--force", str(made.path))
    ownership.forget_record(bench.judge.facts, GRAPH, SLUG)
    again = bench.head_of("a", made.base, {"f": "again\n"})
    following = make_base(bench.judge, GRAPH, "d", made.base, [again, made.heads[1]])
    assert isinstance(following, MergeConflict)

    worktree = made.open(following)

    assert git(worktree.path, "rev-parse", "HEAD", "MERGE_HEAD").split() == [again.commit, made.heads[1].commit]
