"""A graph's record as the JSON of graph-status: whole documents compared, from values and from rows alike."""

import json
from typing import Any

from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseConflicted,
    BaseFixed,
    Choice,
    ConflictClosed,
    ConflictOpened,
    ConflictOpening,
    DriveEnded,
    EvidenceSummary,
    Failure,
    IntegrationConflicted,
    IntegrationStarted,
    PhaseChanged,
    SessionStarted,
    SessionStarting,
    SharedChanged,
    SharedRecorded,
    TaskClaimed,
    TaskJudged,
    TurnEnded,
    WorktreeReady,
)
from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.model import CommitId, GraphId, SubtaskId, Task, TaskGraph, to_json
from coordinate_agents.graph.snapshot import Snapshot, run_to_row, summary_to_row
from coordinate_agents.graph.store.lease import Holder
from coordinate_agents.graph.store.rows import GraphRow, RunRow
from coordinate_agents.graph.view import graph_overview, iso, status_data, status_of_rows
from coordinate_agents.worktrees.model import Head, Worktree

A, B, C = (SubtaskId(name) for name in "abc")
BASE, WORK = CommitId("1" * 40), CommitId("2" * 40)
TREE = Worktree("/trees/a", "a", "coordinate-agents/g/a", BASE, "n", 1, 2)
MERGING = Worktree("/trees/+resolve-c", "+resolve-c", "coordinate-agents/g/+resolve-c", WORK, "n", 1, 3)
DRIVER = Holder(77, 1000.25, "graph-run", 3, None, "running")
NOW = 1100.0


def _snapshot(*events: Any) -> Snapshot:
    tasks = (Task(A, "First"), Task(B, "Second", depends_on=(A,)), Task(C, "Third", depends_on=(A, B), agent="tester"))
    snapshot = Snapshot(TaskGraph(GraphId("g"), "A graph", tasks))
    for number, event in enumerate(events):
        snapshot.fold(event, time=1000.0 + number)
    return snapshot


def _row(snapshot: Snapshot) -> GraphRow:
    return GraphRow(
        "g", "A graph", 1, BASE, to_json(snapshot.graph), "digest", "{}", 900.0, 3, 9, summary_to_row(snapshot.summary)
    )


def _status(*events: Any, driver: Holder | None = None) -> dict[str, Any]:
    """The status of the fold of the events; the way through rows must say the same."""
    snapshot = _snapshot(*events)
    row = _row(snapshot)
    data = status_data(row, snapshot, driver=driver, now=NOW)
    runs = [RunRow(run.id, run_to_row(run)) for run in snapshot.runs.values()]
    assert json.dumps(status_of_rows(row, runs, driver=driver, now=NOW)) == json.dumps(data)
    return data


def _idle(subtask: str, title: str, **other: Any) -> dict[str, Any]:
    return {
        "id": subtask,
        "title": title,
        "state": "WAITING",
        "phase": None,
        "reason": None,
        "agent": None,
        "attempt": 0,
        "dependsOn": [],
        "branch": None,
        "worktree": None,
        "discard": None,
        "base": None,
        "head": None,
        "verifiedCommit": None,
        "summary": None,
        "retryAt": None,
        "held": False,
        "startedAt": None,
        "endedAt": None,
        "elapsedS": None,
        "evidence": None,
        "failure": None,
        "conflict": None,
        "conflictWorktree": None,
        "usage": None,
        "session": None,
        **other,
    }


CLAIMED = (
    SharedRecorded("blob"),
    TaskClaimed(A, 1, "coder", "n"),
    BaseFixed(A, BASE, "blob"),
    WorktreeReady(A, TREE),
    SessionStarting(A, "g.a.a1", 0, "mark"),
    SessionStarted(A, "g.a.a1", pid=42),
)


def test_a_new_graph_shows_every_subtask_in_id_order() -> None:
    assert _status() == {
        "graph": {
            "id": "g",
            "title": "A graph",
            "state": "CREATED",
            "revision": 1,
            "baseCommit": BASE,
            "baseBranch": None,
            "baseBehind": None,
            "maxConcurrency": 4,
            "generation": 3,
            "driver": None,
        },
        "attention": [],
        "subtasks": [
            _idle("a", "First", state="READY", reason="not started"),
            _idle("b", "Second", reason="waits for a", dependsOn=["a"]),
            _idle("c", "Third", reason="waits for a, b", dependsOn=["a", "b"], agent="tester"),
        ],
        "frontier": {
            "ready": 1,
            "waiting": 2,
            "blocked": 0,
            "running": 0,
            "succeeded": 0,
            "failed": 0,
            "stopped": 0,
        },
        "integration": None,
        "review": None,
        "deliveries": [],
    }


