"""Many starts at once on one repository, from threads and processes, beside a user who prunes: none fails."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repos import git, make_repo

from coordinate_agents.worktrees.worktrees import GitWorktrees

STARTER = """
import sys
from coordinate_agents.worktrees.worktrees import GitWorktrees
repo, root, base, name = sys.argv[1:]
with GitWorktrees.open(repo) as trees:
    for number in range(4):
        made = trees.create("g1", f"{name}-{number}", base, root=root)
        assert trees.is_intact(made) is None
        trees.keep("g1", f"{name}-{number}", made)
        trees.remove_pristine(trees.pristine("g1", f"{name}-{number}", base, root=root))
"""


@contextlib.contextmanager
def user_beside(repo: Path) -> Iterator[list[str]]:
    """A user whose own commands must not fail either; their errors are collected."""
    stop = threading.Event()
    failed: list[str] = []

    def work() -> None:
        while not stop.is_set():
            for args in (["worktree", "prune"], ["gc", "-q"], ["pack-refs", "--all"], ["status", "--porcelain"]):
                done = subprocess.run(["git", *args], cwd=repo, capture_output=True, text=True)
                if done.returncode != 0:
                    failed.append(done.stderr)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield failed
    finally:
        stop.set()
        thread.join(60)


def test_starts_of_threads_and_processes_all_succeed_beside_prune_and_gc(repo: Path, root: str) -> None:
    base = git(repo, "rev-parse", "HEAD")
    before = git(repo, "rev-parse", "main")
    with user_beside(repo):
        children = [
            subprocess.Popen(
                [sys.executable, "-c", STARTER, str(repo), root, base, f"p{number}"], stderr=subprocess.PIPE
            )
            for number in range(4)
        ]
        with GitWorktrees.open(str(repo)) as trees, ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda n: trees.create("g1", f"t-{n}", base, root=root), range(16)))
        errors = [child.communicate(timeout=100)[1].decode() for child in children]

    assert errors == [""] * 4
    with GitWorktrees.open(str(repo)) as trees:
        assert [trees.is_intact(worktree) for worktree in made] == [None] * 16
        assert trees.left_pristine("g1") == ()
    assert git(repo, "worktree", "list", "--porcelain").count("locked coordinate-agents") == 32
    assert len(git(repo, "branch", "--list", "coordinate-agents/*").splitlines()) == 32
    assert git(repo, "rev-parse", "main") == before


def test_starts_from_a_remote_branch_write_no_configuration_and_leave_no_orphan(
    repo: Path, root: str, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", str(repo), "clone")
    clone = tmp_path / "clone"
    config = (clone / ".git/config").read_bytes()
    with GitWorktrees.open(str(clone)) as trees:
        base = trees.resolve("origin/main")
        with ThreadPoolExecutor(12) as pool:
            made = list(pool.map(lambda n: trees.create("g1", f"s{n}", base, root=root), range(12)))
        assert [trees.is_intact(worktree) for worktree in made] == [None] * 12
    assert (clone / ".git/config").read_bytes() == config
    assert len(git(clone, "for-each-ref", "refs/heads/coordinate-agents").splitlines()) == 12


def test_pins_of_many_threads_take_each_number_once(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    commits = [git(repo, "commit-tree", tree, "-m", str(number)) for number in range(24)]
    with GitWorktrees.open(str(repo)) as trees, ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda oid: trees.pin("g1", "api", "kept", oid), commits))
        again = list(pool.map(lambda oid: trees.pin("g1", "api", "kept", oid), commits))
        refs = trees.runtime_refs("g1")
    assert again == names
    assert {refs[name] for name in names} == set(commits)
    assert sorted(names) == sorted(f"refs/coordinate-agents/g1/api/kept-{n}" for n in range(1, 25))
