"""The main job on small graphs: subtasks build on each other, all verified work is integrated, nothing else changes."""

import pytest
from world import World, commit_file, git

pytestmark = pytest.mark.story

# The shortest useful file of the documentation, word for word.
THREE = """\
checks: ["pytest -q"]
subtasks:
  - {id: schema, spec: Add the order tables and a migration.}
  - {id: api, dependsOn: schema, spec: Add the order endpoints.}
  - {id: ui, dependsOn: api, spec: Build the order form.}
"""


def test_three_subtasks_in_a_row_are_integrated(world: World) -> None:
    commit_file(world.root, "test_sample.py", "def test_sample():\n    assert True\n")
    before = world.user_state()
    done = world.run("graph-run", world.graph(THREE), "--integrate", "--json")
    assert done.code == 0, str(done)
    subtasks = {item["id"]: item for item in done.data["subtasks"]}
    assert done.data["graph"]["state"] == "INTEGRATED"
    assert [(name, item["state"]) for name, item in subtasks.items()] == [
        ("api", "SUCCEEDED"),
        ("schema", "SUCCEEDED"),
        ("ui", "SUCCEEDED"),
    ]
    assert subtasks["schema"]["base"] == git(world.root, "rev-parse", "main")
    assert subtasks["api"]["base"] == subtasks["schema"]["verifiedCommit"]
    assert subtasks["ui"]["base"] == subtasks["api"]["verifiedCommit"]
    for name, item in subtasks.items():
        assert item["verifiedCommit"] == git(world.root, "rev-parse", f"coordinate-agents/plan/{name}")
        assert [(check["outcome"], check["exitCode"]) for check in item["evidence"]["checks"]] == [("passed", 0)]
    assert world.files("coordinate-agents/plan/integration") == {
        "README.md": "# sample",
        "f-api": "api",
        "f-schema": "schema",
        "f-ui": "ui",
        "test_sample.py": "def test_sample():\n    assert True",
    }
    assert world.user_state() == before
    world.assert_nothing_left("plan")


def test_the_same_run_again_starts_nothing_and_succeeds(world: World) -> None:
    plan = world.graph("subtasks: [{id: a, spec: x}, {id: b, dependsOn: a, spec: x}]\n")
    first = world.run("graph-run", plan, "--integrate", "--json")
    log = world.log_lines()
    again = world.run("graph-run", plan, "--integrate", "--json")
    assert (first.code, again.code) == (0, 0), f"{first}\n{again}"
    assert world.log_lines() == log
    assert again.data["integration"]["commit"] == first.data["integration"]["commit"]


def test_a_diamond_ends_on_both_middles(world: World) -> None:
    plan = world.graph(
        "subtasks:\n"
        "  - {id: top, spec: x}\n"
        "  - {id: left, dependsOn: top, spec: x}\n"
        "  - {id: right, dependsOn: top, spec: x}\n"
        "  - {id: bottom, dependsOn: [left, right], spec: x, checks: [[test, -s, f-left], [test, -s, f-right]]}\n"
    )
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    bottom = next(item for item in done.data["subtasks"] if item["id"] == "bottom")
    assert [check["outcome"] for check in bottom["evidence"]["checks"]] == ["passed", "passed"]
    assert set(world.files("coordinate-agents/plan/integration")) == {
        "README.md", "f-top", "f-left", "f-right", "f-bottom",
    }  # fmt: skip
    # What bottom was given is one commit with both middles below it, made before its agent started.
    parents = git(world.root, "log", "-1", "--format=%P", bottom["base"]).split()
    assert parents == [git(world.root, "rev-parse", f"coordinate-agents/plan/{name}") for name in ("left", "right")]


def test_the_agent_of_a_diamond_sees_both_middles(world: World) -> None:
    """SC-03."""
    world.ways("commit", "needs-prerequisites")
    world.environment["FAKE_NEEDS"] = "left right"
    plan = world.graph(
        "subtasks:\n"
        "  - {id: left, spec: x}\n"
        "  - {id: right, spec: x}\n"
        "  - {id: bottom, dependsOn: [left, right], agent: needs-prerequisites, spec: x}\n"
    )
    done = world.run("graph-run", plan)
    assert done.code == 0, str(done)


def test_both_commits_of_one_agent_arrive(world: World) -> None:
    world.ways("two-commits")
    done = world.run("graph-run", world.graph("subtasks: [{id: a, agent: two-commits, spec: x}]\n"), "--integrate")
    assert done.code == 0, str(done)
    branch = "coordinate-agents/plan/integration"
    assert set(world.files(branch)) == {"README.md", "f-a-1", "f-a-2"}
    assert git(world.root, "log", "--format=%s", f"main..{branch}").splitlines()[-2:] == ["second half", "first half"]


