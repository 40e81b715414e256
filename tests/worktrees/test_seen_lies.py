"""Lies that an agent can put into the shared git dir: plain git believes them, the judge does not."""

import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench, agent
from repos import git, make_repo

from coordinate_agents.worktrees.base import contains, make_base
from coordinate_agents.worktrees.model import DirtyPath, MergeConflict


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit("f", "one\n")
    yield bench
    bench.close()


def orphan(bench: Bench) -> str:
    return git(bench.repo, "commit-tree", git(bench.repo, "rev-parse", "HEAD^{tree}"), "-m", "orphan")


def is_ancestor(bench: Bench, ancestor: str, commit: str) -> bool:
    asked = ["git", "merge-base", "--is-ancestor", ancestor, commit]
    return subprocess.run(asked, cwd=bench.repo, capture_output=True).returncode == 0


def test_graft_makes_no_descendant(bench: Bench) -> None:
    worktree = bench.worktree()
    lone = orphan(bench)
    (bench.repo / ".git" / "info" / "grafts").write_text(f"{lone} {worktree.base}\n")
    agent(worktree, f"git reset -q --hard {lone}")
    assert is_ancestor(bench, worktree.base, lone)

    assert not bench.examine(worktree).base_is_ancestor
    assert contains(bench.judge, lone, [worktree.base]) == (worktree.base,)


def test_replace_ref_makes_no_descendant(bench: Bench) -> None:
    worktree = bench.worktree()
    lone = orphan(bench)
    tree = git(bench.repo, "rev-parse", "HEAD^{tree}")
    child = git(bench.repo, "commit-tree", tree, "-p", worktree.base, "-m", "child")
    agent(worktree, f"git reset -q --hard {lone}; git replace {lone} {child}")
    assert is_ancestor(bench, worktree.base, lone)

    assert not bench.examine(worktree).base_is_ancestor
    assert contains(bench.judge, lone, [worktree.base]) == (worktree.base,)


def test_replaced_blob_shows_its_true_content(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git replace $(git rev-parse HEAD:f) $(echo two | git hash-object -w --stdin); echo two > f")

    assert bench.examine(worktree).dirty == (DirtyPath("f", "modified"),)


def test_forged_commit_graph_makes_no_descendant(bench: Bench) -> None:
    worktree = bench.worktree()
    lone = orphan(bench)
    tree = git(bench.repo, "rev-parse", "HEAD^{tree}")
    child = git(bench.repo, "commit-tree", tree, "-p", worktree.base, "-m", "child")
    # A commit-graph that was written while the object said something else.
    objects = bench.repo / ".git" / "objects"
    honest = (objects / lone[:2] / lone[2:]).read_bytes()
    forged = zlib.decompress((objects / child[:2] / child[2:]).read_bytes())
    path = objects / lone[:2] / lone[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(forged))
    git(bench.repo, "branch", "lone", child)
    (bench.repo / ".git" / "refs" / "heads" / "lone").write_text(f"{lone}\n")
    git(bench.repo, "commit-graph", "write", "--reachable")
    path.write_bytes(honest)
    agent(worktree, f"git reset -q --hard {lone}")
    assert worktree.base in git(bench.repo, "rev-list", lone).split()

    assert not bench.examine(worktree).base_is_ancestor
    assert contains(bench.judge, lone, [worktree.base]) == (worktree.base,)


def test_forged_index_entry_hides_no_change(bench: Bench) -> None:
    worktree = bench.worktree()
    # The index takes the stat data of the changed file together with the blob of the unchanged one.
    agent(
        worktree,
        "git config core.trustctime false; git config core.checkStat minimal; touch -d '2020-01-01' f;"
        " git update-index --refresh; printf 'two\\n' > f; touch -d '2020-01-01' f",
    )
    assert git(worktree.path, "status", "--porcelain") == ""

    assert bench.examine(worktree).dirty == (DirtyPath("f", "modified"),)


def test_settings_that_hide_untracked_files_hide_nothing(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git config status.showUntrackedFiles no; git config core.fileMode false; echo > new; chmod +x f")
    assert git(worktree.path, "status", "--porcelain") == ""

    assert bench.examine(worktree).dirty == (DirtyPath("f", "modified"), DirtyPath("new", "untracked"))


def test_sparse_checkout_of_the_agent_hides_no_deletion(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git sparse-checkout set --no-cone /README.md")
    assert git(worktree.path, "status", "--porcelain") == ""

    assert bench.examine(worktree).dirty == (DirtyPath("f", "deleted"),)


def test_replaced_git_file_leads_to_no_other_repository(bench: Bench, tmp_path: Path) -> None:
    worktree = bench.worktree()
    other = make_repo(tmp_path / "other")
    Path(worktree.path, ".git").write_text(f"gitdir: {other / '.git'}\n")
    assert git(worktree.path, "rev-parse", "HEAD") == git(other, "rev-parse", "HEAD")

    seen = bench.examine(worktree)

    assert (seen.head, seen.head_state) == (None, "damaged")


def test_registration_that_points_elsewhere_is_damaged(bench: Bench, tmp_path: Path) -> None:
    worktree = bench.worktree()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(worktree.path, elsewhere)
    (bench.repo / ".git" / "worktrees" / worktree.admin_name / "gitdir").write_text(f"{elsewhere}/.git\n")

    assert bench.examine(worktree).head_state == "damaged"


def test_shallow_file_of_the_agent_cuts_no_history(bench: Bench) -> None:
    old = git(bench.repo, "rev-parse", "HEAD~1")
    worktree = bench.worktree()
    agent(worktree, "echo two > f; git commit -qam x")
    (bench.repo / ".git" / "shallow").write_text(f"{worktree.base}\n")
    assert not is_ancestor(bench, old, worktree.base)

    seen = bench.examine(worktree)

    assert (seen.base_is_ancestor, seen.commit_count) == (True, 1)
    assert contains(bench.judge, worktree.base, [old]) == ()


def test_same_commits_merge_one_way_though_plain_git_merges_them_in_several(bench: Bench) -> None:
    bench.commit("dir/one", "".join(f"{n}\n" for n in range(20)))
    base = bench.commit("dir/two", "".join(f"x{n}\n" for n in range(20)))
    git(bench.repo, "mv", "dir", "moved")
    git(bench.repo, "commit", "-qm", "move")
    moved = bench.head()
    git(bench.repo, "reset", "-q", "--hard", base)
    (bench.repo / ".git" / "info" / "attributes").write_text("f merge=union\n")
    added = bench.head_of("b", base, {"dir/three": "new\n"})
    plain = set()
    made = set()
    for value in ("true", "false", "conflict"):
        git(bench.repo, "config", "merge.directoryRenames", value)
        plain.add(
            subprocess.run(
                ["git", "merge-tree", "--write-tree", "--no-messages", moved, added.commit],
                cwd=bench.repo,
                capture_output=True,
                env=dict(os.environ),
            ).stdout
        )
        result = make_base(bench.judge, GRAPH, "d", base, [type(added)("a", moved), added])
        assert not isinstance(result, MergeConflict)
        made.add(result.commit)

    assert len(plain) > 1
    assert len(made) == 1
    names = git(bench.repo, "ls-tree", "-r", "--name-only", made.pop()).split()
    assert names == ["README.md", "dir/three", "f", "moved/one", "moved/two"]
