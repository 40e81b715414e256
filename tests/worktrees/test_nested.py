"""Repositories inside a worktree (cases GT-09, GT-10)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench, agent
from repos import commit_file, git

from coordinate_agents.worktrees.model import DirtyPath, Worktree

FILE_TRANSPORT = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    commit_file(path, "code", "1\n")
    return path


@pytest.fixture
def with_submodule(bench: Bench, library: Path) -> Worktree:
    """A worktree whose base has the submodule `sub`, not populated there."""
    env = {**os.environ, **FILE_TRANSPORT}
    git(bench.repo, "submodule", "add", "-q", str(library), "sub", env=env)
    git(bench.repo, "commit", "-qm", "add sub")
    return bench.worktree()


def update(worktree: Worktree, script: str = "true") -> None:
    agent(worktree, f"git submodule update -q --init && {script}", **FILE_TRANSPORT)


def dirt(bench: Bench, worktree: Worktree) -> tuple[DirtyPath, ...]:
    return bench.examine(worktree).dirty


def test_scaffolded_repository_that_was_added_as_a_link_is_nested(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(
        worktree,
        "git init -q app && echo s > app/s && git -C app add s && git -C app commit -qm in"
        " && git add -A 2> /dev/null && git commit -qm app",
    )

    seen = bench.examine(worktree)

    assert seen.dirty == (DirtyPath("app", "nested"),)
    assert Path(worktree.path, "app", "s").read_text() == "s\n"


def test_link_without_declaration_stays_nested_when_its_folder_is_gone(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(
        worktree,
        "git init -q app && git -C app commit -q --allow-empty -m in && git add -A 2> /dev/null && git commit -qm app"
        " && rm -rf app/.git",
    )

    assert dirt(bench, worktree) == (DirtyPath("app", "nested"),)


@pytest.mark.parametrize("commit", ["true", "git -C app commit -q --allow-empty -m in"])
def test_untracked_repository_is_nested(bench: Bench, commit: str) -> None:
    worktree = bench.worktree()
    agent(worktree, f"git init -q app && echo > app/x && {commit}")

    assert dirt(bench, worktree) == (DirtyPath("app", "nested"),)


def test_repository_made_around_tracked_files_is_nested(bench: Bench) -> None:
    bench.commit("src/main", "1\n")
    worktree = bench.worktree()
    agent(worktree, "git init -q src")

    assert DirtyPath("src", "nested") in dirt(bench, worktree)


def test_git_file_that_leads_nowhere_is_nested(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "mkdir odd; echo junk > odd/.git")

    assert dirt(bench, worktree) == (DirtyPath("odd", "nested"),)


def test_repository_in_an_ignored_folder_with_own_commits_is_nested(bench: Bench) -> None:
    bench.commit(".gitignore", "build/\n")
    worktree = bench.worktree()
    agent(worktree, "git init -q build/app; git -C build/app commit -q --allow-empty -m mine")

    assert dirt(bench, worktree) == (DirtyPath("build/app", "nested"),)


def test_download_in_an_ignored_folder_is_left_alone(bench: Bench, library: Path) -> None:
    bench.commit(".gitignore", "build/\n")
    git(library, "tag", "-a", "-m", "v1", "v1")
    worktree = bench.worktree()
    agent(worktree, f"git clone -q {library} build/dep; git -C build/dep checkout -q --detach v1")

    assert dirt(bench, worktree) == ()

    agent(worktree, "git -C build/dep commit -q --allow-empty -m mine")
    assert dirt(bench, worktree) == (DirtyPath("build/dep", "nested"),)


def test_download_at_an_older_commit_is_left_alone(bench: Bench, library: Path) -> None:
    bench.commit(".gitignore", "build/\n")
    old = git(library, "rev-parse", "HEAD")
    commit_file(library, "code", "2\n")
    worktree = bench.worktree()
    agent(worktree, f"git clone -q {library} build/dep; git -C build/dep checkout -q --detach {old}")

    assert dirt(bench, worktree) == ()


def test_own_commit_with_an_own_tag_in_a_download_is_nested(bench: Bench, library: Path) -> None:
    bench.commit(".gitignore", "build/\n")
    worktree = bench.worktree()
    agent(worktree, f"git clone -q {library} build/dep; cd build/dep; git commit -q --allow-empty -m x; git tag mine")

    assert dirt(bench, worktree) == (DirtyPath("build/dep", "nested"),)


def test_clone_outside_ignored_folders_is_nested_though_it_is_saved(bench: Bench, library: Path) -> None:
    worktree = bench.worktree()
    agent(worktree, f"git clone -q {library} dep")

    assert dirt(bench, worktree) == (DirtyPath("dep", "nested"),)


def test_submodule_that_was_not_populated_is_clean(bench: Bench, with_submodule: Worktree) -> None:
    assert dirt(bench, with_submodule) == ()


def test_submodule_at_its_commit_is_clean(bench: Bench, with_submodule: Worktree) -> None:
    update(with_submodule)

    assert Path(with_submodule.path, "sub", "code").exists()
    assert dirt(bench, with_submodule) == ()


@pytest.mark.parametrize(
    "change",
    [
        "echo x > sub/new",
        "echo x > sub/code",
        "rm sub/code",
        "git -C sub update-index --skip-worktree code; echo >> sub/code",
    ],
)
def test_changed_file_in_a_submodule_is_dirt(bench: Bench, with_submodule: Worktree, change: str) -> None:
    update(with_submodule, change)

    assert dirt(bench, with_submodule) == (DirtyPath("sub", "submodule"),)


def test_submodule_commit_that_is_not_recorded_is_dirt(bench: Bench, with_submodule: Worktree) -> None:
    update(with_submodule, "git -C sub commit -q --allow-empty -m mine")

    assert dirt(bench, with_submodule) == (DirtyPath("sub", "submodule"),)


def test_recorded_submodule_commit_that_exists_only_in_the_worktree_is_dirt(
    bench: Bench, with_submodule: Worktree
) -> None:
    update(with_submodule, "echo 2 > sub/code; git -C sub commit -qam mine; git add sub; git commit -qm bump")

    assert dirt(bench, with_submodule) == (DirtyPath("sub", "submodule"),)


def test_recorded_submodule_commit_that_was_pushed_is_clean(
    bench: Bench, with_submodule: Worktree, library: Path
) -> None:
    update(
        with_submodule,
        "echo 2 > sub/code; git -C sub commit -qam mine; git -C sub push -q origin HEAD:refs/heads/mine;"
        " git add sub; git commit -qm bump",
    )

    assert dirt(bench, with_submodule) == ()


def test_commit_left_beside_in_a_submodule_is_dirt(bench: Bench, with_submodule: Worktree) -> None:
    update(
        with_submodule,
        "git -C sub checkout -qb x; git -C sub commit -q --allow-empty -m mine; git -C sub checkout -q -",
    )

    assert dirt(bench, with_submodule) == (DirtyPath("sub", "submodule"),)


def test_program_in_a_submodules_configuration_does_not_run(
    bench: Bench, with_submodule: Worktree, tmp_path: Path
) -> None:
    mark = tmp_path / "PWN"
    update(with_submodule, f"git -C sub config core.fsmonitor 'touch {mark}'")

    assert dirt(bench, with_submodule) == ()
    assert not mark.exists()
    git(Path(with_submodule.path, "sub"), "status", "--porcelain")
    assert mark.exists()


def test_nested_repository_is_named_though_more_dirt_than_the_limit_comes_first(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "for n in 1 2 3 4; do echo > a$n; done; git init -q z")

    seen = bench.examine(worktree, dirty_limit=2)

    assert (seen.dirty, seen.dirty_count) == ((DirtyPath("a1", "untracked"), DirtyPath("z", "nested")), 5)


@pytest.fixture
def with_deep_submodule(bench: Bench, library: Path, tmp_path: Path) -> Worktree:
    """A worktree whose submodule `sub` has a submodule `inner`, both populated."""
    env = {**os.environ, **FILE_TRANSPORT}
    middle = tmp_path / "middle"
    middle.mkdir()
    git(middle, "init", "-q", "-b", "main")
    git(middle, "submodule", "add", "-q", str(library), "inner", env=env)
    commit_file(middle, ".gitignore", "*.log\n")
    git(bench.repo, "submodule", "add", "-q", str(middle), "sub", env=env)
    git(bench.repo, "commit", "-qm", "add sub")
    worktree = bench.worktree()
    agent(worktree, "git submodule update -q --init --recursive", **FILE_TRANSPORT)
    return worktree


def test_submodule_in_a_submodule_is_clean(bench: Bench, with_deep_submodule: Worktree) -> None:
    assert Path(with_deep_submodule.path, "sub", "inner", "code").exists()
    agent(with_deep_submodule, "touch sub/a.log")

    assert dirt(bench, with_deep_submodule) == ()


@pytest.mark.parametrize("change", ["echo > sub/inner/new", "git -C sub/inner commit -q --allow-empty -m mine"])
def test_change_in_a_submodule_of_a_submodule_is_dirt(bench: Bench, with_deep_submodule: Worktree, change: str) -> None:
    agent(with_deep_submodule, change)

    found = dirt(bench, with_deep_submodule)

    assert [entry.kind for entry in found] == ["submodule"]
    assert found[0].path in ("sub", "sub/inner")


def test_repository_made_in_a_submodule_is_nested(bench: Bench, with_deep_submodule: Worktree) -> None:
    agent(with_deep_submodule, "git init -q sub/app.log")

    assert dirt(bench, with_deep_submodule) == (DirtyPath("sub/app.log", "nested"),)


def test_ignore_file_that_ignores_itself_hides_nothing_in_a_submodule(bench: Bench, with_submodule: Worktree) -> None:
    update(with_submodule, "echo '*' > sub/.gitignore; echo > sub/hidden")
    assert git(Path(with_submodule.path, "sub"), "status", "--porcelain") == ""

    assert dirt(bench, with_submodule) == (DirtyPath("sub", "submodule"),)