def test_a_running_subtask_shows_phase_worktree_and_session() -> None:
    data = _status(*CLAIMED, driver=DRIVER)
    assert data["graph"]["state"] == "RUNNING"
    assert data["graph"]["driver"] == {"pid": 77, "since": "1970-01-01T00:16:40.250Z", "life": "running"}
    assert data["subtasks"][0] == _idle(
        "a",
        "First",
        state="RUNNING",
        phase="working",
        agent="coder",
        attempt=1,
        branch="coordinate-agents/g/a",
        worktree="/trees/a",
        base=BASE,
        startedAt="1970-01-01T00:16:41.000Z",
        elapsedS=99.0,
        session={
            "id": "g.a.a1",
            "state": "busy",
            "agent": "coder",
            "worktree": "/trees/a",
            "pid": 42,
            "taskId": "g",
            "subtaskId": "a",
            "verifiedCommit": None,
        },
    )


def test_a_running_subtask_without_a_driver_says_that_nobody_drives() -> None:
    data = _status(*CLAIMED)
    assert data["graph"]["state"] == "RUNNING"
    assert data["subtasks"][0]["reason"] == "nobody drives the graph; coordinate-agents graph-run goes on with it"


def test_a_verified_subtask_shows_its_evidence() -> None:
    check = CheckOutcome("tests", ("pytest",), "passed", 0, duration_ms=5, log_path="/log", tail="never in status")
    evidence = EvidenceSummary(WORK, BASE, 2, ("x", "y"), (check,), warnings=("2 paths outside",))
    ended = TurnEnded(A, "g.a.a1", "exit", 0)
    first = _status(*CLAIMED, ended, TaskJudged(A, True, WORK, evidence, "cert"))["subtasks"][0]
    assert (first["state"], first["verifiedCommit"], first["reason"]) == ("SUCCEEDED", WORK, "2 paths outside")
    assert first["evidence"] == {
        "commit": WORK,
        "base": BASE,
        "paths": {"count": 2, "first": ["x", "y"]},
        "checks": [{"name": "tests", "outcome": "passed", "exitCode": 0, "durationMs": 5, "logPath": "/log"}],
        "outsideScope": [],
        "warnings": ["2 paths outside"],
        "waivers": [],
    }
    assert (first["elapsedS"], first["session"]["state"]) == (6.0, "exited")


def test_a_failure_asks_for_a_person_and_blocks_what_follows() -> None:
    failure = Failure("CHECK_FAILED", "check tests failed", check="tests", exit_code=1, next="look here")
    data = _status(*CLAIMED, AttemptFailed(A, failure))
    assert data["graph"]["state"] == "FAILED"
    assert data["attention"] == [
        {
            "subtask": "a",
            "kind": "failed",
            "question": "check tests failed",
            "since": "1970-01-01T00:16:46.000Z",
            "next": "coordinate-agents graph-inspect g a --part failure",
            "ways": [],
        }
    ]
    assert data["subtasks"][0]["failure"] == {
        "code": "CHECK_FAILED",
        "message": "check tests failed",
        "check": "tests",
        "exitCode": 1,
        "signal": None,
        "tail": "",
        "logPath": None,
        "kept": None,
        "next": "look here",
    }
    assert [each["reason"] for each in data["subtasks"][1:]] == ["blocked by a (failed)", "blocked by a (failed)"]


def test_a_login_is_its_own_kind_of_attention_and_names_a_command() -> None:
    data = _status(*CLAIMED, AttemptFailed(A, Failure("AUTH_REQUIRED", "log in first")))
    assert [(item["kind"], item["next"]) for item in data["attention"]] == [
        ("auth", "coordinate-agents graph-inspect g a --part failure")
    ]


def test_an_agent_that_waits_for_a_person_is_attention() -> None:
    data = _status(*CLAIMED, PhaseChanged(A, "awaiting-input", "Continue?"), driver=DRIVER)
    look = "coordinate-agents graph-inspect g a --part screen"
    assert [(item["kind"], item["subtask"], item["next"]) for item in data["attention"]] == [("input", "a", look)]


def test_a_permission_is_settled_by_a_command_for_each_of_its_options_until_it_is_answered() -> None:
    choices = (Choice("yes", "Yes, once"), Choice("no; never", "No"))
    asked = PhaseChanged(A, "awaiting-input", "may I?", kind="permission", request="q-1", choices=choices)
    (item,) = _status(*CLAIMED, asked, driver=DRIVER)["attention"]
    answer = "coordinate-agents session-answer g/a --request q-1 --option"
    assert item["next"] == f"{answer} yes"
    assert item["ways"] == [
        {"when": "Yes, once", "command": f"{answer} yes"},
        {"when": "No", "command": f"{answer} 'no; never'"},
    ]
    answered = PhaseChanged(A, "awaiting-input", kind="permission", can_go_on=True)
    assert _status(*CLAIMED, asked, answered, driver=DRIVER)["attention"] == []


