"""The base of an attempt: reduced set, deterministic merges, conflicts as values (contract section 5)."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench, Calls
from repos import commit_file, git

from coordinate_agents.worktrees.base import contains, make_base
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import Base, Head, MergeConflict


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def test_no_prerequisites_starts_from_the_graphs_base(bench: Bench) -> None:
    assert make_base(bench.judge, GRAPH, "d", bench.head(), []) == Base(bench.head())


def test_one_prerequisite_starts_from_that_very_commit_without_writing(bench: Bench) -> None:
    head = bench.head_of("a", bench.head(), {"a": "1"})
    refs = git(bench.repo, "for-each-ref")

    assert make_base(bench.judge, GRAPH, "d", bench.head(), [head]) == Base(head.commit, (head,))
    assert git(bench.repo, "for-each-ref") == refs


def test_diamond_contains_both_heads_and_is_pinned(bench: Bench) -> None:
    base = bench.head()
    left, right = bench.head_of("l", base, {"l": "1"}), bench.head_of("r", base, {"r": "2"})

    made = make_base(bench.judge, GRAPH, "d", base, [right, left])

    assert isinstance(made, Base)
    assert made.reduced == (left, right)
    assert git(bench.repo, "rev-parse", f"{made.commit}^1", f"{made.commit}^2").split() == [left.commit, right.commit]
    assert git(bench.repo, "ls-tree", "--name-only", made.commit).split() == ["README.md", "l", "r"]
    assert git(bench.repo, "rev-parse", f"refs/coordinate-agents/{GRAPH}/d/base-1") == made.commit
    assert contains(bench.judge, made.commit, [base, left.commit, right.commit]) == ()
    git(bench.repo, "fsck", "--strict")


def test_prerequisite_inside_another_is_not_merged_again(bench: Bench) -> None:
    base = bench.head()
    first = bench.head_of("a", base, {"a": "1"})
    second = bench.head_of("b", first.commit, {"b": "1"})

    assert make_base(bench.judge, GRAPH, "d", base, [first, second]) == Base(second.commit, (second,))


def test_two_names_for_one_commit_count_once(bench: Bench) -> None:
    head = bench.head_of("a", bench.head(), {"a": "1"})

    made = make_base(bench.judge, GRAPH, "d", bench.head(), [Head("b", head.commit), head])

    assert made == Base(head.commit, (head,))


def test_prerequisite_without_commits_adds_nothing(bench: Bench) -> None:
    base = bench.head()
    head = bench.head_of("a", base, {"a": "1"})

    assert make_base(bench.judge, GRAPH, "d", base, [Head("audit", base), head]) == Base(head.commit, (head,))
    assert make_base(bench.judge, GRAPH, "d", base, [Head("audit", base)]) == Base(base)


def test_newer_base_of_an_amended_graph_is_merged_in(bench: Bench) -> None:
    old = bench.head()
    head = bench.head_of("a", old, {"a": "1"})
    newer = bench.commit("n", "1\n")

    made = make_base(bench.judge, GRAPH, "d", newer, [head])

    assert isinstance(made, Base)
    assert made.reduced == (Head("base", newer), head)
    assert contains(bench.judge, made.commit, [newer, head.commit]) == ()


def test_newer_base_that_has_the_head_already_is_the_base(bench: Bench) -> None:
    head = bench.head_of("a", bench.head(), {"a": "1"})
    git(bench.repo, "merge", "-q", "--no-ff", "-m", "user merges", head.commit)

    assert make_base(bench.judge, GRAPH, "d", bench.head(), [head]) == Base(bench.head())


def test_commits_with_absurd_dates_are_ordered_by_parents_not_dates(bench: Bench) -> None:
    base = bench.head()
    env = {**os.environ, "GIT_AUTHOR_DATE": "1980-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "1980-01-01T00:00:00Z"}
    tree = git(bench.repo, "rev-parse", f"{base}^{{tree}}")
    old = git(bench.repo, "commit-tree", tree, "-p", base, "-m", "old", env=env)
    env |= {"GIT_AUTHOR_DATE": "2090-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2090-01-01T00:00:00Z"}
    young = git(bench.repo, "commit-tree", tree, "-p", old, "-m", "young", env=env)

    made = make_base(bench.judge, GRAPH, "d", base, [Head("a", young), Head("b", old)])

    assert made == Base(young, (Head("a", young),))


def test_same_inputs_give_the_same_hash_whatever_the_user_has_set(tmp_path: Path) -> None:
    made = []
    for name, settings in (
        ("one", {}),
        ("two", {"merge.renames": "false", "merge.directoryRenames": "true", "user.name": "Else", "merge.ff": "only"}),
        ("three", {"commit.gpgSign": "true", "gpg.program": "/bin/false", "i18n.commitEncoding": "latin1"}),
    ):
        bench = Bench(tmp_path / name)
        dated = {**os.environ, "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z"}
        git(bench.repo, "commit", "-q", "--amend", "--no-edit", "--date=2024-01-01T00:00:00Z", env=dated)
        base = bench.head()
        heads = [bench.head_of(slug, base, {f"{slug}.txt": "x\n"}) for slug in ("c", "a", "b")]
        for key, value in settings.items():
            git(bench.repo, "config", key, value)
        git(bench.repo, "checkout", "-q", "-b", f"user-{name}")
        result = make_base(bench.judge, GRAPH, name, base, heads)
        bench.close()
        assert isinstance(result, Base)
        made.append(result.commit)
        said = git(bench.repo, "show", "-s", "--format=%an <%ae> %ad|%cn <%ce> %cd|%s", "--date=unix", result.commit)
        assert said == (
            "coordinate-agents <coordinate-agents@localhost> 1709294400"
            "|coordinate-agents <coordinate-agents@localhost> 1709294400|Merge subtask c"
        )

    assert len(set(made)) == 1


def test_conflict_names_the_pair_the_paths_and_what_was_applied(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n", "x": "1\n"}), bench.head_of("b", base, {"g": "1\n"})
    c = bench.head_of("c", base, {"f": "2\n", "x": "2\n"})
    refs = git(bench.repo, "for-each-ref")

    made = make_base(bench.judge, GRAPH, "d", base, [c, b, a])

    assert isinstance(made, MergeConflict)
    assert (made.pair, made.paths, made.applied) == (("a", "c"), ("f", "x"), (a, b))
    assert git(bench.repo, "for-each-ref") == refs
    assert git(bench.repo, "status", "--porcelain") == ""
    again = make_base(bench.judge, GRAPH, "d", base, [a, b, c])
    assert again == made


def test_conflict_with_the_combination_names_the_last_applied(bench: Bench) -> None:
    base = bench.commit("f", "".join(f"{n}\n" for n in range(30)))
    text = (bench.repo / "f").read_text()
    a = bench.head_of("a", base, {"f": text.replace("\n10\n", "\n10 a\n")})
    b = bench.head_of("b", base, {"f": text.replace("\n10\n", "\n10 b\n")})

    made = make_base(bench.judge, GRAPH, "d", base, [a, b])

    assert isinstance(made, MergeConflict)
    assert made.pair == ("a", "b")


def test_missing_commit_is_an_error_and_no_conflict(bench: Bench) -> None:
    missing = "0123456789" * 4
    head = bench.head_of("a", bench.head(), {"a": "1"})

    with pytest.raises(WorktreeError, match="rev-list"):
        make_base(bench.judge, GRAPH, "d", bench.head(), [head, Head("b", missing)])


def test_missing_tree_is_an_error_and_no_conflict(bench: Bench) -> None:
    base = bench.head()
    a = bench.head_of("a", base, {"a": "1"})
    b = bench.head_of("b", base, {"b": "1"})
    tree = git(bench.repo, "rev-parse", f"{b.commit}^{{tree}}")
    (bench.repo / ".git" / "objects" / tree[:2] / tree[2:]).unlink()

    # `merge-tree` alone would take the missing tree for an empty one and drop b's work without a word.
    merged = subprocess.run(
        ["git", "merge-tree", "--write-tree", a.commit, b.commit], cwd=bench.repo, capture_output=True, text=True
    )
    if merged.returncode == 0:
        assert "b" not in git(bench.repo, "ls-tree", "--name-only", merged.stdout.split()[0]).split()
    with pytest.raises(WorktreeError, match="rev-list"):
        make_base(bench.judge, GRAPH, "d", base, [a, b])


def test_unrelated_histories_are_an_error_and_no_conflict(bench: Bench) -> None:
    base = bench.head()
    tree = git(bench.repo, "rev-parse", f"{base}^{{tree}}")
    orphan = git(bench.repo, "commit-tree", tree, "-m", "orphan")

    with pytest.raises(WorktreeError):
        make_base(bench.judge, GRAPH, "d", base, [bench.head_of("a", base, {"a": "1"}), Head("b", orphan)])


def test_union_attribute_of_the_base_counts_in_a_folder_too(bench: Bench) -> None:
    bench.commit("docs/log.txt", "start\n")
    base = bench.commit("docs/.gitattributes", "log.txt merge=union\n")
    a = bench.head_of("a", base, {"docs/log.txt": "start\na\n"})
    b = bench.head_of("b", base, {"docs/log.txt": "start\nb\n"})

    made = make_base(bench.judge, GRAPH, "d", base, [a, b])

    assert isinstance(made, Base)
    assert git(bench.repo, "show", f"{made.commit}:docs/log.txt").splitlines() == ["start", "a", "b"]


def test_attributes_that_a_subtask_brings_do_not_count(bench: Bench) -> None:
    base = bench.commit("log.txt", "start\n")
    a = bench.head_of("a", base, {"log.txt": "start\na\n", ".gitattributes": "log.txt merge=union\n"})
    b = bench.head_of("b", base, {"log.txt": "start\nb\n"})

    assert isinstance(make_base(bench.judge, GRAPH, "d", base, [a, b]), MergeConflict)


def test_unmergeable_file_of_the_base_conflicts_though_lines_would_merge(bench: Bench) -> None:
    text = "".join(f"{n}\n" for n in range(30))
    bench.commit("data.lock", text)
    base = bench.commit(".gitattributes", "*.lock -merge\n")
    a = bench.head_of("a", base, {"data.lock": text.replace("2\n", "two\n", 1)})
    b = bench.head_of("b", base, {"data.lock": text.replace("\n28\n", "\n28 b\n")})

    made = make_base(bench.judge, GRAPH, "d", base, [a, b])

    assert isinstance(made, MergeConflict)
    assert made.paths == ("data.lock",)


def test_different_submodule_commits_conflict_and_equal_ones_do_not(bench: Bench, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    one, two, three = (commit_file(library, "f", text) for text in "123")
    git(bench.repo, "update-index", "--add", "--cacheinfo", f"160000,{one},lib")
    git(bench.repo, "commit", "-q", "-m", "add lib")
    base = bench.head()

    def head_with(slug: str, commit: str) -> Head:
        env = {**os.environ, "GIT_INDEX_FILE": str(tmp_path / f"i-{slug}")}
        git(bench.repo, "read-tree", base, env=env)
        git(bench.repo, "update-index", "--add", "--cacheinfo", f"160000,{commit},lib", env=env)
        tree = git(bench.repo, "write-tree", env=env)
        return Head(slug, git(bench.repo, "commit-tree", tree, "-p", base, "-m", slug))

    conflict = make_base(bench.judge, GRAPH, "d", base, [head_with("a", two), head_with("b", three)])
    assert isinstance(conflict, MergeConflict)
    assert conflict.paths == ("lib",)

    fine = make_base(bench.judge, GRAPH, "d", base, [head_with("a", two), bench.head_of("c", base, {"c": "1"})])
    assert isinstance(fine, Base)
    assert two in git(bench.repo, "ls-tree", fine.commit, "lib")


def test_contains_names_what_is_not_contained_and_what_does_not_exist(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"a": "1"}), bench.head_of("b", base, {"b": "1"})
    missing = "0123456789" * 4

    assert contains(bench.judge, a.commit, [base, b.commit, a.commit, missing]) == (b.commit, missing)
    assert contains(bench.judge, a.commit, []) == ()
    with pytest.raises(WorktreeError):
        contains(bench.judge, missing, [base])


def test_sha256_repository_merges_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, object_format="sha256")
    base = bench.head()
    made = make_base(
        bench.judge, GRAPH, "d", base, [bench.head_of("a", base, {"a": "1"}), bench.head_of("b", base, {"b": "1"})]
    )
    bench.close()

    assert isinstance(made, Base)
    assert len(made.commit) == 64


def test_diamond_of_different_files_costs_no_more_git_process_than_one_head(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bench.head()
    heads = [bench.head_of(slug, base, {slug: "1"}) for slug in "ab"]
    later = [bench.head_of(slug, base, {slug: "1"}) for slug in "cd"]
    calls = Calls(tmp_path, monkeypatch)
    make_base(bench.judge, GRAPH, "warm", base, heads)  # the base's attributes are read once per base

    calls.clear()
    make_base(bench.judge, GRAPH, "d", base, later)
    assert calls.verbs() == []
    calls.clear()
    make_base(bench.judge, GRAPH, "e", base, heads[:1])
    assert calls.verbs() == []
