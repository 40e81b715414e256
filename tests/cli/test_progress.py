"""What somebody sees who watches a run: plain lines without a terminal, a bounded live view on one."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from world import PROGRAM, World, git

PLAN = """\
id: plan
subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, dependsOn: a, checks: [{name: never, run: [test, -f, missing]}]}
  - {id: c, spec: x, dependsOn: b}
"""


def test_without_a_terminal_each_event_worth_telling_is_one_line(world: World) -> None:
    done = world.run("run", world.graph(PLAN))
    verified = git(world.root, "rev-parse", "coordinate-agents/plan/a")[:10]
    lines = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in done.err.splitlines()]
    assert lines == [
        "plan: 3 subtasks, at most 4 at a time",
        "a: started with one",
        "a: verifying",
        f"a: verified {verified}",
        "b: started with one",
        "b: verifying",
        "b: FAILED: check never failed with exit code 1 (1 subtask blocked)",
    ]
    assert done.out.startswith("plan: FAILED\n")


def test_with_json_a_run_prints_one_document_and_no_progress(world: World) -> None:
    done = world.run("run", world.graph(PLAN), "--json")
    assert (done.code, done.err) == (4, "")
    assert done.data["graph"]["state"] == "FAILED"


def test_a_run_that_ends_well_names_the_next_verb(world: World) -> None:
    done = world.run("run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    assert done.out.splitlines()[-1] == "Next: coordinate-agents graph-integrate plan"


def test_on_a_terminal_the_running_subtasks_are_shown_and_then_taken_away(world: World) -> None:
    world.hold("a")
    with _Terminal(world, "run", str(world.graph(PLAN))) as terminal:
        terminal.read_until(lambda shown: "working" in shown and "2 waiting, 1 running" in shown)
        world.release("a")
        shown = terminal.read_to_end()
    assert terminal.code == 4
    assert "\x1b[?25h" in shown  # the cursor is back
    assert "a: verified " in shown
    assert "b: FAILED: check never failed with exit code 1" in shown
    final = shown[shown.rindex("plan: FAILED") :]
    assert "Next, when the cause is settled: coordinate-agents graph-run plan --retry-failed" in final
    assert "\x1b[" not in final  # the final state is plain text


def test_the_live_view_stays_within_a_small_terminal(world: World, tmp_path: Path) -> None:
    # These agents wait in a read: six that look for a file again and again would slow everything down.
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    opened = os.open(gate, os.O_RDWR)
    agent = tmp_path / "agent.sh"
    agent.write_text(f"#!/bin/sh\nhead -c 1 '{gate}' >/dev/null\nexit 3\n")
    agent.chmod(0o755)
    world.configure({"one": (agent,)})
    subtasks = "\n".join(f"  - {{id: s{number}, spec: x}}" for number in range(6))
    plan = world.graph(f"id: p\nmaxConcurrency: 6\nsubtasks:\n{subtasks}\n")
    with _Terminal(world, "run", str(plan), rows=6) as terminal:
        terminal.read_until(lambda shown: "6 running" in shown and "… and 4 more running" in shown)
        os.write(opened, b"x" * 6)
        shown = terminal.read_to_end()
    os.close(opened)
    assert terminal.code == 4
    # The view is drawn again by moving up over its own lines, never over more than the terminal has.
    assert max(run.count("\x1b[1A") for run in re.findall(r"(?:\x1b\[1A(?:\x1b\[2K)?)+", shown)) <= 6


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(world: World, variables: dict[str, str]) -> None:
    world.environment.update(variables)
    with _Terminal(world, "run", str(world.graph(PLAN))) as terminal:
        shown = terminal.read_to_end()
    assert "a: started with one" in shown
    assert "\x1b" not in shown


def test_no_color_is_respected_in_the_live_view(world: World) -> None:
    world.environment["NO_COLOR"] = "1"
    world.hold("a")
    with _Terminal(world, "run", str(world.graph(PLAN))) as terminal:
        terminal.read_until(lambda shown: "working" in shown)
        world.release("a")
        shown = terminal.read_to_end()
    assert not re.search(r"\x1b\[(?:[0-9]+;)*3[0-7]m", shown)


def test_an_interrupted_run_says_how_to_come_back_and_how_to_stop(world: World) -> None:
    world.hold("a")
    with _Terminal(world, "run", str(world.graph(PLAN))) as terminal:
        terminal.read_until(lambda shown: "working" in shown)
        terminal.type(b"\x03")
        shown = terminal.read_to_end()
    assert terminal.code == 130
    assert "Come back: coordinate-agents graph-run plan" in shown
    assert "Stop them: coordinate-agents graph-stop plan" in shown
    assert world.run("stop", "plan").code == 0
    world.release("a")


def _take_terminal() -> None:
    """In the child, before it becomes the program: make its terminal the controlling one, so that Ctrl-C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class _Terminal:
    """The program on a terminal of its own."""

    def __init__(self, world: World, *words: str, rows: int = 24, columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            [PROGRAM, *words],
            cwd=world.root,
            env={name: value for name, value in world.environment.items() if name not in ("LINES", "COLUMNS")},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - this process has one thread
        )
        os.close(theirs)
        self._shown = b""
        self.code: int | None = None

    def __enter__(self) -> "_Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)
        os.close(self._ours)

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read_until(self, found: Callable[[str], bool]) -> None:
        """Read until the text so far has what is looked for. The test's own time limit bounds the wait."""
        while not found(self._text()):
            chunk = self._read()
            assert chunk, self._text()

    def read_to_end(self) -> str:
        while self._read():
            pass
        self.code = self._process.wait(60)
        return self._text()

    def _read(self) -> bytes:
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # Linux: EIO when the last one who had it open closed it
            return b""
        self._shown += chunk
        return chunk

    def _text(self) -> str:
        return self._shown.decode(errors="replace").replace("\r\n", "\n")
