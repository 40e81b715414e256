"""In CI: whatever ends a run, its folder of artefacts says what happened, and the exit code says it shortest."""

import json
import signal
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pytest
from world import World, git, make_repo

pytestmark = pytest.mark.story

PLAN = (
    "id: plan\nchecks: [{name: 'unit tests', run: [sh, -c, 'echo looked at it; test ! -e f-b']}]\n"
    "subtasks: [{id: a, spec: x}, {id: b, spec: x}, {id: c, spec: x, dependsOn: b}]\n"
)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def status_in(folder: Path) -> Any:
    return json.loads((folder / "status.json").read_text())


def cases(folder: Path) -> dict[str, str]:
    """Class → the tag of its outcome, "passed" for none."""
    found = parse(folder / "junit.xml").getroot().iter("testcase")
    return {case.attrib["classname"]: next((child.tag for child in case), "passed") for case in found}


def test_a_failed_run_leaves_status_events_junit_logs_patches_and_a_bundle(world: World) -> None:
    world.environment["CI"] = "true"
    folder = world.place / "out" / "artefacts"
    before = world.user_state()
    done = world.run("graph-run", world.graph(PLAN), "--integrate", "--artefacts", folder, "--json")
    assert done.code == 4, str(done)
    assert done.data["artefacts"] == {"folder": str(folder), "files": 9, "problems": []}
    assert files(folder) == [
        "checks/a/01-unit-tests.log",
        "checks/b/01-unit-tests.log",
        "events.jsonl",
        "junit.xml",
        "patches/a.patch",
        "patches/b.patch",
        "pins.bundle",
        "report.html",
        "status.json",
    ]
    assert (status_in(folder)["ending"], status_in(folder)["exitCode"]) == ("ended", 4)
    assert cases(folder) == {
        "plan.a": "passed",
        "plan.a.checks": "passed",
        "plan.b": "failure",
        "plan.b.checks": "failure",
        "plan.c": "skipped",
    }
    assert (folder / "checks" / "b" / "01-unit-tests.log").read_text() == "looked at it\n"
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert events == world.run("graph-events", "plan", "--json").data["events"]
    assert world.user_state() == before

    # What the bundle and the patches hold is what another clone can use.
    other = world.place / "other"
    git(world.place, "clone", "-q", str(world.root), str(other))
    git(other, "fetch", "-q", str(folder / "pins.bundle"), "refs/*:refs/taken/*")
    head = status_in(folder)["subtasks"][0]["verifiedCommit"]
    assert git(other, "rev-parse", "refs/taken/coordinate-agents/plan/a/verified-1") == head
    git(other, "apply", "--index", str(folder / "patches" / "a.patch"))
    assert git(other, "write-tree") == git(other, "rev-parse", f"{head}^{{tree}}")
    world.assert_nothing_left("plan")


def test_a_question_fails_in_ci_with_code_5_and_stands_in_the_report(world: World) -> None:
    world.configure({"one": (world.agent('printf "Overwrite? [y/n] "; read answer'),)})
    folder = world.place / "artefacts"
    done = world.run(
        "graph-run",
        world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"),
        "--on-input",
        "fail",
        "--artefacts",
        folder,
    )
    assert done.code == 5, str(done)
    [failure] = parse(folder / "junit.xml").getroot().iter("failure")
    assert failure.attrib["type"] == "AWAITING_INPUT"
    assert status_in(folder)["exitCode"] == 5
    world.assert_nothing_left("plan")


def test_a_deadline_leaves_artefacts_and_code_6(world: World) -> None:
    world.environment["CI"] = "true"
    world.hold("a")
    folder = world.place / "artefacts"
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    done = world.run("graph-run", plan, "--deadline", "2s", "--artefacts", folder)
    assert done.code == 6, str(done)
    assert (status_in(folder)["ending"], status_in(folder)["exitCode"]) == ("deadline", 6)
    assert cases(folder) == {"plan.a": "error"}
    lines = done.out.splitlines()
    assert (lines[-1].startswith("artefacts: "), lines[-1].endswith(f" files in {folder}")) == (True, True)
    said, command = lines[-3].split(" Go on: coordinate-agents ")
    assert said == "The deadline passed, and the agents were closed."
    world.assert_nothing_left("plan")
    world.release("a")
    assert world.run(*command.split()).code == 0


def test_a_cancelled_job_leaves_artefacts_and_no_process(world: World) -> None:
    world.environment["CI"] = "true"
    world.hold("a")
    folder = world.place / "artefacts"
    driver = world.start("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--artefacts", folder)
    world.wait_for_start("a")
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(60) == 130
    assert status_in(folder)["ending"] == "interrupted"
    assert cases(folder) == {"plan.a": "error"}
    world.assert_nothing_left("plan")


def test_a_folder_that_takes_nothing_is_refused_before_anything_starts(world: World) -> None:
    (world.place / "file").touch()
    done = world.run("graph-run", world.graph(PLAN), "--artefacts", world.place / "file" / "x", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "INVALID_USAGE")
    assert world.run("graph-list", "--json").data["graphs"] == []
    assert world.log_lines() == []


def test_a_link_planted_in_the_folder_is_not_written_through(world: World) -> None:
    """The folder may lie where an agent can write; what it points elsewhere is a problem, and the rest is written."""
    folder, elsewhere = world.place / "artefacts", make_repo(world.place / "elsewhere")
    folder.mkdir()
    (folder / "patches").symlink_to(elsewhere)
    (folder / "status.json").symlink_to(elsewhere / "README.md")
    done = world.run(
        "graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--artefacts", folder, "--json"
    )
    assert done.code == 0, str(done)
    assert [problem.partition(":")[0] for problem in done.data["artefacts"]["problems"]] == ["patches/a.patch"]
    assert git(elsewhere, "status", "--porcelain") == ""
    assert status_in(folder)["exitCode"] == 0
