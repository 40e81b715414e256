"""A worktree is called clean without git only when it is: whatever an agent does to its files is seen (EV-*, SE-*)."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import repos
from bench import Calls, agent
from repos import commit_file, git

from coordinate_agents.worktrees import untouched
from coordinate_agents.worktrees.examine import examine
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.index_file import parse_index
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import ExamineRequest, RefSnapshot, Worktree
from coordinate_agents.worktrees.worktrees import GitWorktrees


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with files of every kind."""
    made = repos.make_repo(tmp_path / "repo")
    (made / "link").symlink_to("d/x")
    (made / "d/e").mkdir(parents=True)
    (made / "d/e/run").write_text("#!/bin/sh\n")
    (made / "d/e/run").chmod(0o755)
    (made / ".gitignore").write_text("*.o\n")
    commit_file(made, "d/x", "text\n")
    git(made, "add", "-A")
    git(made, "commit", "-q", "-m", "kinds")
    return made


@pytest.fixture
def trees(repo: Path) -> Iterator[GitWorktrees]:
    with GitWorktrees.open(str(repo)) as opened:
        yield opened


@pytest.fixture
def judge(trees: GitWorktrees) -> Judge:
    return trees._judge


@pytest.fixture
def worktree(repo: Path, root: str, trees: GitWorktrees) -> Worktree:
    return trees.create("g1", "a", git(repo, "rev-parse", "HEAD"), root=root, frozen=trees.freeze())


def request(worktree: Worktree, frozen: str) -> ExamineRequest:
    empty = RefSnapshot({}, ())
    return ExamineRequest(
        graph="g1", slug="a", worktree=worktree, base=worktree.base, frozen=frozen, first_refs=empty, attempt_refs=empty
    )


WORK = "echo new > d/new; echo more >> d/x; ln -sf d/new link; git rm -q d/e/run; git add -A; git commit -qm work"


def test_honest_work_is_proved_clean_without_a_process(
    worktree: Worktree, judge: Judge, trees: GitWorktrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent(worktree, WORK)
    head, frozen = git(worktree.path, "rev-parse", "HEAD"), trees.freeze()
    examine(judge, request(worktree, frozen))
    calls = Calls(tmp_path, monkeypatch)

    assert untouched.is_surely(judge, worktree, head, frozen=frozen)
    assert calls.lines() == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo x >> d/x", ["modified d/x"]),
        ("rm d/x", ["deleted d/x"]),
        ("chmod +x d/x", ["modified d/x"]),
        ("chmod -x d/e/run", ["modified d/e/run"]),
        ("ln -sf elsewhere link", ["modified link"]),
        ("rm link; echo -n d/x > link", ["type link"]),
        ("rm d/x; ln -s e/run d/x", ["type d/x"]),
        ("mv d away; ln -s away d", ["untracked away/e/run", "untracked away/x", "untracked d"]),
        ("echo x > left", ["untracked left"]),
        ("mkdir -p p/q; echo x > p/q/left", ["untracked p/q/left"]),
        ("echo '*' > .gitignore; echo x > left", ["modified .gitignore", "untracked left"]),
        ("git init -q nested; echo x > nested/f; git -C nested add f; git -C nested commit -qm x", ["nested nested"]),
        # The agent's own index and settings say that nothing changed.
        ("git update-index --assume-unchanged d/x; echo x >> d/x", ["modified d/x"]),
        ("git update-index --skip-worktree d/x; rm d/x", ["deleted d/x"]),
        ("git config core.fileMode false; chmod +x d/x", ["modified d/x"]),
        # Same size, and the time of modification set back.
        ("touch -r d/x /tmp/ref.$$; echo TEXT > d/x; touch -r /tmp/ref.$$ d/x; rm /tmp/ref.$$", ["modified d/x"]),
        ("cp -p d/x d/y; echo TEXT > d/y; touch -r d/x d/y; mv d/y d/x", ["modified d/x"]),
        ("echo TEXT > d/x; git add d/x; git rev-parse :d/x > /dev/null", ["modified d/x"]),
    ],
)  # fmt: skip
def test_what_was_left_is_seen(
    worktree: Worktree, judge: Judge, trees: GitWorktrees, script: str, expected: list[str]
) -> None:
    frozen = trees.freeze()
    agent(worktree, script)

    assert not untouched.is_surely(judge, worktree, worktree.base, frozen=frozen)
    seen = examine(judge, request(worktree, frozen))
    assert [f"{entry.kind} {entry.path}" for entry in seen.dirty] == expected


