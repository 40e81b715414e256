"""A merge without git is the one that git makes, tree for tree; whatever needs a look at files is left to it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repos import git

from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import merge_trees
from coordinate_agents.worktrees.plain_merge import merge_base, merge_plainly
from coordinate_agents.worktrees.worktrees import GitWorktrees

# Mode and content of each file.
Files = Mapping[str, tuple[str, str]]

PATHS = st.sampled_from(["a", "b", "a/b", "a/c", "a.b", "a-b", "d/e/f", "d/e/g", "d/f", "d", "x/y/z", "é"])
KINDS = st.tuples(
    st.sampled_from(["100644", "100644", "100755", "120000"]), st.sampled_from(["one\n", "two\n", "six\n"])
)
Change = Mapping[str, tuple[str, str] | None]
# A change of one side: files given anew, and with None files taken away.
SIDES = st.dictionaries(PATHS, st.one_of(KINDS, KINDS, KINDS, st.none()), max_size=4)


@pytest.fixture
def judge(trees: GitWorktrees) -> Judge:
    return trees._judge


def whole(files: Files, change: Change) -> Files:
    """The files after the change; where it needs a folder no file stays, and the other way round."""
    kept = {path: kind for path, kind in files.items() if path not in change}
    for path, kind in change.items():
        if kind is not None:
            kept = {p: k for p, k in kept.items() if not p.startswith(f"{path}/") and not path.startswith(f"{p}/")}
            kept[path] = kind
    return kept


def commits(repo: Path, *made: tuple[Files, list[int]]) -> list[str]:
    """Commits of these files with these parents, by number."""
    lines = []
    for number, (files, parents) in enumerate(made):
        lines.append(f"commit refs/heads/made{number}\nmark :{number + 1}\n")
        lines.append(f"committer A <a@example.org> {1700000000 + number} +0000\ndata 0\n")
        lines += [f"{'merge' if at else 'from'} :{parent + 1}\n" for at, parent in enumerate(parents)]
        lines.append("deleteall\n")
        lines += [f"M {mode} inline {path}\ndata {len(text)}\n{text}\n" for path, (mode, text) in files.items()]
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=repo, input="".join(lines), text=True, check=True)
    return git(repo, "rev-parse", *(f"made{number}" for number in range(len(made)))).split("\n")


def plainly(judge: Judge, ours: str, theirs: str, above: str) -> str | None:
    return merge_plainly(judge.commits, judge.trees, ours, theirs, above=above, write=judge.write_tree)


@given(start=SIDES, left=SIDES, right=SIDES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_merges_are_those_of_git(repo: Path, judge: Judge, start: Change, left: Change, right: Change) -> None:
    base = whole({}, start)
    above, ours, theirs = commits(repo, (base, []), (whole(base, left), [0]), (whole(base, right), [0]))

    merged = plainly(judge, ours, theirs, above)

    if merged is not None:
        assert merge_trees(judge, ours, theirs, attributes="/dev/null").tree == merged
        assert merge_trees(judge, ours, theirs, attributes="/dev/null").paths == ()


BASE: Files = {"a": ("100644", "one\n"), "d/e": ("100644", "two\n"), "d/f": ("100644", "six\n"), "l": ("120000", "a")}
NEW: Files = {"new": ("100644", "new\n")}
# What the one side makes of BASE, and whether that may be merged with another new file without git.
WAYS: Mapping[str, tuple[dict[str, tuple[str, str] | None], bool]] = {
    "adds in a folder": ({"d/new": ("100644", "x\n")}, True),
    "adds a deep folder": ({"n/e/w": ("100644", "x\n")}, True),
    "changes": ({"d/e": ("100644", "other\n")}, True),
    "makes executable": ({"a": ("100755", "one\n")}, True),
    "changes a link": ({"l": ("120000", "d")}, True),
    "deletes": ({"a": None}, False),
    "renames": ({"a": None, "b": ("100644", "one\n")}, False),
    "makes a link of a file": ({"a": ("120000", "d")}, False),
    "adds the same": ({"new": ("100644", "new\n")}, False),
    "adds another": ({"new": ("100644", "else\n")}, False),
    "adds a folder of the name": ({"new/x": ("100644", "x\n")}, False),
    "makes a folder of a file": ({"a": None, "a/b": ("100644", "x\n")}, False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_swapped", [False, True])
def test_each_kind_of_change_is_merged_as_by_git_or_left_to_it(
    repo: Path, judge: Judge, way: str, is_swapped: bool
) -> None:
    change, is_plain = WAYS[way]
    changed = {path: kind for path, kind in {**BASE, **change}.items() if kind is not None}
    made = commits(repo, (BASE, []), ({**BASE, **NEW}, [0]), (changed, [0]))
    above, ours, theirs = made if not is_swapped else (made[0], made[2], made[1])

    merged = plainly(judge, ours, theirs, above)

    assert (merged is not None) == is_plain
    if is_plain:
        assert merge_trees(judge, ours, theirs, attributes="/dev/null").tree == merged
        assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_both_sides_in_one_folder_make_a_tree_of_both(repo: Path, judge: Judge) -> None:
    above, ours, theirs = commits(
        repo,
        (BASE, []),
        ({**BASE, "d/n/x": ("100644", "x\n"), "d/e": ("100644", "changed\n")}, [0]),
        ({**BASE, "d/n/y": ("100644", "y\n"), "d/f": ("100755", "six\n")}, [0]),
    )
    merged = plainly(judge, ours, theirs, above)
    assert merged == merge_trees(judge, ours, theirs, attributes="/dev/null").tree
    assert git(repo, "ls-tree", "-r", "--name-only", str(merged), "d").split() == ["d/e", "d/f", "d/n/x", "d/n/y"]


@given(parents=st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=2, unique=True), min_size=2, max_size=12))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_merge_base_of_random_histories_is_that_of_git(repo: Path, judge: Judge, parents: list[list[int]]) -> None:
    # Every commit is above the first one.
    shaped = [sorted({parent % (number + 1) for parent in chosen}) for number, chosen in enumerate(parents)]
    made = commits(repo, ({}, []), *(({"f": ("100644", f"{n}\n")}, chosen) for n, chosen in enumerate(shaped)))
    ours, theirs = made[-1], made[-2]

    asked = git(repo, "merge-base", "--all", ours, theirs).split("\n")

    assert merge_base(judge.commits, ours, theirs, above=made[0]) == (asked[0] if len(asked) == 1 else None)


def test_history_that_does_not_end_above_is_left_to_git(repo: Path, judge: Judge) -> None:
    other, above, ours, theirs = commits(
        repo, (BASE, []), ({**BASE, **NEW}, []), ({"x": ("100644", "")}, [1, 0]), ({"y": ("100644", "")}, [1])
    )
    assert merge_base(judge.commits, ours, theirs, above=above) is None
    assert merge_base(judge.commits, theirs, above, above=above) == above
    assert merge_base(judge.commits, other, theirs, above=above) is None


def test_submodule_is_left_to_git(repo: Path, judge: Judge) -> None:
    above, theirs = commits(repo, (BASE, []), ({**BASE, **NEW}, [0]))
    tree = git(repo, "rev-parse", f"{above}^{{tree}}")
    listed = git(repo, "ls-tree", tree)
    with_module = git(repo, "mktree", input=f"{listed}\n160000 commit {above}\tsub\n")
    ours = git(repo, "commit-tree", "-p", above, "-m", "sub", with_module)
    assert plainly(judge, ours, theirs, above) is None
