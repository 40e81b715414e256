"""The record damaged under work that remains, and a restarted machine: what is there is found, not replaced."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from world import World, git, until

pytestmark = pytest.mark.story

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
# Commits one line, then waits at its gate before it ends.
_COMMITS_AND_WAITS = """
echo "$COORDINATE_AGENTS_ATTEMPT" >> "f-$S"
git add -A
git commit -qm "work of $S"
echo "start $S $COORDINATE_AGENTS_ATTEMPT $$ $(pwd)" >> "$FAKE_LOG"
while [ -e "$FAKE_GATES/$S.hold" ]; do sleep 0.02; done
echo "end $S $COORDINATE_AGENTS_ATTEMPT $$ $(pwd)" >> "$FAKE_LOG"
"""


def _state(world: World) -> Path:
    return world.root / ".git" / "coordinate-agents"


def _item(world: World, subtask: str) -> Any:
    return next(item for item in world.status("plan")["subtasks"] if item["id"] == subtask)


def _newer(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 999")
    connection.close()


_DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (lambda database: os.truncate(database, database.stat().st_size - 7), "STATE_TAMPERED"),
    "empty": (lambda database: os.truncate(database, 0), "STATE_TAMPERED"),
    "removed": (lambda database: database.unlink(), "STATE_TAMPERED"),
    "version 999": (_newer, "REPOSITORY_UNSUPPORTED"),
}


@pytest.mark.parametrize("name", _DAMAGE)
def test_a_damaged_record_stops_every_verb_and_no_worktree_is_taken_for_a_strangers(world: World, name: str) -> None:
    """RC-02."""
    plan, before = world.graph(PLAN), world.user_state()
    assert world.run("graph-run", plan).code == 0
    worktrees = [Path(_item(world, subtask)["worktree"]) for subtask in ("a", "b")]
    refs, listed = git(world.root, "for-each-ref"), git(world.root, "worktree", "list")
    database, kept = _state(world) / "state.db", world.place / "kept.db"
    shutil.copy(database, kept)
    damage, code = _DAMAGE[name]
    damage(database)
    damaged = database.read_bytes() if database.exists() else None
    for words in (
        ("graph-list",),
        ("graph-status", "plan"),
        ("graph-resume", "plan", "a", "--redo"),
        ("graph-recover", "plan"),
        ("graph-cleanup", "plan"),
        ("graph-run", plan),
    ):
        done = world.run(*words, "--json")
        assert done.code != 0, str(done)
        assert done.document["error"]["code"] == code, str(done)
    assert (database.read_bytes() if database.exists() else None) == damaged
    assert (git(world.root, "for-each-ref"), git(world.root, "worktree", "list")) == (refs, listed)
    assert all(worktree.is_dir() for worktree in worktrees)
    shutil.copy(kept, database)
    assert [item["state"] for item in world.status("plan")["subtasks"]] == ["SUCCEEDED", "SUCCEEDED"]
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_work_whose_whole_record_was_removed_is_kept_and_a_new_graph_goes_beside_it(world: World) -> None:
    """RC-02."""
    plan = world.graph(PLAN)
    assert world.run("graph-run", plan).code == 0
    worktrees = [Path(_item(world, subtask)["worktree"]) for subtask in ("a", "b")]
    refs = set(git(world.root, "for-each-ref").splitlines())
    shutil.rmtree(_state(world))
    refused = world.run("graph-run", plan, "--json")
    error = refused.document["error"]
    assert (refused.code, error["code"]) == (1, "WORKTREE_CONFLICT"), str(refused)
    program, *words = error["next"].split(" ")
    assert (program, words) == ("coordinate-agents", ["graph-create", str(plan), "--as", "plan-2"])
    assert world.run(*words).code == 0
    assert world.run("graph-run", "plan-2").code == 0
    assert refs <= set(git(world.root, "for-each-ref").splitlines())
    assert all(worktree.is_dir() for worktree in worktrees)


def _killed_run(world: World) -> None:
    """The driver, the host and the agent of `a` die while the agent stands at its gate, as in a power cut."""
    run = world.start("graph-run", world.graph(PLAN))
    agent = psutil.Process(world.wait_for_start("a"))
    host = agent.parent()
    assert host is not None
    run.kill()
    run.wait(30)
    host.kill()
    until(lambda: not agent.is_running() or None, "the agent dies with its host")


@pytest.mark.parametrize("torn", ["half a row more", "last row cut"])
def test_a_torn_last_row_costs_that_row_only_and_the_same_command_finishes(world: World, torn: str) -> None:
    """RC-02."""
    world.hold("a")
    _killed_run(world)
    log = _state(world) / "state.db-wal"
    if torn == "half a row more":
        with log.open("ab") as file:
            file.write(log.read_bytes()[32:2000])
    else:
        os.truncate(log, log.stat().st_size - 7)
    world.release("a")
    done = world.run("graph-run", world.place / "plan.yaml", "--json")
    assert done.code == 0, str(done)
    assert [item["state"] for item in done.data["subtasks"]] == ["SUCCEEDED", "SUCCEEDED"]
    assert [line[1] for line in world.log_lines() if line[0] == "end"] == ["a", "b"]
    world.assert_nothing_left("plan")


def test_after_a_restart_of_the_machine_sessions_are_lost_commits_are_found_and_work_goes_on(world: World) -> None:
    """RC-09."""
    world.configure({"one": (world.agent(_COMMITS_AND_WAITS),)})
    world.environment.pop("COORDINATE_AGENTS_WORKTREES")
    world.hold("a")
    _killed_run(world)
    worktree = Path(_item(world, "a")["worktree"])
    assert worktree.is_relative_to(world.home / ".local" / "state"), "the default place outlives a restart"
    commit = git(world.root, "rev-parse", "coordinate-agents/plan/a")
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        _restart(world, stranger.pid)
        told = world.run("graph-recover", "plan", "--json")
        assert (told.code, told.data["recover"]["changed"]) == (0, ["a"]), str(told)
        item = _item(world, "a")
        assert (item["state"], item["reason"]) == ("STOPPED", "interrupted: one's Session host died"), item
        assert git(world.root, "rev-parse", "coordinate-agents/plan/a") == commit
        world.release("a")
        again = world.run("graph-resume", "plan", "--run", "--json")
        assert again.code == 0, str(again)
        assert stranger.poll() is None, "nobody signals the process that has the number now"
    finally:
        stranger.kill()
        stranger.wait()
    assert [item["state"] for item in world.status("plan")["subtasks"]] == ["SUCCEEDED", "SUCCEEDED"]
    # Both attempts' commits, the first one's below the second's.
    assert world.files("coordinate-agents/plan/a")["f-a"] == "1\n2"
    git(world.root, "merge-base", "--is-ancestor", commit, "coordinate-agents/plan/a")
    world.assert_nothing_left("plan")


def _restart(world: World, stranger: int) -> None:
    """Every recorded process is of an earlier boot and its number somebody else's now; what lived in memory is gone."""
    records = [*_state(world).glob("sessions/*/record.json"), *_state(world).glob("leases/*.json")]
    assert len(records) == 2, records
    for path in records:
        raw = json.loads(path.read_text())
        found = [raw[key] for key in ("host", "child", "process") if raw.get(key)]
        assert found, raw
        for process in found:
            process.update(boot_id="an-earlier-boot", pid=stranger)
        path.write_text(json.dumps(raw))
    for folder in Path(os.environ["XDG_RUNTIME_DIR"]).iterdir():
        shutil.rmtree(folder)
