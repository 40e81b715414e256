"""A pin that is made as a file is what git would have made, and whatever is not simple is git's."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench import Calls
from repos import git

from coordinate_agents.worktrees import plain_pins
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import pin_ref
from coordinate_agents.worktrees.refs import RefChange, change_refs, read_ref
from coordinate_agents.worktrees.repository import open_repository

NAME = pin_ref("g1", "a", "verified", 1)


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


@pytest.fixture
def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD")


def _make(judge: Judge, head: str, name: str = NAME) -> None:
    change_refs(judge, [RefChange(name, head, "")])


def test_a_new_pin_takes_no_process_and_is_what_git_makes(
    repo: Path, judge: Judge, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_git = pin_ref("g1", "a", "base", 1)
    git(repo, "update-ref", by_git, head)
    calls = Calls(tmp_path, monkeypatch)
    _make(judge, head)
    assert calls.verbs() == []
    monkeypatch.undo()
    ours, theirs = (repo / ".git" / name for name in (NAME, by_git))
    assert (ours.read_bytes(), ours.stat().st_mode) == (theirs.read_bytes(), theirs.stat().st_mode)
    assert ours.stat().st_nlink == 1
    assert git(repo, "for-each-ref", "--format=%(objectname)", NAME) == head
    assert git(repo, "fsck", "--no-dangling") == ""
    assert list(Path(judge.git_dir, "tmp").iterdir()) == []
    git(repo, "pack-refs", "--all", "--prune")
    assert read_ref(str(repo / ".git"), NAME) == head


def _is_there(repo: Path, head: str) -> None:
    git(repo, "update-ref", NAME, head)


def _is_packed(repo: Path, head: str) -> None:
    _is_there(repo, head)
    git(repo, "pack-refs", "--all", "--prune")


def _is_a_folder(repo: Path, head: str) -> None:
    git(repo, "update-ref", f"{NAME}/below", head)


def _is_a_packed_folder(repo: Path, head: str) -> None:
    _is_a_folder(repo, head)
    git(repo, "pack-refs", "--all", "--prune")


def _has_a_name_above(repo: Path, head: str) -> None:
    git(repo, "update-ref", NAME.rpartition("/")[0], head)


def _has_a_packed_name_above(repo: Path, head: str) -> None:
    _has_a_name_above(repo, head)
    git(repo, "pack-refs", "--all", "--prune")


@pytest.mark.parametrize(
    "prepare",
    [_is_there, _is_packed, _is_a_folder, _is_a_packed_folder, _has_a_name_above, _has_a_packed_name_above],
)
def test_a_name_that_is_not_free_is_refused_by_git_and_nothing_changes(
    repo: Path, judge: Judge, head: str, prepare: Callable[[Path, str], None]
) -> None:
    prepare(repo, head)
    before = git(repo, "for-each-ref")
    with pytest.raises(WorktreeError) as raised:
        _make(judge, head)
    assert raised.value.code == "WORKTREE_CONFLICT"
    assert git(repo, "for-each-ref") == before
    assert list(Path(judge.git_dir, "tmp").iterdir()) == []


def test_a_name_that_is_packed_while_it_is_made_stays_as_packed(
    repo: Path, judge: Judge, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "theirs")
    theirs, looks = git(repo, "rev-parse", "HEAD"), []
    really = plain_pins._is_packed

    def look(*asked: object) -> bool:
        looks.append(really(*asked))  # type: ignore[arg-type]
        if len(looks) == 1:
            git(repo, "update-ref", NAME, theirs)
            git(repo, "pack-refs", "--all", "--prune")
        return looks[-1]

    monkeypatch.setattr(plain_pins, "_is_packed", look)
    with pytest.raises(WorktreeError):
        _make(judge, head)
    assert looks == [False, True]
    assert git(repo, "rev-parse", NAME) == theirs


def test_a_pin_that_is_packed_as_soon_as_it_is_there_is_made(
    repo: Path, judge: Judge, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_and_pack(draft: str, path: str) -> None:
        link(draft, path)
        git(repo, "pack-refs", "--all", "--prune")

    monkeypatch.setattr(os, "link", link_and_pack)
    assert plain_pins.create_pin(judge.facts, f"{judge.git_dir}/tmp", NAME, head)
    assert git(repo, "rev-parse", NAME) == head
    assert not (repo / ".git" / NAME).exists()


@pytest.mark.parametrize(
    "setting", [("core.sharedRepository", "group"), ("core.logAllRefUpdates", "always"), ("include.path", "other")]
)
def test_settings_that_change_what_a_ref_is_are_left_to_git(
    repo: Path, judge: Judge, head: str, setting: tuple[str, str]
) -> None:
    git(repo, "config", *setting)
    assert not plain_pins.create_pin(judge.facts, f"{judge.git_dir}/tmp", NAME, head)
    _make(judge, head)
    assert git(repo, "rev-parse", NAME) == head
    assert (repo / ".git/logs" / NAME).exists() == (setting[1] == "always")


def test_a_commit_that_is_not_there_is_not_pinned_and_a_packed_one_is_by_git(
    repo: Path, judge: Judge, head: str
) -> None:
    with pytest.raises(WorktreeError):
        _make(judge, "1" * 40)
    assert read_ref(str(repo / ".git"), NAME) is None
    git(repo, "gc", "-q")
    assert not plain_pins.create_pin(judge.facts, f"{judge.git_dir}/tmp", NAME, head)
    _make(judge, head)
    assert read_ref(str(repo / ".git"), NAME) == head


def test_only_a_pin_is_made_so(repo: Path, judge: Judge, head: str) -> None:
    for name in ("refs/heads/coordinate-agents/g1/a", "refs/coordinate-agents-other/x"):
        assert not plain_pins.create_pin(judge.facts, f"{judge.git_dir}/tmp", name, head)
        assert not (repo / ".git" / name).exists()
