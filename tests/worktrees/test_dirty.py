"""Cleanliness by the judge's own index: nothing hides a change, and nobody is blamed for dirt that was there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench, agent
from repos import commit_file, git

from coordinate_agents.worktrees.dirty import tracked_changes, untracked
from coordinate_agents.worktrees.model import DirtyPath, Worktree


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    for name in ("f", "g", "d/h"):
        bench.commit(name, "one\n")
    yield bench
    bench.close()


def dirt(bench: Bench, worktree: Worktree) -> list[tuple[str, str]]:
    return [(entry.path, entry.kind) for entry in bench.examine(worktree).dirty]


def test_every_kind_of_change_has_its_name(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f; rm g; ln -s f l; rm d/h; ln -s ../f d/h; echo > new; chmod +x README.md")

    assert dirt(bench, worktree) == [
        ("README.md", "modified"),
        ("d/h", "type"),
        ("f", "modified"),
        ("g", "deleted"),
        ("l", "untracked"),
        ("new", "untracked"),
    ]


def test_staged_work_is_not_committed_work(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f; echo > new; git add -A")

    assert dirt(bench, worktree) == [("f", "modified"), ("new", "untracked")]


def test_half_committed_and_hidden_work_is_all_seen(bench: Bench) -> None:
    git(bench.repo, "config", "status.showUntrackedFiles", "no")
    worktree = bench.worktree()
    agent(
        worktree,
        "echo a > a; git add a; git commit -qm a; echo b > b; echo out >> .gitignore; echo c > out;"
        " git update-index --skip-worktree f; echo d >> f; git update-index --assume-unchanged g; echo e >> g",
    )
    assert git(worktree.path, "status", "--porcelain") == ""

    seen = bench.examine(worktree)

    assert [(entry.path, entry.kind) for entry in seen.dirty] == [
        (".gitignore", "untracked"),
        ("b", "untracked"),
        ("f", "modified"),
        ("g", "modified"),
        ("out", "untracked"),
    ]
    assert seen.ignored_by_agent == ("out",)


def test_committed_ignore_rule_of_the_agent_hides_nothing(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo out > .gitignore; git add .gitignore; git commit -qm i; echo c > out")

    seen = bench.examine(worktree)

    assert (seen.dirty, seen.ignored_by_agent) == ((DirtyPath("out", "untracked"),), ("out",))


def test_exclude_rule_that_the_agent_adds_for_the_repository_hides_nothing(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, 'echo out >> "$(git rev-parse --git-common-dir)/info/exclude"; echo c > out')

    seen = bench.examine(worktree)

    assert (seen.dirty, seen.ignored_by_agent) == ((DirtyPath("out", "untracked"),), ("out",))


def test_what_the_base_and_the_user_ignore_is_no_dirt(bench: Bench, isolation: Path) -> None:
    (isolation / "ignore").write_text("*.swp\n")
    git(bench.repo, "config", "core.excludesFile", str(isolation / "ignore"))
    (bench.repo / ".git" / "info" / "exclude").write_text("private/\n")
    bench.commit(".gitignore", "build/\n*.o\n!keep.o\n")
    bench.commit("d/.gitignore", "/gen\ntmp/\n*.log\n!x.log\nsub/only\n")
    worktree = bench.worktree()
    agent(
        worktree,
        "mkdir -p build/x private d/tmp d/e/tmp d/sub d/e/sub e; touch build/x/y a.o keep.o a.swp private/p;"
        " touch d/gen d/e/gen d/tmp/t d/e/tmp/t d/a.log d/e/b.log d/x.log e/c.log d/sub/only d/e/sub/only",
    )
    plain = git(worktree.path, "status", "--porcelain", "-uall").splitlines()

    assert dirt(bench, worktree) == [
        (path, "untracked") for path in ("d/e/gen", "d/e/sub/only", "d/x.log", "e/c.log", "keep.o")
    ]
    assert [path for path, _ in dirt(bench, worktree)] == [line[3:] for line in plain]


def test_ignore_files_in_odd_folders_still_mean_the_same(bench: Bench) -> None:
    for folder in ("a b", "[x]", "st*r", "back\\slash", "ünï", "#hash", "!bang", "tail "):
        bench.commit(f"{folder}/.gitignore", "*.tmp\n/only\n")
        bench.commit(f"{folder}/deep/x", "x\n")
    worktree = bench.worktree()
    for folder in Path(worktree.path).iterdir():
        if folder.is_dir():
            (folder / "a.tmp").touch()
            (folder / "only").touch()
            (folder / "deep" / "b.tmp").parent.mkdir(exist_ok=True)
            (folder / "deep" / "b.tmp").touch()
            (folder / "deep" / "only").touch()
    plain = git(worktree.path, "-c", "core.quotePath=false", "status", "--porcelain", "-uall", "-z").split("\0")

    assert [path for path, _ in dirt(bench, worktree)] == sorted(line[3:] for line in plain if line)
    assert "a b/deep/only" in [path for path, _ in dirt(bench, worktree)]


def test_ignore_file_that_is_a_link_in_the_base_is_no_rule(bench: Bench) -> None:
    (bench.repo / ".gitignore").symlink_to("f")
    git(bench.repo, "add", ".gitignore")
    git(bench.repo, "commit", "-qm", "link")
    worktree = bench.worktree()
    agent(worktree, "echo > one")

    assert dirt(bench, worktree) == [("one", "untracked")]


def test_same_size_and_restored_time_hide_nothing(bench: Bench) -> None:
    worktree = bench.worktree()
    path = Path(worktree.path, "f")
    before = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert dirt(bench, worktree) == [("f", "modified")]


def test_file_that_was_only_touched_is_clean(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "touch f; cp g g2; mv g2 g")

    assert dirt(bench, worktree) == []


def test_line_endings_that_were_wrong_at_the_start_are_nobodys_dirt(bench: Bench) -> None:
    bench.commit("c.txt", "a\r\nb\r\n")
    bench.commit(".gitattributes", "*.txt text\n")
    worktree = bench.worktree()
    agent(worktree, "touch c.txt")
    assert git(worktree.path, "status", "--porcelain") == "M c.txt"

    assert dirt(bench, worktree) == []
    agent(worktree, "printf 'a\\r\\nX\\r\\n' > c.txt")
    assert dirt(bench, worktree) == [("c.txt", "modified")]


def test_users_autocrlf_makes_no_dirt(bench: Bench) -> None:
    git(bench.repo, "config", "core.autocrlf", "true")
    worktree = bench.worktree()
    assert Path(worktree.path, "f").read_bytes() == b"one\r\n"

    assert dirt(bench, worktree) == []


def test_recorded_filter_makes_no_dirt(bench: Bench) -> None:
    git(bench.repo, "config", "filter.up.clean", "tr a-z A-Z")
    git(bench.repo, "config", "filter.up.smudge", "tr A-Z a-z")
    bench.commit(".gitattributes", "*.up filter=up\n")
    bench.commit("x.up", "hello\n")
    worktree = bench.worktree()
    assert Path(worktree.path, "x.up").read_text() == "hello\n"
    assert git(bench.repo, "show", "HEAD:x.up") == "HELLO"

    assert dirt(bench, worktree) == []
    agent(worktree, "echo other > x.up")
    assert dirt(bench, worktree) == [("x.up", "modified")]


def test_looks_before_and_after_setup_name_paths(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f; mkdir deps; touch deps/a deps/b")

    assert untracked(bench.judge, worktree, bench.frozen) == ("deps/a", "deps/b")
    assert tracked_changes(bench.judge, worktree, bench.frozen) == ("f",)


def test_worktrees_own_index_and_files_stay_as_they_are(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f; git add f; echo three > f")
    index = (bench.repo / ".git" / "worktrees" / "a" / "index").read_bytes()

    bench.examine(worktree)

    assert (bench.repo / ".git" / "worktrees" / "a" / "index").read_bytes() == index
    assert git(worktree.path, "status", "--porcelain") == "MM f"


def test_more_untracked_files_than_the_limit_are_all_counted(bench: Bench) -> None:
    worktree = bench.worktree()
    folder = Path(worktree.path, "many")
    folder.mkdir()
    for number in range(500):
        (folder / f"{number:03}").touch()

    seen = bench.examine(worktree)

    assert (len(seen.dirty), seen.dirty_count) == (50, 500)


def test_folder_in_place_of_a_file_is_seen(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "rm f; mkdir f; echo > f/x; rm -r d; echo > d")

    assert dirt(bench, worktree) == [
        ("d", "untracked"),
        ("d/h", "deleted"),
        ("f", "deleted"),
        ("f/x", "untracked"),
    ]


def test_link_in_place_of_a_folder_is_seen(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "h").write_text("one\n")
    worktree = bench.worktree()
    agent(worktree, f"rm -r d; ln -s {tmp_path / 'else'} d")

    assert dirt(bench, worktree) == [("d", "untracked")]


def test_ignored_link_in_place_of_a_tracked_folder_is_seen(bench: Bench, tmp_path: Path) -> None:
    bench.commit(".gitignore", "d\n")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "h").write_text("one\n")
    worktree = bench.worktree()
    agent(worktree, f"rm -r d; ln -s {tmp_path / 'else'} d")

    assert dirt(bench, worktree) == [("d/h", "deleted")]


def test_file_that_the_base_tracks_but_ignores_is_judged(bench: Bench) -> None:
    commit_file(bench.repo, "kept.o", "1\n")
    bench.commit(".gitignore", "*.o\n")
    worktree = bench.worktree()
    agent(worktree, "echo 2 > kept.o")

    assert dirt(bench, worktree) == [("kept.o", "modified")]


def test_empty_file_that_was_filled_and_filled_one_that_was_emptied_are_seen(bench: Bench) -> None:
    bench.commit("empty", "")
    worktree = bench.worktree()
    agent(worktree, ": > f")
    assert dirt(bench, worktree) == [("f", "modified")]

    agent(worktree, "echo x > empty")
    assert dirt(bench, worktree) == [("empty", "modified"), ("f", "modified")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_folder_that_cannot_be_read_is_dirt_unless_the_base_ignores_it(bench: Bench) -> None:
    bench.commit(".gitignore", "data/\n")
    worktree = bench.worktree()
    agent(worktree, "mkdir data closed; touch closed/x; chmod 0 data closed")

    try:
        assert dirt(bench, worktree) == [("closed", "untracked")]
    finally:
        agent(worktree, "chmod 700 data closed")


def test_path_that_looks_like_a_pattern_is_a_path(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo '*.x' > .gitignore; touch ':(glob)a.x' '*' ':!b.x'")

    seen = bench.examine(worktree)

    assert [entry.path for entry in seen.dirty] == ["*", ".gitignore", ":!b.x", ":(glob)a.x"]
    assert seen.ignored_by_agent == (":!b.x", ":(glob)a.x")
