"""Where the program is started: subfolder, Runtime worktree, .git, outside, submodule, through a link."""

import subprocess
from pathlib import Path

import pytest
from world import PROGRAM, World, commit_file, git, make_repo

from coordinate_agents.cli.discover import discover
from coordinate_agents.graph.errors import GraphError

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"


def _call(world: World, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words], cwd=folder, env=world.environment, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def ran(world: World) -> World:
    done = world.run("run", world.graph(PLAN))
    assert done.code == 0, str(done)
    return world


def test_every_way_into_the_repository_leads_to_the_same_graph(ran: World, tmp_path: Path) -> None:
    deep = ran.root / "sub" / "dir"
    deep.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(ran.root)
    worktree = Path(ran.run("path", "plan", "a").out.strip())
    admin = next((ran.root / ".git" / "worktrees").iterdir())
    for folder in (ran.root, deep, ran.root / ".git", ran.root / ".git" / "refs", link, link / "sub", worktree, admin):
        done = _call(ran, folder, "status", "--json")
        assert '"id": "plan"' in done.stdout, f"{folder}: {done}"
        place = discover(str(folder))
        assert (place.root, place.common_dir) == (str(ran.root), str(ran.root / ".git")), folder


def test_a_run_inside_a_runtime_worktree_is_refused_unless_nested(ran: World) -> None:
    worktree = Path(ran.run("path", "plan", "a").out.strip())
    done = _call(ran, worktree, "run", "plan")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"AGENT_MAY_NOT: {worktree} is a worktree that the Runtime made; a run started here would work on {ran.root}.",
        "Kept: everything as it is",
        f"Next: cd {ran.root} first, or add --nested",
    ]
    assert _call(ran, worktree, "run", "plan", "--nested").returncode == 0


def test_outside_a_repository_is_one_clear_line(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    done = _call(world, outside, "run", str(world.graph(PLAN)))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"NOT_A_REPOSITORY: {outside} is not inside a git repository.",
        "Kept: everything as it is",
        "Next: change into the repository, or name it with --root DIR",
    ]


def test_a_root_that_does_not_exist_is_named(world: World) -> None:
    done = world.run("status", "--root", "/nowhere/at/all")
    assert (done.code, done.err.splitlines()[0]) == (1, "NOT_A_REPOSITORY: /nowhere/at/all does not exist.")


def test_verbs_that_need_no_repository_work_outside(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for words in (("validate", str(world.graph(PLAN))), ("schema",), ("init",)):
        assert _call(world, outside, *words).returncode == 0, words


def test_a_submodule_is_a_repository_of_its_own(world: World, tmp_path: Path) -> None:
    library = make_repo(tmp_path / "library")
    git(world.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    module = world.root / ".git" / "modules" / "lib"
    for folder in (world.root / "lib", module):
        place = discover(str(folder))
        assert (place.root, place.git_dir, place.common_dir) == (str(world.root / "lib"), str(module), str(module))


def test_a_linked_worktree_of_the_user_is_the_root_and_shares_the_state(world: World, tmp_path: Path) -> None:
    linked = tmp_path / "linked tree"
    git(world.root, "worktree", "add", "-q", "-b", "linked", str(linked))
    place = discover(str(linked))
    assert (place.root, place.common_dir, place.runtime_worktree) == (str(linked), str(world.root / ".git"), None)


def test_a_bare_repository_is_its_own_root(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    assert discover(str(bare / "refs")).root == str(bare)


def test_a_path_with_a_newline_is_found(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "two\nlines")
    commit_file(root, "sub/file", "x")
    assert discover(str(root / "sub")).root == str(root)


def test_a_git_file_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(GraphError) as caught:
        discover(str(tmp_path))
    assert (caught.value.code, str(caught.value)) == (
        "NOT_A_REPOSITORY",
        f"{tmp_path}/.git does not lead to a git folder.",
    )
