"""What the patterns of a sparse checkout in cone mode mean."""

import subprocess
from pathlib import Path

import pytest
from repos import git

from coordinate_agents.worktrees.cone import is_outside, parse_cone

PATHS = ("top", "a/x", "a/b/x", "a/b/c/x", "a/c/x", "ab/x", "we ird/[x]*/y", "we ird/z", "z/z/z")


@pytest.mark.parametrize("folders", [("a/b",), ("a",), ("a/b", "z"), ("we ird/[x]*", "a/c"), ()])
def test_inside_and_outside_are_as_git_checks_them_out(repo: Path, folders: tuple[str, ...]) -> None:
    for path in PATHS:
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text("x\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "x")
    subprocess.run(
        ["git", "-C", repo, "sparse-checkout", "set", "--cone", "--skip-checks", *folders],
        check=True,
        capture_output=True,
    )
    cone = parse_cone((repo / ".git" / "info" / "sparse-checkout").read_text().splitlines())
    assert cone is not None
    outside = is_outside(cone)
    assert [path for path in PATHS if outside(path)] == [path for path in PATHS if not (repo / path).exists()]


@pytest.mark.parametrize("lines", [[], ["/README.md"], ["/*", "!/*/", "*.py"], ["/*", "!/*/", "!/a/*/"], ["/*", "/a/"]])
def test_patterns_that_are_no_cone_are_known(lines: list[str]) -> None:
    assert parse_cone(lines) is None


def test_nothing_is_outside_of_a_whole_checkout() -> None:
    assert parse_cone(["/*"]) == ()
    assert is_outside(())("a/b") is False
