"""What was verified survives a power cut: objects, then the pin, then (by the caller) the record."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import GRAPH, Bench, agent
from repos import git

from coordinate_agents.worktrees.durable import pin_verified, secure
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.ownership import Record, write_record


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def test_new_objects_their_folders_and_the_pin_are_synced_in_this_order(bench: Bench, synced: list[str]) -> None:
    worktree = bench.worktree()
    write_record(bench.judge.facts, GRAPH, "a", Record(worktree, "ready"))
    agent(worktree, "echo x > x; git add x; git commit -qm x")
    head = git(worktree.path, "rev-parse", "HEAD")
    new = [head, git(worktree.path, "rev-parse", "HEAD^{tree}"), git(worktree.path, "rev-parse", "HEAD:x")]
    objects = bench.repo / ".git" / "objects"
    synced.clear()

    name = pin_verified(bench.judge, GRAPH, "a", head)

    assert name == f"refs/coordinate-agents/{GRAPH}/a/verified-1"
    assert git(bench.repo, "rev-parse", name) == head
    files = [str(objects / oid[:2] / oid[2:]) for oid in new]
    folders = list(dict.fromkeys(str(objects / oid[:2]) for oid in new))
    assert sorted(synced[:3]) == sorted(files)
    assert sorted(synced[3 : 3 + len(folders)]) == sorted(folders)
    after = synced[3 + len(folders) :]
    assert after[:2] == [str(objects), str(bench.repo / ".git" / name)]
    assert after[-1] == str(bench.repo / ".git")


def test_commit_without_a_blob_is_never_pinned_as_verified(bench: Bench) -> None:
    worktree = bench.worktree()
    write_record(bench.judge.facts, GRAPH, "a", Record(worktree, "ready"))
    agent(worktree, "echo x > x; git add x; git commit -qm x")
    blob = git(worktree.path, "rev-parse", "HEAD:x")
    (bench.repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(WorktreeError) as caught:
        pin_verified(bench.judge, GRAPH, "a", git(worktree.path, "rev-parse", "HEAD"))

    assert caught.value.code == "EVIDENCE_REJECTED"
    assert git(bench.repo, "for-each-ref", f"refs/coordinate-agents/{GRAPH}") == ""


def test_packed_objects_need_no_sync(bench: Bench, synced: list[str]) -> None:
    head = bench.head_of("a", bench.head(), {"a": "1"})
    git(bench.repo, "update-ref", "refs/heads/a", head.commit)
    git(bench.repo, "repack", "-adq")
    assert bench.judge
    synced.clear()

    secure(bench.judge, [bench.head()], head.commit)

    assert synced == []


def test_many_objects_are_synced_by_one_call(bench: Bench, synced: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: whole.append("sync"))
    head = bench.head_of("a", bench.head(), {f"f{number}": str(number) for number in range(300)})
    assert bench.judge
    synced.clear()

    secure(bench.judge, [bench.head()], head.commit)

    assert (whole, synced) == (["sync"], [])
