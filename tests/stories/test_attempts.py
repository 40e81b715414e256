"""What one subtask's attempts look like: fix turns, next attempts, time-outs, setup, who commits, what is expected."""

from typing import Any

import pytest
from world import World, commit_file, git

pytestmark = pytest.mark.story

COMMIT = 'echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"'


def only(data: Any) -> Any:
    (subtask,) = data["subtasks"]
    return subtask


def configure(world: World, body: str, *more: str, top: str = "") -> None:
    """One agent of this shell text, with further lines of its own and of the file's top level."""
    program = world.agent(body)
    lines = ["version: 1", *([top] if top else []), "agents:", "  one:", f"    command: {program}", *more]
    world.configure_text("\n".join(lines) + "\n")


def test_a_failing_check_goes_back_to_an_agent_that_can_continue(world: World) -> None:
    configure(
        world,
        f'case "$1" in again) cp "$2" seen.txt; echo good > mark;; *) {COMMIT}; echo bad > mark;; esac\n'
        'git add -A; git commit -q -m "turn"',
        '    args: ["first"]',
        '    resumeArgs: ["again", "{promptFile}"]',
    )
    plan = world.graph('checks: ["grep -q good mark"]\nsubtasks: [{id: a, spec: x}]\n')
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    subtask = only(done.data)
    assert (subtask["state"], subtask["attempt"]) == ("SUCCEEDED", 1)
    seen = git(world.root, "show", f"{subtask['verifiedCommit']}:seen.txt")
    assert "is not accepted yet" in seen
    assert "failed with exit code 1" in seen


def test_an_agent_that_cannot_continue_gets_no_fix_turn_and_the_failure_says_why(world: World) -> None:
    configure(world, COMMIT)
    plan = world.graph('checks: [[sh, -c, "echo the tables are missing; exit 3"]]\nsubtasks: [{id: a, spec: x}]\n')
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4, str(done)
    failure = only(done.data)["failure"]
    assert (failure["code"], failure["exitCode"]) == ("CHECK_FAILED", 3)
    assert "the tables are missing" in failure["tail"]
    assert failure["kept"] and failure["next"] and failure["logPath"]
    assert git(world.root, "rev-parse", "coordinate-agents/plan/a") == only(done.data)["head"]


def test_the_next_attempt_goes_on_in_the_same_worktree_from_the_same_base(world: World) -> None:
    configure(world, f'if [ "$COORDINATE_AGENTS_ATTEMPT" = 1 ]; then echo half > half; exit 5; fi\n{COMMIT}')
    plan = world.graph("subtasks: [{id: a, spec: x, attempts: 2}]\n")
    base = git(world.root, "rev-parse", "main")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    subtask = only(done.data)
    assert (subtask["attempt"], subtask["base"]) == (2, base)
    assert git(world.root, "show", f"{subtask['verifiedCommit']}:half") == "half"


def test_attempts_that_are_used_up_end_as_failed_and_retry_failed_starts_afresh(world: World) -> None:
    configure(world, f'echo "$COORDINATE_AGENTS_ATTEMPT" >> {world.place}/attempts; exit 7')
    plan = world.graph("subtasks: [{id: a, spec: x, attempts: 2}, {id: b, spec: x, dependsOn: a}]\n")
    assert world.run("graph-run", plan).code == 4
    assert (world.place / "attempts").read_text() == "1\n2\n"
    assert world.run("graph-run", plan).code == 4
    assert (world.place / "attempts").read_text() == "1\n2\n"
    configure(world, COMMIT)
    again = world.run("graph-run", plan, "--retry-failed", "--json")
    # The configuration was frozen when the graph was created, but the program at its path is the new one.
    assert again.code == 0, str(again)
    assert [(item["id"], item["attempt"]) for item in again.data["subtasks"]] == [("a", 3), ("b", 1)]


def test_good_commit_behind_a_bad_exit_is_named_and_kept(world: World) -> None:
    """EV-17."""
    configure(world, f"{COMMIT}; exit 1")
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 4
    subtask = only(done.data)
    tip = git(world.root, "rev-parse", "coordinate-agents/plan/a")
    assert subtask["failure"]["code"] == "AGENT_EXIT_NONZERO"
    assert f"exited 1, commit {tip[:12]} present, not verified" in subtask["failure"]["message"]


