"""Who starts when: blocked and healthy arms, limits that do not leak, order, bases, and what --until means."""

import shlex

import pytest
from world import World, git, until

pytestmark = pytest.mark.story


def states(data: object) -> dict[str, str]:
    return {item["id"]: item["state"] for item in data["subtasks"]}  # type: ignore[index]


def test_a_failure_blocks_its_descendants_and_the_run_ends(world: World) -> None:
    world.ways("failing")
    text = (
        "subtasks: [{id: a, spec: x, agent: failing}, {id: b, spec: x, dependsOn: a}, {id: c, spec: x, dependsOn: b}]\n"
    )
    done = world.run("graph-run", world.graph(text), "--json")
    assert done.code == 4, str(done)
    assert states(done.data) == {"a": "FAILED", "b": "BLOCKED", "c": "BLOCKED"}
    assert "a" in done.data["subtasks"][2]["reason"]
    assert done.data["attention"][0]["subtask"] == "a"
    assert done.data["attention"][0]["next"].startswith("coordinate-agents ")


def test_the_healthy_arm_of_a_diamond_finishes(world: World) -> None:
    world.ways("failing")
    world.hold("c")
    text = """subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, dependsOn: a, agent: failing}
  - {id: c, spec: x, dependsOn: a}
  - {id: d, spec: x, dependsOn: [b, c]}
"""
    run = world.start("graph-run", world.graph(text))
    world.wait_for_start("c")
    until(lambda: states(world.status("plan"))["b"] == "FAILED" or None, "b fails while c is at work")
    world.release("c")
    assert run.wait(60) == 4
    assert states(world.status("plan")) == {"a": "SUCCEEDED", "b": "FAILED", "c": "SUCCEEDED", "d": "BLOCKED"}


def test_starts_that_fail_give_their_slot_back(world: World) -> None:
    """SC-07."""
    world.configure({"one": (world.agent('echo "$S" > f; git add f; git commit -qm x'),), "gone": ("/no/such/binary",)})
    tasks = [f"{{id: x{n}, spec: x, agent: gone}}" for n in range(3)] + [f"{{id: y{n}, spec: x}}" for n in range(3)]
    done = world.run("graph-run", world.graph(f"maxConcurrency: 2\nsubtasks: [{', '.join(tasks)}]\n"), "--json")
    assert done.code == 4, str(done)
    assert list(states(done.data).values()) == ["FAILED"] * 3 + ["SUCCEEDED"] * 3
    assert done.data["subtasks"][0]["failure"]["code"] == "EXECUTABLE_NOT_FOUND"


def test_the_order_with_one_slot_is_the_same_each_time_and_follows_priority(world: World) -> None:
    text = """maxConcurrency: 1
subtasks:
  - {id: c, spec: x}
  - {id: b, spec: x, priority: 5}
  - {id: a, spec: x}
  - {id: d, spec: x, dependsOn: c}
"""
    for name in ("one", "two"):
        assert world.run("graph-run", world.graph(f"id: {name}\n{text}", f"{name}.yaml")).code == 0
    order = [line[1] for line in world.log_lines() if line[0] == "start"]
    assert order == ["b", "c", "a", "d"] * 2


def test_two_writers_of_one_path_never_run_at_once(world: World) -> None:
    world.hold("a")
    text = """subtasks:
  - {id: a, spec: x, writes: ["src/**"]}
  - {id: b, spec: x, writes: ["src/x.py"]}
  - {id: c, spec: x, writes: ["docs/**"]}
"""
    run = world.start("graph-run", world.graph(text))
    world.wait_for_start("a")
    until(lambda: ["end", "c"] in [line[:2] for line in world.log_lines()] or None, "c, which writes elsewhere, ends")
    waiting = next(item for item in world.status("plan")["subtasks"] if item["id"] == "b")
    assert waiting["state"] == "READY"
    world.release("a")
    assert run.wait(60) == 0, world.said()
    assert [line[:2] for line in world.log_lines() if line[1] != "c"] == [
        ["start", "a"],
        ["end", "a"],
        ["start", "b"],
        ["end", "b"],
    ]


def test_a_counted_resource_bounds_its_users(world: World) -> None:
    tasks = ", ".join(f"{{id: t{n}, spec: x, needs: [db]}}" for n in range(4))
    assert world.run("graph-run", world.graph(f"resources: {{db: 1}}\nsubtasks: [{tasks}]\n")).code == 0
    kinds = [line[0] for line in world.log_lines()]
    assert kinds == ["start", "end"] * 4


def test_until_starts_only_what_its_subtask_needs(world: World) -> None:
    text = """subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, dependsOn: a}
  - {id: c, spec: x, dependsOn: b}
  - {id: other, spec: x}
"""
    done = world.run("graph-run", world.graph(text), "--until", "b", "--json")
    assert done.code == 0, str(done)
    assert states(done.data) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "READY", "other": "READY"}
    again = world.run("graph-run", "plan", "--max-starts", "1", "--json")
    assert list(states(again.data).values()).count("SUCCEEDED") == 3


def test_a_stale_branch_of_the_same_name_is_refused_before_anything_starts(world: World) -> None:
    """SC-05."""
    git(world.root, "branch", "coordinate-agents/plan/b", "main")
    done = world.run(
        "graph-run", world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"), "--json"
    )
    assert done.code == 1, str(done)
    assert done.document["error"]["code"] == "WORKTREE_CONFLICT"
    assert "coordinate-agents/plan/b" in done.document["error"]["message"]
    assert world.log_lines() == []


