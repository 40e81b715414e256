"""graph-cleanup and graph-undo: what goes, what stays and why, and that everything comes back."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from world import Done, World, git, until

pytestmark = pytest.mark.story

PLAN = "subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}, {id: bad, spec: x, agent: bad}]\n"
# Commits, changes, and leaves untracked and ignored files; then it fails.
BAD = 'echo work > "f-$S"; git add "f-$S"; git commit -qm work; echo m >> "f-$S"; echo u > u; mkdir out; echo r > out/r'


@pytest.fixture
def ended(world: World) -> World:
    """a and b succeeded, bad failed with a commit and unsaved files."""
    (world.root / ".gitignore").write_text("out/\n")
    git(world.root, "add", ".gitignore")
    git(world.root, "commit", "-q", "-m", "ignore")
    agent = world.agent(f"{BAD}; exit 1", "bad")
    good = world.agent('echo "$S" > "f-$S"; git add .; git commit -qm "$S"; mkdir -p out; echo report > out/r.txt')
    world.configure({"one": (good,), "bad": (agent,)})
    assert world.run("graph-run", world.graph(PLAN)).code == 4
    return world


def items(done: Done) -> dict[str, dict[str, Any]]:
    return {item["subtask"]: item for item in done.data["items"]}


def outcomes(done: Done) -> dict[str, tuple[str, str | None]]:
    return {name: (item["outcome"], item["reason"]) for name, item in items(done).items()}


def place(world: World, subtask: str) -> Path:
    found = {item["id"]: item["worktree"] for item in world.status("plan")["subtasks"]}[subtask]
    return Path(found)


def whole(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def discard(world: World, subtask: str) -> Done:
    """Both steps."""
    shown = world.run("graph-cleanup", "plan", "--discard", subtask, "--json")
    token = shown.data["items"][0]["token"]
    return world.run("graph-cleanup", "plan", "--discard", subtask, "--confirm", token, "--json")


def test_dry_run_lists_what_would_go_and_changes_nothing(ended: World) -> None:
    """CL-03: ignored files are listed with their sizes. A branch that is missing comes back in the act alone."""
    git(ended.root, "update-ref", "-d", "refs/heads/coordinate-agents/plan/b")
    before = whole(ended.worktrees), ended.run("graph-events", "plan", "--json").data["events"]
    done = ended.run("graph-cleanup", "plan", "--dry-run", "--json")
    assert done.code == 0, str(done)
    assert outcomes(done) == {"a": ("removed", None), "b": ("removed", None), "bad": ("refused", "dirty")}
    assert items(done)["a"]["files"] == [{"path": "out/r.txt", "bytes": 7}]
    assert (items(done)["a"]["bytes"], items(done)["a"]["branch"]) == (7, "coordinate-agents/plan/a")
    assert (whole(ended.worktrees), ended.run("graph-events", "plan", "--json").data["events"]) == before


def test_dirty_worktree_is_refused_with_its_files_and_the_others_go(ended: World) -> None:
    """CL-01, CL-04: every branch and commit stays."""
    user = ended.user_state()
    kept = whole(place(ended, "bad"))
    refs = git(ended.root, "for-each-ref", "refs/heads/coordinate-agents")
    done = ended.run("graph-cleanup", "plan", "--json")
    assert done.code == 1, str(done)
    assert outcomes(done) == {"a": ("removed", None), "b": ("removed", None), "bad": ("refused", "dirty")}
    bad = items(done)["bad"]
    assert bad["message"] == "uncommitted changes: f-bad; untracked files: u"
    assert (bad["code"], bad["next"]) == ("CLEANUP_REFUSED", "coordinate-agents graph-cleanup plan --discard bad")
    assert whole(place(ended, "bad")) == kept
    assert git(ended.root, "for-each-ref", "refs/heads/coordinate-agents") == refs
    assert git(ended.root, "worktree", "list", "--porcelain").count("worktree ") == 2
    subtasks = {item["id"]: (item["worktree"], item["branch"]) for item in ended.status("plan")["subtasks"]}
    assert subtasks["a"] == (None, "coordinate-agents/plan/a")
    again = ended.run("graph-cleanup", "plan", "--json")
    assert outcomes(again) == {"a": ("absent", "absent"), "b": ("absent", "absent"), "bad": ("refused", "dirty")}
    assert ended.run("graph-verify", "plan").code == 0
    gone = ended.run("graph-path", "plan", "a", "--json").document["error"]
    assert (gone["message"], gone["next"]) == (
        "Subtask a of graph plan has no worktree any more: it was removed.",
        "coordinate-agents graph-undo plan a",
    )
    assert ended.user_state() == user


def test_discard_shows_first_and_undo_brings_every_byte_back(ended: World) -> None:
    worktree = place(ended, "bad")
    before = whole(worktree)
    status = git(worktree, "status", "--porcelain", "--ignored")
    shown = ended.run("graph-cleanup", "plan", "--discard", "bad", "--json")
    assert (shown.code, outcomes(shown)) == (0, {"bad": ("kept", "confirm")})
    assert [file["path"] for file in items(shown)["bad"]["files"]] == ["f-bad", "u", "out/r"]
    assert whole(worktree) == before

    wrong = ended.run("graph-cleanup", "plan", "--discard", "bad", "--confirm", "0" * 16, "--json")
    assert (wrong.code, outcomes(wrong)) == (1, {"bad": ("refused", "changed")})
    assert whole(worktree) == before

    done = discard(ended, "bad")
    assert (done.code, outcomes(done)) == (0, {"bad": ("removed", None)})
    commit = items(done)["bad"]["discard"]
    assert git(ended.root, "rev-parse", "refs/coordinate-agents/plan/bad/discard-1") == commit
    assert not os.path.lexists(worktree)

    back = ended.run("graph-undo", "plan", "bad", "--json")
    assert back.code == 0, str(back)
    assert back.data["items"] == [
        {
            "subtask": "bad",
            "outcome": "restored",
            "message": None,
            "next": None,
            "worktree": str(worktree),
            "branch": "coordinate-agents/plan/bad",
            "discard": commit,
            "lost": [],
        }
    ]
    assert whole(worktree) == {**before, ".git": (worktree / ".git").read_bytes()}
    assert git(worktree, "status", "--porcelain", "--ignored") == status


def test_subtask_without_worktree_starts_again_from_its_kept_branch(world: World) -> None:
    """Removed and retried: a new worktree, the earlier commit in it, and setup runs again."""
    config = 'echo "$S" > "f-$COORDINATE_AGENTS_ATTEMPT"; git add "f-$COORDINATE_AGENTS_ATTEMPT"; git commit -qm x'
    agent = world.agent(f'{config}; ls > "$FAKE_LOG.$COORDINATE_AGENTS_ATTEMPT"; test -f f-2')
    world.configure({"one": (agent,)})
    path = world.home / ".config" / "coordinate-agents" / "config.yaml"
    path.write_text(path.read_text() + 'setup: [{run: [sh, -c, "echo made > made"]}]\n')
    assert world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n")).code == 4
    first = git(world.root, "rev-parse", "coordinate-agents/plan/a")
    assert outcomes(world.run("graph-cleanup", "plan", "--branches", "--json")) == {"a": ("removed", None)}
    assert git(world.root, "for-each-ref", "refs/heads/coordinate-agents") == ""

    again = world.run("graph-run", "plan", "--retry-failed", "--json")

    assert again.code == 0, str(again)
    assert Path(f"{world.log}.2").read_text().split() == ["README.md", "f-1", "f-2", "made"]
    assert git(world.root, "rev-parse", "coordinate-agents/plan/a~1") == first
    world.assert_nothing_left("plan")


def test_integrated_graph_asks_for_early_and_all_takes_the_integration_too(world: World) -> None:
    plan = world.graph("subtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-run", plan, "--integrate").code == 0
    refused = world.run("graph-cleanup", "plan", "--all", "--json")
    assert refused.code == 1
    error = refused.document["error"]
    assert (error["code"], error["next"]) == (
        "TASK_STATE_CONFLICT",
        "coordinate-agents graph-cleanup plan --early --all",
    )

    done = world.run("graph-cleanup", "plan", "--early", "--all", "--branches", "--json")

    assert outcomes(done) == {"a": ("removed", None), "integration": ("refused", "only-here")}
    assert items(done)["integration"]["message"] == (
        "no branch or tag of yours contains branch coordinate-agents/plan/integration, the result of the graph"
    )
    assert items(done)["integration"]["next"] == "coordinate-agents graph-deliver plan --branch NAME"
    assert list(world.worktrees.glob("*")) == []
    branches = git(world.root, "for-each-ref", "--format=%(refname:short)", "refs/heads/coordinate-agents")
    assert branches.split() == ["coordinate-agents/plan/integration"]
    assert world.status("plan")["graph"]["state"] == "INTEGRATED"
    git(world.root, "branch", "taken", "coordinate-agents/plan/integration")
    last = world.run("graph-cleanup", "plan", "--early", "--all", "--branches", "--json")
    assert outcomes(last) == {"a": ("absent", "absent"), "integration": ("absent", "absent")}
    assert git(world.root, "for-each-ref", "refs/heads/coordinate-agents") == ""
    assert world.run("graph-undo", "plan", "integration").code == 0
    assert place_of_integration(world).joinpath("f-a").exists()


def place_of_integration(world: World) -> Path:
    return Path(world.status("plan")["integration"]["worktree"])


def test_process_that_escaped_the_agent_keeps_the_worktree_until_it_ended(world: World) -> None:
    """CL-08: nothing is removed under it, and the folder does not come back."""
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"))
    assert done.code == 0, str(done)
    worktree = place(world, "a")
    writer = subprocess.Popen(["sleep", "60"], cwd=worktree, start_new_session=True)
    try:
        refused = world.run("graph-cleanup", "plan", "--json")
        looked = world.run("graph-status", "plan", "--json").data["subtasks"][0]["worktree"]
    finally:
        writer.kill()
        writer.wait()
    said = f"process {writer.pid} (sleep) stands in {worktree}"
    assert (refused.code, outcomes(refused)) == (1, {"a": ("refused", "in-use")})
    assert (items(refused)["a"]["message"], items(refused)["a"]["next"]) == (said, f"kill {writer.pid}")
    assert looked == str(worktree)
    assert outcomes(world.run("graph-cleanup", "plan", "--json")) == {"a": ("removed", None)}
    assert not os.path.lexists(worktree)


def test_cleanup_from_inside_the_worktree_works(world: World) -> None:
    """CL-11: the program stands on no folder that goes."""
    assert world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n")).code == 0
    worktree = place(world, "a")
    command = world.command("graph-cleanup", "plan", "--json")

    def called(argv: list[str]) -> subprocess.CompletedProcess[str]:
        environment = {**world.environment, "PWD": str(worktree)}
        return subprocess.run(argv, cwd=worktree, env=environment, capture_output=True, text=True, timeout=60)

    refused = called(["sh", "-c", f"{shlex.join(command)}; exit $?"])
    # Its own shell shall leave, not be killed.
    (item,) = json.loads(refused.stdout)["data"]["items"]
    assert (item["reason"], item["next"]) == ("in-use", f"cd {world.root}")
    done = called(command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not os.path.lexists(worktree)
    assert git(world.root, "worktree", "list", "--porcelain").count("worktree ") == 1


def test_two_cleanups_at_once_remove_once_and_neither_fails_halfway(world: World) -> None:
    """CL-11: the second waits its turn, or says who is at it."""
    plan = world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x}]\n")
    assert world.run("graph-run", plan).code == 0
    both = [world.start("graph-cleanup", "plan", "--json") for _ in range(2)]
    codes = [each.wait(60) for each in both]
    assert 0 in codes, world.said()
    assert set(codes) <= {0, 1}, world.said()
    assert outcomes(world.run("graph-cleanup", "plan", "--json")) == dict.fromkeys("abc", ("absent", "absent"))
    assert "LEASE_HELD" in world.said() or codes == [0, 0]
    events = [event["type"] for event in world.run("graph-events", "plan", "--json").data["events"]]
    assert events.count("WorktreeRemoved") == 3


def test_worktree_of_an_ended_subtask_goes_while_another_one_runs(world: World) -> None:
    """A live driver carries the request out; the running one is not touched."""
    world.hold("b")
    run = world.start("graph-run", world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"))
    world.wait_for_start("b")
    until(lambda: world.status("plan")["subtasks"][0]["state"] == "SUCCEEDED" or None, "a succeeds")
    done = world.run("graph-cleanup", "plan", "--json")
    assert (done.code, outcomes(done)) == (0, {"a": ("removed", None), "b": ("kept", "unfinished")}), str(done)
    assert items(done)["b"]["next"] == "coordinate-agents graph-stop plan b"
    back = world.run("graph-undo", "plan", "--json")
    assert [item["outcome"] for item in back.data["items"]] == ["restored"]
    world.release("b")
    assert run.wait(60) == 0, world.said()
    world.assert_nothing_left("plan")


def test_teardown_runs_in_the_worktree_first_and_one_that_fails_keeps_it(world: World) -> None:
    path = world.home / ".config" / "coordinate-agents" / "config.yaml"
    text = 'teardown: [{run: [sh, -c, "pwd >> $FAKE_LOG.down; test -f $FAKE_LOG.may"]}]\n'
    path.write_text(path.read_text() + text)
    assert world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n")).code == 0
    worktree = place(world, "a")
    refused = world.run("graph-cleanup", "plan", "--json")
    assert outcomes(refused) == {"a": ("refused", "teardown")}
    assert "ended with exit code 1; its output is in " in items(refused)["a"]["message"]
    assert worktree.is_dir()
    Path(f"{world.log}.may").touch()
    assert outcomes(world.run("graph-cleanup", "plan", "--json")) == {"a": ("removed", None)}
    assert Path(f"{world.log}.down").read_text().split() == [str(worktree), str(worktree)]
    events = world.run("graph-events", "plan", "--json").data["events"]
    assert [event["data"]["exit_code"] for event in events if event["type"] == "TeardownEnded"] == [1, 0]
    world.assert_nothing_left("plan")


def test_files_that_keep_protects_and_edited_copies_stay(world: World) -> None:
    (world.root / ".gitignore").write_text("*.sqlite\n.env\n")
    git(world.root, "add", ".gitignore")
    git(world.root, "commit", "-q", "-m", "ignore")
    (world.root / ".env").write_text("A=1\n")
    agent = world.agent(
        'echo x > "x-$S"; git add .; git commit -qm x; test "$S" = a && echo d > db.sqlite || echo e > .env'
    )
    world.configure({"one": (agent,)})
    path = world.home / ".config" / "coordinate-agents" / "config.yaml"
    path.write_text(path.read_text() + 'keep: ["*.sqlite"]\ncopy: [".env"]\n')
    assert world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x}]\n")).code == 0
    done = world.run("graph-cleanup", "plan", "--json")
    assert outcomes(done) == {"a": ("refused", "kept"), "b": ("refused", "copied")}
    assert items(done)["a"]["message"] == "files that `keep` protects: db.sqlite"
    assert items(done)["b"]["message"] == "copied files that differ from your checkout's: .env"
    assert outcomes(discard(world, "a")) == {"a": ("removed", None)}
    assert outcomes(discard(world, "b")) == {"b": ("removed", None)}
    assert world.run("graph-undo", "plan").code == 0
    assert place(world, "a").joinpath("db.sqlite").read_text() == "d\n"
    assert place(world, "b").joinpath(".env").read_text() == "e\n"
    assert (world.root / ".env").read_text() == "A=1\n"


def test_forgotten_graph_leaves_the_list_and_its_output_goes_while_its_record_stays(world: World) -> None:
    plan = world.graph("subtasks: [{id: a, spec: x, checks: [[test, -f, f-a]]}]\n")
    assert world.run("graph-run", plan, "--integrate").code == 0
    early = world.run("graph-forget", "plan", "--json")
    assert early.document["error"]["message"] == (
        "Graph plan cannot be forgotten: the worktree of a, integration is there."
    )
    assert world.run("graph-cleanup", "plan", "--all", "--early", "--branches").code == 1
    sessions = world.root / ".git/coordinate-agents/sessions"
    assert len(list(sessions.glob("plan.*"))) == 2
    before = world.user_state()

    looked = world.run("graph-forget", "plan", "--dry-run", "--json").data
    assert (looked["sessions"], looked["pins"]["dropped"]) == (2, False)
    assert len(list(sessions.glob("plan.*"))) == 2
    done = world.run("graph-forget", "plan", "--json")

    assert (done.code, done.data["sessions"], done.data["pins"]["dropped"]) == (0, 2, False), str(done)
    assert list(sessions.glob("plan.*")) == []
    assert world.run("graph-list", "--json").data == {"graphs": []}
    assert world.status("plan")["graph"]["state"] == "INTEGRATED"
    assert world.run("graph-verify", "plan").code == 0
    assert world.run("graph-export", "plan", "--json").data["events"][-1]["type"] == "GraphForgotten"
    refused = world.run("graph-run", "plan", "--json")
    assert refused.document["error"]["message"].startswith("Graph plan was forgotten")
    pins = git(world.root, "for-each-ref", "refs/coordinate-agents/plan")
    assert pins != ""
    last = world.run("graph-forget", "plan", "--pins", "--json").data["pins"]
    assert (last["count"], last["dropped"]) == (len(pins.splitlines()), True)
    assert last["onlyHere"] == 0, "the integration's branch holds every commit"
    assert git(world.root, "for-each-ref", "refs/coordinate-agents/plan") == ""
    assert world.user_state() == before


def test_approved_graph_is_cleaned_without_a_further_word(world: World) -> None:
    plan = world.graph("subtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-run", plan, "--integrate").code == 0
    approved = world.run("graph-review", "plan", "--decision", "REVIEW_APPROVED", "--json")
    assert approved.code == 0, str(approved)
    done = world.run("graph-cleanup", "plan", "--all", "--json")
    assert outcomes(done) == {"a": ("removed", None), "integration": ("removed", None)}
    assert world.status("plan")["graph"]["state"] == "APPROVED"
    assert list(world.worktrees.glob("*")) == []