def test_a_time_out_ends_the_whole_process_tree(world: World) -> None:
    configure(world, 'setsid sh -c "trap : TERM HUP INT; while :; do sleep 1; done" &\ntrap : TERM HUP INT\nsleep 600')
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x, timeout: 1s}]\n"), "--json")
    assert done.code == 4
    assert only(done.data)["failure"]["code"] == "AGENT_TIMEOUT"
    world.assert_nothing_left("plan")


def test_idle_agent_is_ended_only_when_the_file_asks_for_it(world: World) -> None:
    configure(world, "sleep 600")
    plan = world.graph("subtasks: [{id: a, spec: x, idleTimeout: 1s, onIdle: stop}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4
    assert "printed nothing" in only(done.data)["failure"]["message"]
    world.assert_nothing_left("plan")


def test_the_runtime_commits_for_an_agent_that_leaves_it_to_the_runtime(world: World) -> None:
    configure(world, "echo new > new.txt; echo more >> README.md")
    plan = world.graph("subtasks: [{id: a, title: Add a file, commit: runtime}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    commit = only(done.data)["verifiedCommit"]
    assert git(world.root, "show", "-s", "--format=%s", commit) == "Add a file"
    body = git(world.root, "show", "-s", "--format=%(trailers)", commit)
    assert "Coordinate-Agents-Subtask: a" in body
    assert git(world.root, "diff-tree", "-r", "--name-only", "--no-commit-id", commit).splitlines() == [
        "README.md",
        "new.txt",
    ]


@pytest.mark.parametrize(
    ("expect", "body", "state"),
    [
        ("nothing", "true", "SUCCEEDED"),
        ("nothing", COMMIT, "FAILED"),
        ("nothing", "echo x > x", "FAILED"),
        ("either", "true", "SUCCEEDED"),
        ("either", COMMIT, "SUCCEEDED"),
        ("commit", "true", "FAILED"),
    ],
)
def test_what_a_subtask_promises_is_what_it_must_do(world: World, expect: str, body: str, state: str) -> None:
    configure(world, body)
    done = world.run("graph-run", world.graph(f"subtasks: [{{id: a, spec: x, expect: {expect}}}]\n"), "--json")
    assert only(done.data)["state"] == state, str(done)


def test_setup_copies_links_and_commands_are_blamed_on_nobody(world: World) -> None:
    (world.root / ".gitignore").write_text(".env\nnode_modules\n")
    git(world.root, "add", ".gitignore")
    git(world.root, "commit", "-q", "-m", "ignore")
    (world.root / ".env").write_text("SECRET=1\n")
    (world.root / "node_modules").mkdir()
    (world.root / "node_modules" / "lib.js").write_text("x\n")
    top = 'setup: [{run: [sh, -c, "echo built > generated.txt"]}]\ncopy: [".env"]\nlink: [node_modules]'
    configure(
        world,
        f"test -f .env; test -f node_modules/lib.js; test -f generated.txt\n{COMMIT.replace('-A', 'f-*')}",
        top=top,
    )
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 0, str(done)
    assert (world.root / "node_modules" / "lib.js").read_text() == "x\n"


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        ('[sh, -c, "echo no compiler; exit 4"]', "exit code 4: no compiler"),
        ('[sh, -c, "echo x >> README.md"]', "setup changed 1 tracked file: README.md"),
        ("[no-such-program]", "no-such-program"),
    ],
)
def test_setup_that_fails_is_named_and_no_agent_starts(world: World, setup: str, told: str) -> None:
    configure(world, f"touch {world.place}/started", top=f"setup: [{{run: {setup}}}]")
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 4
    failure = only(done.data)["failure"]
    assert told in failure["message"]
    assert failure["code"] in ("SETUP_FAILED", "EXECUTABLE_NOT_FOUND")
    assert not (world.place / "started").exists()


