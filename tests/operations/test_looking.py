"""The verbs that look, after a real run with one success, one failed check and what that blocks."""

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from world import World, git, shared_world

PLAN = """\
id: shop
title: A shop
subtasks:
  - {id: store, spec: Add storage., writes: [f-store]}
  - {id: pages, spec: Add pages., dependsOn: store, checks: ["test -f missing"]}
  - {id: smoke, spec: Add a test., dependsOn: pages}
"""


@pytest.fixture
def ran(world: World) -> World:
    done = world.run("run", world.graph(PLAN))
    assert done.code == 4, str(done)
    return world


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same, for all tests that change nothing."""
    with shared_world(tmp_path_factory.mktemp("looked")) as world:
        assert world.run("run", world.graph(PLAN)).code == 4
        yield world


def _states(world: World) -> dict[str, str]:
    """Every file of the state folder with its content, times and mode. Reading git's objects uses one empty folder."""
    found = {}
    for path in sorted((world.root / ".git" / "coordinate-agents").rglob("*")):
        seen = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        changed = "" if path.parts[-2:] == ("judge", "tmp") else seen.st_mtime_ns
        found[str(path)] = f"{seen.st_mode} {seen.st_size} {changed} {content}"
    return found


LOOKING = [
    ("graph-status", "shop"),
    ("graph-list",),
    ("graph-inspect", "shop"),
    ("graph-inspect", "shop", "--part", "failure"),
    ("graph-inspect", "shop", "pages", "--part", "failure"),
    ("graph-inspect", "shop", "pages", "--part", "screen"),
    ("graph-inspect", "shop", "pages", "--part", "events"),
    ("graph-events", "shop"),
    ("graph-path", "shop", "pages"),
    ("graph-export", "shop"),
    ("graph-export", "shop", "--format", "dot"),
    ("graph-report", "shop"),
    ("graph-report", "shop", "--format", "markdown"),
    ("graph-plan", "shop"),
    ("setup-discover",),
    ("doctor",),
]


def test_looking_leaves_the_state_byte_for_byte_as_it_is(looked: World) -> None:
    before = _states(looked)
    for words in LOOKING:
        for form in ((), ("--json",)):
            done = looked.run(*words, *form)
            assert done.code == 0, str(done)
            assert done.out
            if form:
                assert done.document["ok"] is True
        assert _states(looked) == before, words


def test_looking_at_a_repository_without_a_graph_makes_no_folder(world: World) -> None:
    plan = world.graph(PLAN)
    for words in (("list",), ("status",), ("plan", plan), ("inspect",), ("doctor",), ("setup-discover",), ("wait",)):
        world.run(*words)
        assert not (world.root / ".git" / "coordinate-agents").exists(), words


def test_status_in_text_puts_what_needs_a_person_first(looked: World) -> None:
    lines = looked.run("status").out.splitlines()
    base = git(looked.root, "rev-parse", "HEAD")[:10]
    verified = git(looked.root, "rev-parse", "coordinate-agents/shop/store")[:10]
    seconds = {each["id"]: int(each["elapsedS"] or 0) for each in looked.status("shop")["subtasks"]}
    table = [" ".join(line.split()) for line in lines[7:11]]
    assert lines[:7] == [
        "shop: FAILED  A shop",
        f"base {base}",
        "",
        "Needs a person:",
        "  failed pages: check test -f missing failed with exit code 1",
        "    coordinate-agents graph-inspect shop pages --part failure",
        "",
    ]
    assert table == [
        "SUBTASK STATE AGENT TRY TIME REASON",
        f"pages FAILED one 1 {seconds['pages']}s check test -f missing failed with exit code 1",
        "smoke BLOCKED blocked by pages (failed)",
        f"store SUCCEEDED one 1 {seconds['store']}s verified {verified}",
    ]
    assert lines[12:] == [
        "3 subtasks: 1 blocked, 1 succeeded, 1 failed",
        "",
        "Next, when the cause is settled: coordinate-agents graph-run shop --retry-failed",
    ]


