"""Integration merges in the judge repository: nothing of the user's takes part, nothing is counted twice (IN-*)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench, agent
from repos import git

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.integrate import integrate
from coordinate_agents.worktrees.model import Head, MergeConflict, Merged


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def state(bench: Bench) -> tuple[str, ...]:
    """What of the user's could have been touched by a merge."""
    files = sorted(str(path) for path in (bench.repo / ".git").glob("*_*") if path.name != "COMMIT_EDITMSG")
    return (
        git(bench.repo, "status", "--porcelain", "--branch"),
        git(bench.repo, "for-each-ref", "refs/heads", "refs/tags"),
        git(bench.repo, "config", "--list", "--local"),
        *files,
    )


def test_heads_are_merged_in_the_given_order(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"a": "1"}), bench.head_of("b", base, {"b": "1"})
    c = bench.head_of("c", a.commit, {"c": "1"})
    before = state(bench)

    made = integrate(bench.judge, GRAPH, base, [b, a, c])

    assert isinstance(made, Merged)
    assert (made.merged, made.already) == ((b, c), (a,))
    assert git(bench.repo, "log", "-1", "--format=%P|%T|%s", made.commit) == (
        f"{b.commit} {c.commit}|{made.tree}|Merge subtask c"
    )
    assert git(bench.repo, "ls-tree", "--name-only", made.commit).split() == ["README.md", "a", "b", "c"]
    assert git(bench.repo, "rev-parse", f"refs/coordinate-agents/{GRAPH}/integration/kept-1") == made.commit
    assert state(bench) == before


def test_one_head_is_a_fast_forward(bench: Bench) -> None:
    base = bench.head()
    a = bench.head_of("a", base, {"a": "1"})

    made = integrate(bench.judge, GRAPH, base, [a])

    assert made == Merged(a.commit, git(bench.repo, "rev-parse", f"{a.commit}^{{tree}}"), (a,))


def test_nothing_to_integrate_is_not_integrated(bench: Bench) -> None:
    base = bench.head()
    tree = git(bench.repo, "rev-parse", "HEAD^{tree}")

    assert integrate(bench.judge, GRAPH, base, [Head("a", base)]) == Merged(base, tree, (), (Head("a", base),))
    assert integrate(bench.judge, GRAPH, base, []) == Merged(base, tree, ())


def test_conflict_leaves_no_trace_and_names_what_was_applied(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"f": "1\n"}), bench.head_of("b", base, {"f": "2\n"})
    z = bench.head_of("z", base, {"z": "1\n"})
    before = state(bench)

    made = integrate(bench.judge, GRAPH, base, [z, a, b])

    assert isinstance(made, MergeConflict)
    assert (made.pair, made.paths, made.applied) == (("a", "b"), ("f",), (z, a))
    assert state(bench) == before
    assert git(bench.repo, "cat-file", "-t", a.commit) == git(bench.repo, "cat-file", "-t", b.commit) == "commit"


def test_integrating_twice_gives_the_same_commit_and_then_nothing(bench: Bench) -> None:
    base = bench.head()
    heads = [bench.head_of(slug, base, {slug: "1"}) for slug in "abc"]
    first = integrate(bench.judge, GRAPH, base, heads)
    assert isinstance(first, Merged)

    assert integrate(bench.judge, GRAPH, base, heads) == first
    again = integrate(bench.judge, GRAPH, first.commit, heads)
    assert again == Merged(first.commit, first.tree, (), tuple(heads))
    pins = git(bench.repo, "for-each-ref", "--format=%(refname)", f"refs/coordinate-agents/{GRAPH}/integration")
    assert pins == f"refs/coordinate-agents/{GRAPH}/integration/kept-1"


def test_integrating_onto_another_commit_merges_that_first(bench: Bench) -> None:
    base = bench.head()
    a = bench.head_of("a", base, {"a": "1"})
    onto = bench.commit("main", "1\n")

    made = integrate(bench.judge, GRAPH, onto, [a])

    assert isinstance(made, Merged)
    assert made.merged == (a,)
    assert git(bench.repo, "log", "-1", "--format=%P", made.commit) == f"{onto} {a.commit}"


