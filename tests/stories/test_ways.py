"""Thirteen ways to exit 0 without having done the work: none succeeds, and each says why."""

import pytest
from world import World, git

pytestmark = pytest.mark.story

# Way → words that the reason must contain (without regard to case).
REASONS = {
    "nothing": ["no commit"],
    "dirty": ["no commit"],
    "empty-commit": ["without any change"],
    "detached": ["detached"],
    "other-branch": ["mine-other-branch"],
    "amended-base": ["ancestor"],
    "half-committed": ["README.md", "forgotten.txt"],
    "mid-merge": ["merge"],
    "failing-check": ["never-there"],
    "hidden-by-status-settings": ["forgotten.txt"],
    "hidden-by-index-flags": ["README.md"],
    "foreign-old-commit": ["feature"],
    "user-branch-moved": ["topic"],
}


def test_thirteen_ways_to_exit_0_without_the_work_all_fail_and_say_why(world: World) -> None:
    world.ways(*(name for name in REASONS if name != "failing-check"))
    lines = [f"  - {{id: {way}, agent: {way}, spec: x}}" for way in REASONS if way != "failing-check"]
    lines.append('  - {id: failing-check, agent: one, spec: x, checks: ["test -e never-there"]}')
    lines.append("  - {id: honest, agent: one, spec: x}")
    plan = world.graph("subtasks:\n" + "\n".join(lines) + "\n")
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 4, str(done)
    data = world.status("plan")
    states = {item["id"]: item["state"] for item in data["subtasks"]}
    assert states == {**dict.fromkeys(REASONS, "FAILED"), "honest": "SUCCEEDED"}
    told = {item["id"]: item["failure"] for item in data["subtasks"] if item["failure"]}
    silent = {
        way: told[way]["message"]
        for way, words in REASONS.items()
        if any(word.lower() not in f"{told[way]['message']} {told[way]['check']}".lower() for word in words)
    }
    assert silent == {}
    assert {told[way]["code"] for way in REASONS} == {"EVIDENCE_REJECTED", "CHECK_FAILED", "DIRTY_WORKTREE"}
    assert told["failing-check"]["code"] == "CHECK_FAILED"
    # All is kept for a person to look at, and nothing of it was integrated.
    assert all(item["worktree"] and (world.root / item["worktree"]).exists() for item in data["subtasks"])
    assert data["integration"] is None
    assert git(world.root, "for-each-ref", "refs/heads/coordinate-agents/plan/integration") == ""
    world.assert_nothing_left("plan")