def test_inspect_shows_facts_checks_refs_and_worktree(looked: World) -> None:
    data = looked.run("inspect", "shop", "store", "--json").data
    commit = git(looked.root, "rev-parse", "coordinate-agents/shop/store")
    assert data["subtask"]["verifiedCommit"] == commit
    assert data["dependents"] == ["pages"]
    assert data["task"]["writes"] == ["f-store"]
    assert data["refs"]["refs/heads/coordinate-agents/shop/store"] == commit
    assert data["diff"] == {
        "id": "store",
        "base": git(looked.root, "rev-parse", "HEAD"),
        "commit": commit,
        "verified": True,
        "files": 1,
        "insertions": 1,
        "deletions": 0,
    }
    assert [fact.split(" ")[0] for fact in data["facts"]][:6] == ["1", "2", "3", "4", "5", "6"]


def test_a_subtask_may_be_named_in_every_way(looked: World) -> None:
    ways: list[tuple[str, ...]] = [("shop", "pages"), ("shop/pages",), ("pages",)]
    found = [looked.run("path", *words).out for words in ways]
    assert found[0].endswith("/shop/pages\n")
    assert len(set(found)) == 1


def test_an_unknown_subtask_names_the_nearest_and_an_unknown_graph_all(looked: World) -> None:
    done = looked.run("inspect", "shop", "page")
    assert (done.code, done.err.splitlines()[0]) == (
        1,
        "TASK_NOT_FOUND: Graph shop has no subtask 'page'; did you mean pages?",
    )
    done = looked.run("status", "xyz")
    assert (done.code, done.err.splitlines()[0]) == (
        1,
        "TASK_NOT_FOUND: There is no graph 'xyz' in this repository; its graphs are shop.",
    )


def test_the_graph_must_be_named_when_several_are_unfinished(ran: World) -> None:
    ran.run("create", ran.graph("id: other\nsubtasks: [{id: a, spec: x}]\n", "other.yaml"))
    done = ran.run("status", "--json")
    assert done.code == 2
    assert done.document["error"]["message"] == "Name the graph: several graphs are unfinished (other and shop)."


def test_the_only_unfinished_graph_is_meant_when_others_are_finished(ran: World) -> None:
    assert ran.run("run", ran.graph("id: other\nsubtasks: [{id: a, spec: x}]\n", "other.yaml")).code == 0
    assert ran.run("status", "--json").data["graph"]["id"] == "shop"


def test_path_of_a_subtask_that_never_started_is_refused(looked: World) -> None:
    done = looked.run("path", "shop", "smoke")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "TASK_STATE_CONFLICT: Subtask smoke of graph shop has no worktree: it is BLOCKED.",
        "Kept: everything recorded before",
        "Next: coordinate-agents graph-status shop",
    ]


def test_diff_is_one_line_each_and_one_subtask_against_its_own_base(looked: World) -> None:
    lines = [" ".join(line.split()) for line in looked.run("diff", "shop").out.splitlines()]
    pages, store = (git(looked.root, "rev-parse", f"coordinate-agents/shop/{name}")[:10] for name in ("pages", "store"))
    assert lines == [f"pages {pages} not verified 1 file +1 -0", f"store {store} 1 file +1 -0"]
    text = looked.run("diff", "shop", "pages", "--json").data["diff"]
    assert "+++ b/f-pages" in text
    assert "f-store" not in text


def test_events_are_in_order_and_follow_the_shape(looked: World) -> None:
    data = looked.run("events", "shop", "--json").data
    assert [event["seq"] for event in data["events"]] == list(range(1, data["cursor"] + 1))
    first = data["events"][0]
    assert {key: value for key, value in first.items() if key not in ("time", "data")} == {
        "seq": 1,
        "type": "GraphCreated",
        "taskId": "shop",
        "subtaskId": None,
        "sessionId": None,
        "generation": 0,
    }
    later = looked.run("events", "shop", "--after", str(data["cursor"] - 2), "--json").data
    assert later["events"] == data["events"][-2:]
    of_one = looked.run("events", "shop", "store", "--json").data["events"]
    assert of_one == [event for event in data["events"] if event["subtaskId"] == "store"]