def test_a_user_branch_named_like_our_prefix_is_named_and_untouched(world: World) -> None:
    git(world.root, "branch", "coordinate-agents", "main")
    before = world.user_state()
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 1, str(done)
    assert done.document["error"]["code"] == "WORKTREE_CONFLICT"
    assert world.user_state() == before


def test_a_verified_commit_survives_its_branch_and_worktree_being_removed_by_hand(world: World) -> None:
    world.hold("b")
    text = """maxConcurrency: 1
subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, dependsOn: a}
  - {id: c, spec: x, dependsOn: [a, b]}
"""
    run = world.start("graph-run", world.graph(text))
    world.wait_for_start("b")
    first = next(item for item in world.status("plan")["subtasks"] if item["id"] == "a")
    git(world.root, "worktree", "remove", "--force", "--force", first["worktree"])
    git(world.root, "branch", "-D", "coordinate-agents/plan/a")
    world.release("b")
    run.wait(60)
    again = world.run("graph-run", "plan", "--json")
    verified = {item["id"]: item["verifiedCommit"] for item in again.data["subtasks"]}
    assert verified["a"] == first["verifiedCommit"]
    assert git(world.root, "cat-file", "-t", first["verifiedCommit"]) == "commit"


def test_changed_graph_file_is_refused_with_the_differences_and_verified_work_stays(world: World) -> None:
    text = "subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
    assert world.run("graph-run", world.graph(text), "--until", "a").code == 0
    changed = world.graph("subtasks: [{id: a, spec: other}, {id: b2, spec: x}]\n")
    done = world.run("graph-run", changed, "--json")
    assert done.code == 1, str(done)
    assert "b2" in done.document["error"]["message"]
    assert world.run("graph-run", "plan").code == 0


def test_a_check_takes_its_tokens_and_a_waiting_one_blocks_nobody_else(world: World) -> None:
    """Agents run side by side; only the check, which needs the one database, runs alone."""
    log = world.place / "checks.log"
    check = f'[sh, -c, "echo start >> {log}; sleep 0.2; echo end >> {log}"]'
    tasks = ", ".join(f"{{id: t{n}, spec: x}}" for n in range(3))
    text = (
        f"maxChecks: 4\nresources: {{db: 1}}\nchecks: [{{name: c, run: {check}, needs: [db]}}]\nsubtasks: [{tasks}]\n"
    )
    assert world.run("graph-run", world.graph(text), "--integrate").code == 0
    assert log.read_text().split() == ["start", "end"] * 4


def test_subtasks_and_their_checks_that_need_each_others_tokens_do_not_wait_for_ever(world: World) -> None:
    text = """resources: {one: 1, two: 1}
subtasks:
  - {id: a, spec: x, needs: [one], checks: [{run: ["true"], needs: [two]}]}
  - {id: b, spec: x, needs: [two], checks: [{run: ["true"], needs: [one]}]}
"""
    done = world.run("graph-run", world.graph(text), limit_s=60)
    assert done.code == 0, str(done)


def test_prerequisites_that_do_not_merge_block_with_the_pair_the_paths_and_a_command_that_works(world: World) -> None:
    agent = world.agent(
        'echo "$S" > "$S"; case "$S" in b|c) echo "$S" > "same path";; esac\ngit add -A; git commit -qm x'
    )
    world.configure({"one": (agent,)})
    text = """id: plan
subtasks:
  - {id: b, spec: x}
  - {id: c, spec: x}
  - {id: d, spec: x, dependsOn: [b, c]}
"""
    done = world.run("graph-run", world.graph(text), "--json")
    assert done.code == 5, str(done)
    d = done.data["subtasks"][2]
    resolve = "coordinate-agents graph-resolve plan d"
    assert (d["state"], d["reason"]) == ("BLOCKED", "BASE_CONFLICT: b and c do not merge in same path")
    assert (d["failure"]["code"], d["failure"]["next"]) == ("BASE_CONFLICT", resolve)
    assert [(item["subtask"], item["kind"], item["next"]) for item in done.data["attention"]] == [
        ("d", "conflict", resolve)
    ]
    assert d["conflict"] == {"subtasks": ["b", "c"], "paths": ["same path"], "applied": ["b"]}
    assert world.run(*shlex.split(resolve)[1:]).code == 0
    assert f"Next: {resolve} --continue" in world.run("graph-inspect", "plan", "d", "--part", "failure").out
    assert "BASE_CONFLICT" in world.run("graph-plan", "plan").out


def test_subtasks_that_do_not_integrate_are_reported_with_a_command_that_works(world: World) -> None:
    agent = world.agent('echo "$S" > same; git add -A; git commit -qm x')
    world.configure({"one": (agent,)})
    done = world.run(
        "graph-run", world.graph("subtasks: [{id: b, spec: x}, {id: c, spec: x}]\n"), "--integrate", "--json"
    )
    assert done.code == 5, str(done)
    assert done.data["integration"]["conflict"] == {"subtasks": ["b", "c"], "paths": ["same"], "applied": ["b"]}
    (item,) = done.data["attention"]
    again = world.run(*shlex.split(item["next"])[1:], "--json")
    assert (again.code, again.document["error"]["code"]) == (1, "DIRTY_WORKTREE")