def test_protected_tests_are_set_back_before_a_check_runs(world: World) -> None:
    (world.root / "tests").mkdir()
    (world.root / "tests" / "run.sh").write_text("test -f wanted\n")
    git(world.root, "add", "tests")
    git(world.root, "commit", "-q", "-m", "a test")
    configure(world, f"echo true > tests/run.sh\n{COMMIT}")
    check = '{name: t, run: [sh, tests/run.sh], protect: ["tests/**"]}'
    done = world.run("graph-run", world.graph(f"checks: [{check}]\nsubtasks: [{{id: a, spec: x}}]\n"), "--json")
    assert done.code == 4, str(done)
    assert only(done.data)["failure"]["code"] == "CHECK_FAILED"
    unprotected = world.graph("id: open\nchecks: [[sh, tests/run.sh]]\nsubtasks: [{id: a, spec: x}]\n", "open.yaml")
    assert world.run("graph-run", unprotected, "--json").code == 0


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        ('{name: c, run: [sleep, "600"], timeout: 1s}', "timed-out"),
        ("{name: c, run: [no-such-check]}", "error"),
        ("{name: c, run: [sh, -c, 'kill -9 $$']}", "failed"),
    ],
)
def test_a_check_that_cannot_pass_is_recorded_as_what_happened(world: World, check: str, outcome: str) -> None:
    configure(world, COMMIT)
    done = world.run("graph-run", world.graph(f"checks: [{check}]\nsubtasks: [{{id: a, spec: x}}]\n"), "--json")
    assert done.code == 4
    assert only(done.data)["evidence"]["checks"][0]["outcome"] == outcome, str(done)


def test_what_checks_leave_behind_is_not_blamed_on_the_agent(world: World) -> None:
    configure(world, COMMIT)
    check = '[sh, -c, "echo made > gen.txt; sleep 300 & yes | head -c 200000; exit 0"]'
    done = world.run("graph-run", world.graph(f"checks: [{check}]\nsubtasks: [{{id: a, spec: x}}]\n"), "--json")
    assert done.code == 0, str(done)
    world.assert_nothing_left("plan")


def test_strict_scope_refuses_what_observe_records(world: World) -> None:
    configure(world, COMMIT)
    for policy, code in (("strict", 4), ("warn", 0), ("observe", 0)):
        text = f"id: {policy}\nscopePolicy: {policy}\nsubtasks: [{{id: a, spec: x, writes: [src]}}]\n"
        done = world.run("graph-run", world.graph(text, f"{policy}.yaml"), "--json")
        assert done.code == code, str(done)
        subtask = only(done.data)
        assert subtask["evidence"]["outsideScope"] == ["f-a"]
        assert bool(subtask["reason"]) == (policy != "observe")


def test_values_of_configured_variables_reach_the_agent_and_no_record(world: World) -> None:
    configure(world, f'test "$LEVEL" = "value-7f3a91c2"\n{COMMIT}', '    env: {LEVEL: "value-7f3a91c2"}')
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 0, str(done)
    state = world.root / ".git" / "coordinate-agents"
    assert [path for path in state.rglob("*") if path.is_file() and b"value-7f3a91c2" in path.read_bytes()] == []


def test_a_variable_that_is_gone_from_the_configuration_is_an_error_and_nothing_starts(world: World) -> None:
    configure(world, COMMIT, '    env: {LEVEL: "2"}')
    plan = world.graph("subtasks: [{id: a, spec: x}]\n")
    assert world.run("graph-create", plan).code == 0
    configure(world, COMMIT)
    done = world.run("graph-run", "plan", "--json")
    assert done.code == 2, str(done)
    assert done.document["error"]["code"] == "INVALID_AGENT_CONFIG"
    assert "LEVEL" in done.document["error"]["message"]


def test_a_second_attempt_and_a_retry_work_in_a_repository_that_copies_files(world: World) -> None:
    """The copied file was there from the first attempt, and every later one failed for it."""
    commit_file(world.root, ".gitignore", ".env\n")
    (world.root / ".env").write_text("SECRET=1\n")
    agent = world.agent(
        'cat .env >/dev/null; [ "$COORDINATE_AGENTS_ATTEMPT" -lt 3 ] || echo x > good\n'
        'echo "$COORDINATE_AGENTS_ATTEMPT" > f; git add -A; git commit -qm x'
    )
    world.configure({"one": (agent,)})
    config = world.home / ".config" / "coordinate-agents" / "config.yaml"
    config.write_text(config.read_text() + 'copy: [".env"]\n')
    plan = world.graph("checks: ['test -f good']\nsubtasks: [{id: a, spec: x, attempts: 2, fixTurns: 0}]\n")
    failed = world.run("graph-run", plan, "--json")
    assert (failed.code, failed.data["subtasks"][0]["failure"]["code"]) == (4, "CHECK_FAILED"), str(failed)
    assert world.run("graph-run", plan, "--retry-failed", "--integrate").code == 0
