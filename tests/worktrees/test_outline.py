"""The doctor's picture of a repository is the same from the library and from the program."""

import subprocess
import sys
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.outline import Outline, by_library, by_program, outline
from coordinate_agents.worktrees.repository import open_repository


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("detached", [False, True])
def test_outline_of_a_repository(tmp_path: Path, object_format: str, detached: bool) -> None:
    repo = make_repo(tmp_path / "a b", object_format=object_format)
    git(repo, "branch", "feature/x")
    git(repo, "tag", "v1")
    git(repo, "tag", "-a", "v2", "-m", "v2")
    git(repo, "remote", "add", "origin", "https://example.org/x.git")
    git(repo, "remote", "add", "my.fork", "https://example.org/y.git")
    git(repo, "config", "filter.lfs.process", "no-such-git-lfs filter-process")
    git(repo, "config", "filter.rot.clean", "tr a-z n-za-m")
    git(repo, "pack-refs", "--all")
    git(repo, "checkout", "-q", *(["--detach"] if detached else ["feature/x"]))

    assert outline(open_repository(str(repo))) == Outline(
        branch=None if detached else "feature/x",
        remotes=("my.fork", "origin"),
        branches=2,
        tags=2,
        filters=("lfs", "rot"),
        missing_filters=("lfs",),
    )


def test_library_and_program_agree_also_in_a_linked_worktree(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    commit_file(repo, "b.txt", "b\n")
    for root in (repo, tmp_path / "linked"):
        facts = open_repository(str(root))
        assert by_library(facts) == by_program(facts)
        assert by_program(facts).branch == ("main" if root == repo else "side")


def test_inherited_git_variables_do_not_mislead(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_repo(tmp_path / "other")
    git(other, "branch", "wrong")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    facts = open_repository(str(repo))
    assert outline(facts) == by_program(facts) == Outline("main", (), branches=1, tags=0)


def test_library_is_not_imported_on_the_way_of_a_run() -> None:
    code = "import sys, coordinate_agents.worktrees.worktrees, coordinate_agents.worktrees.outline\n"
    code += "print(sorted({'git', 'anyio', 'asyncio', 'networkx', 'pydantic', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