def test_a_base_that_does_not_merge_is_attention_and_blocks() -> None:
    claimed = TaskClaimed(C, 1, "coder", "n")
    data = _status(SharedRecorded("blob"), claimed, BaseConflicted(C, ("a", "b"), ("f", "g"), "key"))
    assert data["subtasks"][2]["state"] == "BLOCKED"
    assert data["subtasks"][2]["reason"] == "BASE_CONFLICT: a and b do not merge in f, g"
    assert [(item["kind"], item["question"]) for item in data["attention"]] == [
        ("conflict", "its prerequisites a and b do not merge in f, g.")
    ]
    assert data["subtasks"][2]["conflict"] == {"subtasks": ["a", "b"], "paths": ["f", "g"], "applied": []}
    assert data["attention"][0]["next"] == "coordinate-agents graph-resolve g c"


def test_a_merge_that_waits_for_a_person_is_shown_with_its_worktree() -> None:
    conflict = BaseConflicted(C, ("a", "b"), ("f",), "key", (Head("a", WORK),), WORK, BASE)
    claimed = TaskClaimed(C, 1, "coder", "n")
    opened = (SharedRecorded("blob"), claimed, conflict, ConflictOpening(C, conflict), ConflictOpened(C, MERGING))
    shown = _status(*opened)["subtasks"][2]
    assert (shown["conflictWorktree"], shown["worktree"]) == ("/trees/+resolve-c", None)
    assert shown["failure"]["message"] == (
        "its prerequisites a and b do not merge in f; merge it in /trees/+resolve-c."
    )
    assert shown["failure"]["next"] == "coordinate-agents graph-resolve g c --continue"
    given_up = _status(*opened, ConflictClosed(C, "given-up", kept=WORK))["subtasks"][2]
    assert (given_up["state"], given_up["failure"]["next"]) == ("BLOCKED", "coordinate-agents graph-resolve g c")
    done = _status(*opened, ConflictClosed(C, "resolved"))
    assert (done["subtasks"][2]["conflict"], done["attention"]) == (None, [])


def test_the_graph_itself_comes_before_its_subtasks_when_it_needs_a_person() -> None:
    data = _status(
        *CLAIMED,
        AttemptFailed(A, Failure("CHECK_FAILED", "no")),
        SharedChanged(("hook pre-commit",), "f1"),
        IntegrationStarted((Head("a", WORK),)),
        IntegrationConflicted(("a", "b"), ("x",), (Head("a", WORK),)),
    )
    assert [(item["subtask"], item["kind"], item["next"]) for item in data["attention"]] == [
        (None, "shared", "coordinate-agents graph-inspect g --part failure"),
        (None, "conflict", "coordinate-agents graph-integrate g --continue"),
        ("a", "failed", "coordinate-agents graph-inspect g a --part failure"),
    ]
    assert data["integration"] == {
        "state": "conflict",
        "current": False,
        "branch": None,
        "worktree": None,
        "commit": None,
        "onto": None,
        "ontoName": None,
        "conflict": {"subtasks": ["a", "b"], "paths": ["x"], "applied": ["a"]},
        "checks": [],
        "failure": {
            "code": "INTEGRATION_CONFLICT",
            "message": "a and b do not merge in x.",
            "check": None,
            "exitCode": None,
            "signal": None,
            "tail": "",
            "logPath": None,
            "kept": "every verified commit",
            "next": "coordinate-agents graph-integrate g --continue",
        },
    }


def test_a_drive_that_ended_for_want_of_disk_needs_a_person_until_somebody_drives() -> None:
    full = DriveEnded("DISK_LOW: 23 MiB are free, 2048 MiB are kept free")
    question = "nothing more was started: DISK_LOW: 23 MiB are free, 2048 MiB are kept free"
    (item,) = _status(*CLAIMED, full)["attention"]
    assert (item["kind"], item["question"], item["next"]) == ("disk", question, "coordinate-agents doctor")
    assert _status(*CLAIMED, full, driver=DRIVER)["attention"] == []


def test_the_overview_counts_places() -> None:
    snapshot = _snapshot(*CLAIMED)
    runs = [RunRow(run.id, run_to_row(run)) for run in snapshot.runs.values()]
    assert graph_overview(_row(snapshot), runs, driver=DRIVER) == {
        "id": "g",
        "title": "A graph",
        "state": "RUNNING",
        "revision": 1,
        "createdAt": "1970-01-01T00:15:00.000Z",
        "subtasks": 3,
        "frontier": {
            "ready": 0,
            "waiting": 2,
            "blocked": 0,
            "running": 1,
            "succeeded": 0,
            "failed": 0,
            "stopped": 0,
        },
        "driver": {"pid": 77, "since": "1970-01-01T00:16:40.250Z", "life": "running"},
    }


def test_times_are_utc_with_milliseconds() -> None:
    assert iso(1_700_000_000.0625) == "2023-11-14T22:13:20.062Z"
