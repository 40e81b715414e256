"""Files that are brought into a worktree: once, whole, and again without harm."""

from pathlib import Path

import pytest
from repos import commit_file, git

from coordinate_agents.worktrees.bring import UNFINISHED
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import Worktree
from coordinate_agents.worktrees.worktrees import GitWorktrees


def _made(trees: GitWorktrees, repo: Path, root: str) -> Worktree:
    return trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root, nonce="n1")


@pytest.fixture
def brought(repo: Path) -> Path:
    """The checkout with an ignored file, a folder and a large folder to link."""
    commit_file(repo, ".gitignore", ".env\nconf\nmodules\n")
    (repo / ".env").write_text("SECRET=1\n")
    (repo / "conf").mkdir()
    (repo / "conf" / "a").write_text("a\n")
    (repo / "modules").mkdir()
    return repo


def test_a_second_attempt_keeps_what_the_first_one_brought_and_changed(brought: Path, root: str) -> None:
    with GitWorktrees.open(str(brought)) as trees:
        made = _made(trees, brought, root)
        first = trees.bring(made, copy=(".env", "conf", "absent"), link=("modules",))
        (Path(made.path) / ".env").write_text("SECRET=2\n")

        again = trees.bring(made, copy=(".env", "conf", "absent"), link=("modules",))

        assert (first, again) == ((".env", "conf", "modules"), ())
        assert (Path(made.path) / ".env").read_text() == "SECRET=2\n"
        assert (Path(made.path) / "conf" / "a").read_text() == "a\n"
        assert (Path(made.path) / "modules").readlink() == brought / "modules"
        assert git(made.path, "status", "--porcelain") == ""


def test_a_copy_that_was_killed_half_way_is_made_whole(brought: Path, root: str) -> None:
    with GitWorktrees.open(str(brought)) as trees:
        made = _made(trees, brought, root)
        (Path(made.path) / f"{UNFINISHED}.env").write_text("SEC")
        (Path(made.path) / f"{UNFINISHED}conf").mkdir()

        trees.bring(made, copy=(".env", "conf"), link=())

        assert (Path(made.path) / ".env").read_text() == "SECRET=1\n"
        assert (Path(made.path) / "conf" / "a").read_text() == "a\n"
        assert git(made.path, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["tracked.txt", "folder"])
def test_what_the_base_has_is_not_brought(brought: Path, root: str, name: str) -> None:
    commit_file(brought, "tracked.txt", "base\n")
    (brought / "folder").mkdir()
    commit_file(brought, "folder/x", "base\n")
    with GitWorktrees.open(str(brought)) as trees:
        made = _made(trees, brought, root)
        with pytest.raises(WorktreeError) as refused:
            trees.bring(made, copy=(name,), link=())
    assert (refused.value.code, refused.value.message) == ("SETUP_FAILED", f"cannot bring {name}: the base has it.")