def test_follow_prints_one_object_per_line_and_goes_on(ran: World) -> None:
    read, write = os.pipe()
    following = _start(ran, write, "graph-events", "shop", "--follow", "--json")
    os.close(write)
    with os.fdopen(read) as lines:
        seen = [json.loads(lines.readline())]
        known = ran.run("events", "shop", "--json").data["cursor"]
        while seen[-1]["seq"] < known:
            seen.append(json.loads(lines.readline()))
        ran.run("run", "shop", "--retry-failed")
        new = json.loads(lines.readline())
        assert (new["seq"], new["type"]) == (known + 1, "DriveStarted")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 0
        assert all(json.loads(line)["seq"] > known for line in lines)


def test_export_holds_the_whole_record(looked: World) -> None:
    data = looked.run("export", "shop", "--json").data
    assert sorted(data["runs"]) == ["pages", "smoke", "store"]
    assert len(data["events"]) == data["lastSeq"]
    assert [task["id"] for task in data["document"]["tasks"]] == ["store", "pages", "smoke"]
    assert data["status"]["graph"]["id"] == "shop"
    assert json.loads(looked.run("export", "shop").out)["runs"] == data["runs"]


def test_the_picture_draws_every_edge(looked: World) -> None:
    assert looked.run("export", "shop", "--format", "mermaid").out.splitlines() == [
        "flowchart LR",
        '  n0["pages: Add pages. (FAILED)"]',
        '  n1["smoke: Add a test. (BLOCKED)"]',
        '  n2["store: Add storage. (SUCCEEDED)"]',
        "  n2 --> n0",
        "  n0 --> n1",
    ]


def test_verify_names_each_certificate_and_says_that_all_hold(looked: World) -> None:
    done = looked.run("verify", "shop")
    verified = git(looked.root, "rev-parse", "coordinate-agents/shop/store")[:10]
    assert (done.code, done.out.splitlines()) == (0, [f"store: {verified} holds", "", "Every certificate holds."])


def _start(world: World, write: int, *words: str) -> Any:
    import subprocess

    from world import PROGRAM

    return subprocess.Popen([PROGRAM, *words], cwd=world.root, env=world.environment, stdout=write)


def test_the_log_of_a_failed_check_is_shown_from_its_end(ran: World, tmp_path: Path) -> None:
    loud = tmp_path / "loud.sh"
    loud.write_text("#!/bin/sh\nseq 1 500\necho 'the last words'\nexit 3\n")
    loud.chmod(0o755)
    plan = f"id: loud\nsubtasks: [{{id: a, spec: x, checks: [{{name: loud, run: ['{loud}']}}]}}]\n"
    assert ran.run("run", ran.graph(plan, "loud.yaml")).code == 4
    shown = ran.run("inspect", "loud", "a", "--part", "failure").out.splitlines()
    assert "  | the last words" in shown
    assert "  | 1" not in shown
    assert len(shown) < 120


def test_a_report_is_written_whole_never_through_a_link_and_is_the_same_each_time(ran: World) -> None:
    folder = ran.place / "out"
    folder.mkdir()
    victim = ran.place / "victim"
    victim.write_text("precious\n")
    (folder / "report.html").symlink_to(victim)
    first = ran.run("report", "shop", "--output", folder / "report.html")
    assert (first.code, first.out.split(" (")[0]) == (0, f"wrote {folder / 'report.html'}"), str(first)
    page = (folder / "report.html").read_text()
    assert victim.read_text() == "precious\n"
    assert "coordinate-agents graph-resume shop pages --run" in page
    assert str(ran.place) not in page
    assert ran.run("report", "shop").out.splitlines() == page.splitlines()
    data = ran.run("report", "shop", "--output", folder / "report.md", "--json").data
    assert (data["format"], data["file"]) == ("markdown", str(folder / "report.md"))
    assert (folder / "report.md").read_text().startswith("# A shop\n\nGraph `shop` is **FAILED**")
    assert sorted(each.name for each in folder.iterdir()) == ["report.html", "report.md"]
    refused = ran.run("report", "shop", "--output", ran.place / "missing" / "report.html")
    assert (refused.code, refused.err.split(":")[0]) == (2, "INVALID_USAGE")