def test_a_change_right_after_the_layout_is_seen(repo: Path, root: str, trees: GitWorktrees, judge: Judge) -> None:
    """Size and time of modification stay; only the change time, or the content, can tell."""
    frozen = trees.freeze()
    for number in range(20):
        made = trees.create("g1", f"s{number}", git(repo, "rev-parse", "HEAD"), root=root, frozen=frozen)
        path = Path(made.path, "d/x")
        before = path.stat()
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, b"TEXT\n")
        os.close(fd)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

        assert not untouched.is_surely(judge, made, made.base, frozen=frozen)


def test_a_file_that_was_touched_or_written_again_is_clean(
    worktree: Worktree, judge: Judge, trees: GitWorktrees
) -> None:
    agent(worktree, "touch d/x; cp .gitignore c; mv c .gitignore; mkdir -p empty/folder")
    assert untouched.is_surely(judge, worktree, worktree.base, frozen=trees.freeze())


def test_ignored_files_are_left_to_git(worktree: Worktree, judge: Judge, trees: GitWorktrees) -> None:
    frozen = trees.freeze()
    agent(worktree, "echo x > d/a.o")
    assert not untouched.is_surely(judge, worktree, worktree.base, frozen=frozen)
    assert examine(judge, request(worktree, frozen)).dirty == ()


@pytest.mark.parametrize(
    "setting", [("core.ignorecase", "true"), ("core.filemode", "false"), ("core.symlinks", "0"), ("core.filemode", "x")]
)
def test_settings_that_change_what_a_file_is_leave_it_to_git(
    repo: Path, worktree: Worktree, judge: Judge, trees: GitWorktrees, setting: tuple[str, str]
) -> None:
    assert untouched.is_surely(judge, worktree, worktree.base, frozen=trees.freeze())
    (repo / ".git/config").write_text(
        (repo / ".git/config").read_text() + f"[core]\n\t{setting[0].split('.')[1]} = {setting[1]}\n"
    )
    assert not untouched.is_surely(judge, worktree, worktree.base, frozen=trees.freeze())


def test_another_judge_knows_nothing_and_asks_git(
    worktree: Worktree, repo: Path, judge: Judge, trees: GitWorktrees
) -> None:
    frozen = trees.freeze()
    with Judge.open(judge.facts) as other:
        assert not untouched.is_surely(other, worktree, worktree.base, frozen=frozen)
        assert examine(other, request(worktree, frozen)).dirty == ()


def test_a_worktree_that_is_used_again_is_left_to_git(
    repo: Path, root: str, worktree: Worktree, judge: Judge, trees: GitWorktrees
) -> None:
    frozen = trees.freeze()
    again = trees.create("g1", "a", worktree.base, root=root, nonce="second", frozen=frozen)
    assert again.path == worktree.path
    assert not untouched.is_surely(judge, again, again.base, frozen=frozen)
    assert examine(judge, request(again, frozen)).dirty == ()


def test_files_of_the_last_tick_are_not_believed_by_their_times(
    worktree: Worktree, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = judge.layouts.get(worktree)
    assert layout is not None
    noted = parse_index(layout.index, id_size=20)
    assert noted
    found = {path: os.lstat(Path(worktree.path, os.fsdecode(path))) for path in noted}
    read: list[str] = []

    def spy(path: str, limit: int) -> bytes | None:
        read.append(path)
        return read_regular(path, limit)

    monkeypatch.setattr(untouched, "read_regular", spy)
    for done_ns in (layout.done_ns, min(each.st_ctime_ns for each in found.values())):
        read.clear()
        assert untouched._Look(worktree.path, noted, done_ns).holds_all()
        # A link is read in any case.
        files = {path: each for path, each in found.items() if stat.S_ISREG(each.st_mode)}
        young = [path for path, each in files.items() if each.st_ctime_ns >= done_ns]
        assert sorted(read) == sorted(f"{worktree.path}/{os.fsdecode(path)}" for path in young)
    assert read
    assert parse_index(b"DIRC\0\0\0\4" + layout.index[8:], id_size=20) is None