def test_an_agent_that_takes_its_folder_from_pwd_works_in_its_worktree(world: World) -> None:
    world.ways("trusts-pwd")
    before = world.user_state()
    done = world.run("graph-run", world.graph("subtasks: [{id: a, agent: trusts-pwd, spec: x}]\n"), "--json")
    assert world.user_state() == before
    assert done.code == 0, str(done)


def test_two_subtasks_that_conflict_are_named_with_paths_and_what_was_applied(world: World) -> None:
    world.ways("replace-line")
    plan = world.graph(
        "subtasks:\n"
        "  - {id: alone, spec: x}\n"
        "  - {id: left, agent: replace-line, spec: x}\n"
        "  - {id: right, agent: replace-line, spec: x}\n"
    )
    before = world.user_state()
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 5, str(done)
    integration = world.status("plan")["integration"]
    assert integration["conflict"] == {
        "subtasks": ["left", "right"],
        "paths": ["shared.txt"],
        "applied": ["alone", "left"],
    }
    assert world.user_state() == before
    shown = world.run("graph-run", plan, "--integrate")
    assert shown.code == 5
    for word in ("left", "right", "shared.txt"):
        assert word in shown.out + shown.err
    world.assert_nothing_left("plan")


def test_a_subtask_whose_prerequisites_conflict_is_blocked_and_says_why(world: World) -> None:
    world.ways("replace-line")
    plan = world.graph(
        "subtasks:\n"
        "  - {id: left, agent: replace-line, spec: x}\n"
        "  - {id: right, agent: replace-line, spec: x}\n"
        "  - {id: join, dependsOn: [left, right], spec: x}\n"
    )
    done = world.run("graph-run", plan)
    assert done.code in (4, 5), str(done)
    data = world.status("plan")
    states = {item["id"]: item["state"] for item in data["subtasks"]}
    assert states == {"join": "BLOCKED", "left": "SUCCEEDED", "right": "SUCCEEDED"}
    join = next(item for item in data["subtasks"] if item["id"] == "join")
    for word in ("BASE_CONFLICT", "left", "right", "shared.txt"):
        assert word in f"{join['reason']} {join['failure']}"


def test_a_failure_stops_only_what_depends_on_it(world: World) -> None:
    world.ways("failing")
    plan = world.graph(
        "subtasks:\n"
        "  - {id: bad, agent: failing, spec: x}\n"
        "  - {id: after-bad, dependsOn: bad, spec: x}\n"
        "  - {id: good, spec: x}\n"
        "  - {id: after-good, dependsOn: good, spec: x}\n"
    )
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 4, str(done)
    data = world.status("plan")
    assert {item["id"]: item["state"] for item in data["subtasks"]} == {
        "after-bad": "BLOCKED", "after-good": "SUCCEEDED", "bad": "FAILED", "good": "SUCCEEDED",
    }  # fmt: skip
    bad = next(item for item in data["subtasks"] if item["id"] == "bad")
    assert (bad["failure"]["code"], bad["failure"]["exitCode"]) == ("AGENT_EXIT_NONZERO", 7)
    assert "cannot do it" in bad["failure"]["tail"]
    assert [item["subtask"] for item in data["attention"]] == ["bad"]


def test_one_subtask_is_run_without_a_graph_file_and_resumed_by_the_same_words(world: World) -> None:
    world.ways("commit", "nothing")
    words = ("graph-run", "--spec", "Add a parser\nand test it.", "--agent", "commit", "--json")
    checks = ("--check", "test -s f-task", "--check", "test -s README.md")
    done = world.run(*words, *checks)
    assert done.code == 0, str(done)
    [task] = done.data["subtasks"]
    assert [(check["name"], check["outcome"]) for check in task["evidence"]["checks"]] == [
        ("test -s f-task", "passed"),
        ("test -s README.md", "passed"),
    ]
    assert done.data["graph"]["title"] == "Add a parser"
    again = world.run(*words, *checks)
    assert (again.code, again.data["graph"]["id"]) == (0, done.data["graph"]["id"])
    assert again.data["subtasks"][0]["head"] == task["head"]
    # Other checks are another graph: what was verified by fewer of them does not count for it.
    other = world.run(*words, "--check", "false")
    assert (other.code, other.data["graph"]["id"] == done.data["graph"]["id"]) == (4, False)
    refused = world.run("graph-run", done.data["graph"]["id"], "--check", "true")
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        "INVALID_USAGE: --check and --agent belong to --spec; a graph names its own.",
    )
