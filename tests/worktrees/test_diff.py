"""What differs between commits, and setting paths of a pristine worktree back (protect, EV-13)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench, agent
from repos import git

from coordinate_agents.worktrees.diff import changed, diff, restore_paths


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit("tests/a", "one\ntwo\nthree\nfour\n")
    bench.commit("tests/b", "b\n")
    yield bench
    bench.close()


def test_both_sides_of_a_rename_are_changed_paths(bench: Bench) -> None:
    base = bench.head()
    git(bench.repo, "mv", "tests/a", "src")
    (bench.repo / "new\nline").write_text("x")
    git(bench.repo, "add", "-A")
    git(bench.repo, "commit", "-qm", "move")

    assert changed(bench.judge, base, bench.head()) == ("new\nline", "src", "tests/a")
    assert changed(bench.judge, base, base) == ()


def test_diff_is_a_plain_patch_whatever_the_user_has_set(bench: Bench, tmp_path: Path) -> None:
    base, head = bench.head(), bench.commit("tests/b", "c\n")
    for key, value in {
        "diff.external": f"touch {tmp_path}/PWN",
        "diff.noprefix": "true",
        "color.ui": "always",
        "diff.x.textconv": f"touch {tmp_path}/PWN; cat",
        "core.pager": "false",
    }.items():
        git(bench.repo, "config", key, value)
    (bench.repo / ".git" / "info" / "attributes").write_text("* diff=x\n")

    text = diff(bench.judge, base, head, stat=False, max_bytes=10_000)

    assert text.splitlines()[0] == "diff --git a/tests/b b/tests/b"
    assert text.splitlines()[-2:] == ["-b", "+c"]
    assert not (tmp_path / "PWN").exists()


def test_summary_counts_lines(bench: Bench) -> None:
    base, head = bench.head(), bench.commit("tests/b", "c\n")

    assert diff(bench.judge, base, head, stat=True, max_bytes=10_000).splitlines() == [
        " tests/b | 2 +-",
        " 1 file changed, 1 insertion(+), 1 deletion(-)",
    ]


def test_long_diff_is_cut_at_a_line_and_says_so(bench: Bench) -> None:
    base, head = bench.head(), bench.commit("big", "".join(f"line {n}\n" for n in range(10_000)))
    whole = diff(bench.judge, base, head, stat=False, max_bytes=1 << 20)

    text = diff(bench.judge, base, head, stat=False, max_bytes=1000)

    *lines, last = text.splitlines()
    kept = "\n".join(lines)
    assert whole.startswith(kept + "\n")
    assert len(kept) <= 1000
    assert last == f"[cut: {len(whole) - len(kept)} of {len(whole)} bytes not shown]"


def test_no_difference_is_an_empty_diff(bench: Bench) -> None:
    assert diff(bench.judge, bench.head(), bench.head(), stat=False, max_bytes=100) == ""


def test_paths_are_set_back_and_added_ones_removed(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo cheat > tests/a; rm tests/b; echo > tests/c; echo mine > src; chmod +x tests/a")

    done = restore_paths(bench.judge, worktree, worktree.base, ["tests/c", "tests/a", "tests/b", "tests/none"])

    assert done == ("tests/a", "tests/b", "tests/c", "tests/none")
    assert git(worktree.path, "status", "--porcelain") == "?? src"
    assert Path(worktree.path, "src").read_text() == "mine\n"


def test_nothing_is_written_or_removed_through_a_link(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("theirs\n")
    (outside / "c").write_text("theirs\n")
    worktree = bench.worktree()
    agent(worktree, f"rm -r tests; ln -s {outside} tests")

    restore_paths(bench.judge, worktree, worktree.base, ["tests/a", "tests/b", "tests/c"])

    assert (outside / "a").read_text() == (outside / "c").read_text() == "theirs\n"
    assert sorted(path.name for path in outside.iterdir()) == ["a", "c"]
    assert not Path(worktree.path, "tests").is_symlink()
    assert Path(worktree.path, "tests", "b").read_text() == "b\n"


def test_link_in_place_of_a_file_is_replaced_not_followed(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("theirs\n")
    worktree = bench.worktree()
    agent(worktree, f"rm tests/a; ln -s {tmp_path / 'target'} tests/a; rm tests/b; mkdir tests/b; touch tests/b/x")

    restore_paths(bench.judge, worktree, worktree.base, ["tests/a", "tests/b"])

    assert (tmp_path / "target").read_text() == "theirs\n"
    assert Path(worktree.path, "tests", "a").read_text() == "one\ntwo\nthree\nfour\n"
    assert Path(worktree.path, "tests", "b").read_text() == "b\n"


def test_filtered_files_are_laid_out_as_the_user_has_them(bench: Bench) -> None:
    git(bench.repo, "config", "filter.up.clean", "tr a-z A-Z")
    git(bench.repo, "config", "filter.up.smudge", "tr A-Z a-z")
    bench.commit(".gitattributes", "*.up filter=up\n")
    bench.commit("x.up", "hello\n")
    worktree = bench.worktree()
    agent(worktree, "echo other > x.up")

    restore_paths(bench.judge, worktree, worktree.base, ["x.up"], frozen=bench.frozen)

    assert Path(worktree.path, "x.up").read_text() == "hello\n"