def test_hooks_signing_and_settings_of_the_user_change_nothing(bench: Bench, tmp_path: Path) -> None:
    base = bench.head()
    heads = [bench.head_of(slug, base, {slug: "1"}) for slug in "ab"]
    plain = integrate(bench.judge, GRAPH, base, heads)
    for key, value in {
        "core.hooksPath": str(tmp_path / "hk"),
        "commit.gpgSign": "true",
        "gpg.program": str(tmp_path / "sleeper"),
        "branch.main.mergeoptions": "--squash",
        "merge.ff": "only",
        "merge.conflictStyle": "zdiff3",
        "merge.renormalize": "true",
        "merge.renames": "false",
        "user.useConfigOnly": "true",
        "core.editor": "sleep 999",
        "i18n.commitEncoding": "latin1",
        "core.abbrev": "4",
    }.items():
        git(bench.repo, "config", key, value)
    (tmp_path / "hk").mkdir()
    for name in ("pre-merge-commit", "commit-msg", "post-merge", "reference-transaction"):
        (tmp_path / "hk" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/PWN\nexit 1\n")
        (tmp_path / "hk" / name).chmod(0o755)

    assert integrate(bench.judge, GRAPH, base, heads) == plain
    assert not (tmp_path / "PWN").exists()


def test_merge_that_is_clean_in_text_keeps_both_changes(bench: Bench) -> None:
    base = bench.commit("lib.py", "def g(): pass\n")
    a = bench.head_of("a", base, {"lib.py": "def h(): pass\n"})
    b = bench.head_of("b", base, {"use.py": "import lib; lib.g()\n"})

    made = integrate(bench.judge, GRAPH, base, [a, b])

    assert isinstance(made, Merged)
    assert git(bench.repo, "show", f"{made.commit}:lib.py", f"{made.commit}:use.py").splitlines() == [
        "def h(): pass",
        "import lib; lib.g()",
    ]


def test_untracked_file_of_the_user_that_is_in_the_way_stays_as_it_is(bench: Bench) -> None:  # IN-02
    base = bench.head()
    (bench.repo / "new").write_text("mine\n")
    heads = [bench.head_of("a", base, {"new": "theirs\n"}), bench.head_of("b", base, {"b": "1"})]

    integrate(bench.judge, GRAPH, base, heads)

    assert (bench.repo / "new").read_text() == "mine\n"
    assert git(bench.repo, "status", "--porcelain") == "?? new"


def test_nothing_of_the_runtimes_is_in_a_commit(bench: Bench) -> None:  # IN-11
    worktree = bench.worktree()
    agent(worktree, "echo x > x; git add -A; git commit -qm all")
    head = Head("a", git(worktree.path, "rev-parse", "HEAD"))

    made = integrate(bench.judge, GRAPH, worktree.base, [head])

    assert isinstance(made, Merged)
    assert git(bench.repo, "diff", "--name-only", worktree.base, made.commit) == "x"


@pytest.mark.parametrize("kind", ["blob", "tree"])
def test_missing_object_stops_before_any_merge(bench: Bench, kind: str) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"a": "lost"}), bench.head_of("b", base, {"b": "1"})
    name = {"blob": f"{a.commit}:a", "tree": f"{a.commit}^{{tree}}"}[kind]
    oid = git(bench.repo, "rev-parse", name)
    (bench.repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()

    with pytest.raises(WorktreeError) as caught:
        integrate(bench.judge, GRAPH, base, [a, b])

    assert caught.value.code == "STATE_TAMPERED"
    assert oid in caught.value.message


def test_object_with_other_content_than_its_name_stops_before_any_merge(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"a": "right"}), bench.head_of("b", base, {"b": "1"})
    right = git(bench.repo, "rev-parse", f"{a.commit}:a")
    wrong = git(bench.repo, "hash-object", "-w", "--stdin", input="wrong")
    objects = bench.repo / ".git" / "objects"
    path = objects / right[:2] / right[2:]
    path.chmod(0o644)
    path.write_bytes((objects / wrong[:2] / wrong[2:]).read_bytes())
    assert git(bench.repo, "merge-tree", "--write-tree", a.commit, b.commit)  # plain git merges it

    with pytest.raises(WorktreeError) as caught:
        integrate(bench.judge, GRAPH, base, [a, b])

    assert caught.value.code == "STATE_TAMPERED"


def test_verified_objects_survive_in_the_judges_own_store(bench: Bench) -> None:
    base = bench.head()
    a = bench.head_of("a", base, {"a": "1"})
    integrate(bench.judge, GRAPH, base, [a])
    packs = list(Path(bench.judge.git_dir, "objects", "pack").glob("*.idx"))
    assert len(packs) == 1

    listed = git(bench.repo, "verify-pack", "-v", str(packs[0]))

    assert a.commit in listed
    assert list(Path(bench.judge.git_dir, "tmp").iterdir()) == []


def test_objects_that_were_copied_are_read_from_the_copy(bench: Bench) -> None:
    base = bench.head()
    a, b = bench.head_of("a", base, {"a": "right"}), bench.head_of("b", base, {"b": "1"})
    integrate(bench.judge, GRAPH, base, [a, b])
    blob = git(bench.repo, "rev-parse", f"{a.commit}:a")
    path = bench.repo / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"")

    made = integrate(bench.judge, GRAPH, base, [a, b])

    assert isinstance(made, Merged)
    assert bench.judge.git("cat-file", "blob", blob).text == "right"
    assert len(list(Path(bench.judge.git_dir, "objects", "pack").glob("*.pack"))) == 1
