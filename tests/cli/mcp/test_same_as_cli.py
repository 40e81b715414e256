"""The command line and the server answer the same: verb by verb, on the same repository (contract section 7)."""

import json
import re
from typing import Any

import pytest
from mcp_client import PREFIX, McpClient
from world import Done, World

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, dependsOn: a, spec: x}]\n"
BAD = "id: plan\nsubtasks: [{id: a, spec: x, dependsOn: zzz}]\n"
# What may differ between two looks: when they were taken, whose turn the lease was, and the disk.
_MOVING = re.compile(r'"(elapsedS|since|generation|freeBytes)": [^,}\]]+')


def _still(document: dict[str, Any]) -> Any:
    return json.loads(_MOVING.sub(r'"\1": 0', json.dumps(document)))


def _compare(done: Done, result: dict[str, Any]) -> None:
    """The document is the same, and so is the exit code (of an error it follows from the code)."""
    found = dict(result["structuredContent"])
    code = found.pop("exitCode", 0) if found["ok"] else done.code
    assert _still(found) == _still(done.document), str(done)
    assert code == done.code
    assert result["isError"] is not found["ok"]


# Every verb twice, each a process: half a minute of work, and more than one limit where others work beside it.
@pytest.mark.timeout(480)
def test_every_verb_answers_over_mcp_what_it_answers_on_the_command_line(world: World) -> None:
    plan = world.graph(PLAN)
    bad = world.graph(BAD, "bad.yaml")
    assert world.run("run", plan, "--integrate", "--json").code == 0
    session = world.status("plan")["subtasks"][0]["session"]["id"]
    job = ("Add it.", "--as", "job", "--writes", "f", "--writes", "g", "--check", "test -f f")
    assert world.run("task-create", *job).code == 0
    cases: list[tuple[str, tuple[object, ...], dict[str, Any]]] = [
        ("graph-init", (), {}),
        ("graph-validate", (plan,), {"path": str(plan)}),
        ("graph-validate", (bad,), {"path": str(bad)}),
        ("graph-schema", (), {"maxBytes": 1 << 20}),
        ("graph-plan", ("plan",), {"taskId": "plan"}),
        ("graph-plan", (plan,), {"path": str(plan)}),
        ("graph-create", (plan,), {"path": str(plan)}),
        ("graph-create", (bad,), {"path": str(bad)}),
        ("graph-import", (plan,), {"path": str(plan)}),
        ("graph-amend", ("plan", plan), {"taskId": "plan", "path": str(plan)}),
        ("graph-run", ("other",), {"taskId": "other"}),
        ("graph-dispatch", ("plan", "a"), {"taskId": "plan", "subtaskId": "a"}),
        ("graph-resume", ("plan", "a", "--say", "hi"), {"taskId": "plan", "subtaskId": "a", "say": "hi"}),
        ("graph-recover", ("plan", "b"), {"taskId": "plan", "subtaskId": "b"}),
        ("graph-accept", ("plan", "a", "--reason", "why", "--waive", "clean"),
         {"taskId": "plan", "subtaskId": "a", "reason": "why", "waive": ["clean"]}),
        ("graph-tell", ("plan", "a", "hello"), {"taskId": "plan", "subtaskId": "a", "text": "hello"}),
        ("graph-release", ("plan", "a"), {"taskId": "plan", "subtaskId": "a"}),
        ("graph-resolve", ("plan", "a", "--abort"), {"taskId": "plan", "subtaskId": "a", "abort": True}),
        ("graph-review", ("plan", "a", "--decision", "CHANGES_REQUESTED"),
         {"taskId": "plan", "subtaskId": "a", "decision": "CHANGES_REQUESTED"}),
        ("graph-deliver", ("plan", "--branch", "no..name"), {"taskId": "plan", "branch": "no..name"}),
        ("graph-cleanup", ("plan", "--dry-run", "--early"), {"taskId": "plan", "dryRun": True, "early": True}),
        ("graph-undo", ("plan", "a"), {"taskId": "plan", "subtaskId": "a"}),
        ("graph-forget", ("plan", "--dry-run"), {"taskId": "plan", "dryRun": True}),
        ("graph-why", ("plan", "a"), {"taskId": "plan", "subtaskId": "a"}),
        ("graph-wait", ("plan",), {"taskId": "plan"}),
        ("graph-wait", ("plan", "--for", "b", "--timeout", "5"), {"taskId": "plan", "for": "b", "timeout": "5s"}),
        ("graph-stop", ("plan", "--reason", "why"), {"taskId": "plan", "reason": "why"}),
        ("graph-integrate", ("plan", "--abort"), {"taskId": "plan", "abort": True}),
        ("graph-list", (), {}),
        ("graph-status", (), {}),
        ("graph-status", ("other",), {"taskId": "other"}),
        ("graph-inspect", ("plan", "a"), {"taskId": "plan", "subtaskId": "a", "maxBytes": 1 << 20}),
        ("graph-inspect", ("plan", "a", "--part", "diff"), {"taskId": "plan", "subtaskId": "a", "part": "diff"}),
        ("graph-events", ("plan", "--limit", "3"), {"taskId": "plan", "limit": 3}),
        ("graph-events", ("plan", "b", "--after", "9"), {"taskId": "plan", "subtaskId": "b", "after": 9}),
        ("graph-diff", ("plan",), {"taskId": "plan"}),
        ("graph-path", ("plan", "a"), {"taskId": "plan", "subtaskId": "a"}),
        ("graph-export", ("plan", "--format", "dot"), {"taskId": "plan", "format": "dot"}),
        ("graph-report", ("plan", "--format", "markdown"), {"taskId": "plan", "format": "markdown"}),
        ("graph-verify", ("plan",), {"taskId": "plan"}),
        ("recover-inspect", ("plan", "b"), {"taskId": "plan", "subtaskId": "b"}),
        ("task-create", job, {"spec": "Add it.", "as": "job", "writes": ["f", "g"], "check": ["test -f f"]}),
        ("task-status", ("job",), {"taskId": "job"}),
        ("task-status", ("job", "--brief", "--since", "99"), {"taskId": "job", "brief": True, "since": 99}),
        ("task-inspect", ("job", "--part", "failure"), {"taskId": "job", "part": "failure"}),
        ("task-dispatch", ("plan", "--grace", "5"), {"taskId": "plan", "grace": 5}),
        ("task-review", ("job", "--decision", "REVIEW_APPROVED"), {"taskId": "job", "decision": "REVIEW_APPROVED"}),
        ("task-resume", ("job",), {"taskId": "job"}),
        ("task-stop", ("job", "--reason", "why"), {"taskId": "job", "reason": "why"}),
        ("session-open", ("plan/a", "--agent", "none"), {"taskId": "plan", "subtaskId": "a", "agent": "none"}),
        ("session-list", ("plan", "--all"), {"taskId": "plan", "all": True}),
        ("session-status", (session,), {"sessionId": session}),
        ("session-status", ("plan/a",), {"sessionId": "plan/a"}),
        ("session-status", ("nobody",), {"sessionId": "nobody"}),
        ("session-inspect", (session,), {"sessionId": session}),
        ("session-read", (session, "--cursor", "0", "--max-lines", "2"),
         {"sessionId": session, "cursor": 0, "maxLines": 2}),
        ("session-read", (session, "--wait", "99"), {"sessionId": session, "wait": 99}),
        ("session-write", (session, "hello", "--submit"), {"sessionId": session, "text": "hello", "submit": True}),
        ("session-answer", (session, "--allow"), {"sessionId": session, "allow": True}),
        ("session-interrupt", (session,), {"sessionId": session}),
        ("session-close", (session, "--now"), {"sessionId": session, "now": True}),
        ("setup-configure", ("--agent", "new", "--command", "sh", "--arg", "a", "--arg", "b", "--dry-run"),
         {"agent": "new", "command": "sh", "arg": ["a", "b"], "dryRun": True}),
        ("setup-discover", (), {"maxBytes": 1 << 20}),
        ("setup-trust", (), {}),
        ("evidence-submit", ("done",), {"summary": "done"}),
    ]  # fmt: skip
    with McpClient(world, "--allow-decisions", "all") as client:
        for verb, words, arguments in cases:
            done = world.run(verb, *(str(word) for word in words), "--json")
            _compare(done, client.call(verb.replace("-", "_"), **arguments))
        known = {verb for verb, _, _ in cases}
        tools = client.result(client.send("tools/list"))["tools"]
        left = {tool["name"].removeprefix(PREFIX).replace("_", "-") for tool in tools} - known
        # The third answers of the machine, which moves.
        assert left == {"graph-check", "graph-hold", "doctor"}, "a verb that was added has a case of its own"
        for verb in ("graph-check", "graph-hold"):
            done = world.run(verb, "nosuch", "a", "--json")
            _compare(done, client.call(verb.replace("-", "_"), taskId="nosuch", subtaskId="a"))
