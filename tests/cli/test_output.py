"""Output to a closed pipe, to a full device, to a terminal without Unicode, and to nobody."""

import os
import subprocess
from pathlib import Path

import pytest
from world import PROGRAM, World

AWKWARD = 'id: plan\ntitle: "naïve ✓🙂"\nsubtasks: [{id: a, spec: "title ✓"}]\n'


def _shell(world: World, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=world.root,
        env=world.environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def created(world: World) -> World:
    assert world.run("create", world.graph(AWKWARD)).code == 0
    return world


@pytest.mark.parametrize("words", ["status", "status --json", "--help", "export", "init"])
def test_a_reader_that_leaves_early_is_no_error(created: World, words: str) -> None:
    done = _shell(created, f"'{PROGRAM}' {words} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_reader_that_never_read_is_no_error(created: World) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [PROGRAM, "graph-export"], cwd=created.root, env=created.environment, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


_REST = ["Kept: everything recorded before", "Next: run the same command with an output that can be written"]


@pytest.mark.parametrize("words", ["status", "status --json", "--help"])
def test_a_full_device_is_told_and_fails(created: World, words: str) -> None:
    done = _shell(created, f"'{PROGRAM}' {words} > /dev/full < /dev/null")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["OUTPUT_FAILED: cannot write output: No space left on device.", *_REST]


def test_a_closed_output_is_told_and_fails(created: World) -> None:
    done = _shell(created, f"'{PROGRAM}' status >&-")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["OUTPUT_FAILED: cannot write output: standard output is closed.", *_REST]


def test_an_ascii_terminal_gets_replaced_characters(created: World) -> None:
    done = _shell(created, f"'{PROGRAM}' status", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "plan: CREATED  na?ve ??"


def test_json_is_the_same_under_every_encoding(created: World) -> None:
    plain = _shell(created, f"'{PROGRAM}' list --json", PYTHONIOENCODING="ascii").stdout
    assert plain == _shell(created, f"'{PROGRAM}' list --json", PYTHONIOENCODING="utf-8").stdout
    assert '"title": "na\\u00efve \\u2713\\ud83d\\ude42"' in plain


def test_foreign_text_cannot_act_on_the_terminal(world: World, tmp_path: Path) -> None:
    agent = tmp_path / "agent.sh"
    agent.write_text("#!/bin/sh\nprintf 'red \\342\\200\\256 over \\033[31m\\a\\n'\nexit 3\n")
    agent.chmod(0o755)
    world.configure({"one": (agent,)})
    assert world.run("run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 4
    for words in (("inspect", "plan", "a"), ("inspect", "plan", "a", "--part", "screen"), ("events", "plan")):
        said = world.run(*words).out
        assert "red " in said
        assert not set(said) & {"\x1b", "\x07", "\u202e"}, words


def test_a_status_of_five_hundred_subtasks_stays_readable(world: World) -> None:
    lines = ["id: wide", "subtasks:", *(f"  - {{id: s{number:03}, spec: x}}" for number in range(500))]
    assert world.run("create", world.graph("\n".join(lines))).code == 0
    done = world.run("status")
    shown = done.out.splitlines()
    assert len(shown) == 3 + 1 + 60 + 1 + 2 + 2
    assert "… and 440 more subtasks; --json lists them all" in shown
    assert "500 subtasks: 500 ready" in shown
    assert len(world.run("status", "--json").data["subtasks"]) == 500


def test_the_current_folder_may_be_gone(world: World, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = _shell(world, f"cd '{gone}' && rmdir '{gone}' && '{PROGRAM}' status")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "NOT_A_REPOSITORY: The current folder does not exist any more.",
    )
