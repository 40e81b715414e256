"""One user with one repository, and the real command line as a child process: what the story tests are told in.

A World has a checkout with a little history, fake agents in the user's configuration (which needs no trust), a log that
agents write outside the repository, and gates at which an agent waits until the test opens them. Nothing here knows how
the program works inside; it looks at git, at files and at processes, as a suspicious user would.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil
import pytest
from isolated import foreign_variables, isolated_environment
from repos import commit_file, git, make_repo

from coordinate_agents.graph.crashpoints import CRASH_VARIABLE, MARKS_VARIABLE
from coordinate_agents.graph.pace import PACE_VARIABLE

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from checkout_state import checkout_state, differences  # noqa: E402

PROGRAM: Final = Path(sys.executable).parent / "coordinate-agents"
ONE_COMMIT: Final = FIXTURES / "agents" / "fake_one_commit.sh"
WAYS: Final = FIXTURES / "agents" / "fake_ways.py"
# Names of agents that the graphs of fixtures/documents/graphs use; all of them make one commit here.
ROLES: Final = ("coder", "tester", "reviewer", "writer")

RUN_LIMIT_S: Final = 90.0
EVENT_LIMIT_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.01

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Done:
    """One call of the program that ended. `data` is the JSON document's data, when there is one."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        document = self.document
        assert document["ok"], document
        return document["data"]

    def __str__(self) -> str:
        return f"{' '.join(self.argv)} → {self.code}\n{self.out[-4000:]}\n{self.err[-4000:]}"


class World:
    """`root` is the user's checkout, `log` and `gates` are the agents', all below `place`.

    The checkout is on main with one commit; `topic` stands there too, `feature` has one commit more.
    """

    def __init__(self, place: Path, home: Path) -> None:
        self.place = place
        self.home = home
        self.root = make_repo(place / "checkout")
        self.log = place / "agents.log"
        self.gates = place / "gates"
        self.worktrees = place / "worktrees"
        self._marks = place / "marks"
        self.gates.mkdir()
        self._marks.mkdir()
        self.log.touch()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            # As a shell would set it; some agents take their folder from it.
            "PWD": str(self.root),
            "FAKE_LOG": str(self.log),
            "FAKE_GATES": str(self.gates),
            MARKS_VARIABLE: str(self._marks),
            "COORDINATE_AGENTS_WORKTREES": str(self.worktrees),
            # Fake agents that stay are silent at once.
            PACE_VARIABLE: "0.25",
            # Checks find this environment's python and pytest.
            "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        git(self.root, "config", "user.name", "Ann User")
        git(self.root, "config", "user.email", "ann@example.org")
        git(self.root, "branch", "topic")
        git(self.root, "checkout", "-q", "-b", "feature")
        commit_file(self.root, "feature.txt", "an older piece of work\n")
        git(self.root, "checkout", "-q", "main")
        self.configure({"one": (ONE_COMMIT,), **dict.fromkeys(ROLES, (ONE_COMMIT,))})

    def configure(self, agents: dict[str, Iterable[str | Path]], *, default: str = "one") -> None:
        """Write the user's configuration: name → command and its arguments."""
        lines = ["version: 1", f"defaultAgent: {default}", "agents:"]
        for name, command in agents.items():
            program, *arguments = [str(part) for part in command]
            lines += [f"  {name}:", "    adapter: generic", f"    command: {json.dumps(program)}"]
            lines += [f"    args: {json.dumps(arguments)}"] if arguments else []
        self.configure_text("\n".join(lines) + "\n")

    def configure_text(self, text: str) -> None:
        """Write the user's configuration as it stands here."""
        path = self.home / ".config" / "coordinate-agents" / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def agent(self, body: str, name: str = "agent") -> Path:
        """A shell program outside the checkout; `set -eu` and the subtask's id as $S stand before the body."""
        path = self.place / f"{name}.sh"
        path.write_text(f'#!/bin/sh\nset -eu\nS="$COORDINATE_AGENTS_SUBTASK"\n{body}\n')
        path.chmod(0o755)
        return path

    def ways(self, *names: str) -> None:
        """Configure one agent per way of fake_ways.py beside the one-commit agent."""
        self.configure({"one": (ONE_COMMIT,), **{name: (sys.executable, WAYS, name) for name in names}})

    def graph(self, text: str, name: str = "plan.yaml") -> Path:
        """Write a graph file outside the checkout, so that the checkout stays as it is."""
        path = self.place / name
        path.write_text(text)
        return path

    @staticmethod
    def command(*arguments: str | Path) -> list[str]:
        return [str(PROGRAM), *(str(argument) for argument in arguments)]

    def run(self, *arguments: str | Path, limit_s: float = RUN_LIMIT_S) -> Done:
        """Call the program in the checkout and wait for its end."""
        argv = self.command(*arguments)
        done = subprocess.run(
            argv,
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
        return Done(tuple(argv[1:]), done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Call the program and do not wait; its output goes to files in `place`."""
        with (self.place / "started.out").open("ab") as out:
            return subprocess.Popen(
                self.command(*arguments),
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def said(self) -> str:
        """What the calls of `start` printed."""
        return (self.place / "started.out").read_text()

    def deaths(self, point: str) -> int:
        """How many processes of this world died at the named point (`name` or `name:n`) until now."""
        return len(list(self._marks.glob(f"{point.partition(':')[0]}.[0-9]*")))

    @contextmanager
    def dying_at(self, point: str) -> Iterator[None]:
        """What is started in the block dies at the point, `name` or `name:n`; `deaths` says whether it did."""
        self.environment[CRASH_VARIABLE] = point
        try:
            yield
        finally:
            del self.environment[CRASH_VARIABLE]

    def run_dying(self, point: str, *arguments: str | Path) -> None:
        """Call the program, which dies at the point."""
        before = self.deaths(point)
        with self.dying_at(point):
            done = self.run(*arguments)
        assert (done.code, self.deaths(point) > before) == (-signal.SIGKILL, True), f"{point} was not passed: {done}"

    def status(self, graph: str) -> Any:
        done = self.run("graph-status", graph, "--json")
        assert done.code == 0, str(done)
        return done.data

    def hold(self, *subtasks: str) -> None:
        """Make the one-commit agent of these subtasks wait before it works."""
        for subtask in subtasks:
            (self.gates / f"{subtask}.hold").touch()

    def release(self, *subtasks: str) -> None:
        for subtask in subtasks:
            (self.gates / f"{subtask}.hold").unlink()

    def log_lines(self) -> list[list[str]]:
        """What the agents logged, in order: [start|end, subtask, attempt, pid, folder]."""
        return [line.split(" ", 4) for line in self.log.read_text().splitlines()]

    def wait_for_start(self, subtask: str) -> int:
        """Wait until the agent of the subtask runs; its process id."""

        def started() -> int | None:
            pids = [int(line[3]) for line in self.log_lines() if line[:2] == ["start", subtask]]
            return pids[-1] if pids else None

        return until(started, f"the agent of {subtask} starts")

    def user_state(self) -> dict[str, str]:
        """Everything of the user's in the checkout (fixtures/checkout_state.py)."""
        return checkout_state(self.root)

    def files(self, revision: str) -> dict[str, str]:
        """Path → content of every file of a commit, text only."""
        names = git(self.root, "ls-tree", "-r", "--name-only", revision).splitlines()
        return {name: git(self.root, "show", f"{revision}:{name}") for name in names}

    def assert_nothing_left(self, *graphs: str) -> None:
        """No process, lock, socket or control group, no worktree that no graph knows, a repository without damage."""
        until(lambda: not self.processes() or None, "every process ends", tell=self.processes)
        assert self.held_locks() == []
        assert not (left := self.leftovers()), left
        known = {Path(item) for graph in graphs for item in self._places(graph)}
        there = {path for path in self.worktrees.glob("*/*/*") if path.is_dir()}
        assert there <= known, f"nobody knows {there - known}"
        git(self.root, "fsck", "--connectivity-only", "--no-dangling")

    def _places(self, graph: str) -> list[str]:
        data = self.status(graph)
        found = [subtask[key] for subtask in data["subtasks"] for key in ("worktree", "conflictWorktree")]
        if data["integration"]:
            found.append(data["integration"]["worktree"])
        return [place for place in found if place]

    def processes(self) -> list[str]:
        """Processes that carry this world's log in their environment, or stand in one of its folders."""
        found = []
        for process in psutil.process_iter(["environ", "cwd", "cmdline", "status"]):
            info = process.info
            if process.pid == os.getpid() or info["status"] == psutil.STATUS_ZOMBIE:
                continue
            ours = (info["environ"] or {}).get("FAKE_LOG") == str(self.log)
            inside = bool(info["cwd"]) and Path(info["cwd"]).is_relative_to(self.place)
            if ours or inside:
                found.append(f"{process.pid} {' '.join(info['cmdline'] or [])[:200]}")
        return found

    def leftovers(self) -> list[str]:
        """What only a process at its work has: lock files of git, sockets, control groups, records without an end."""
        git_dir, state = self.root / ".git", self.root / ".git" / "coordinate-agents"
        found = [path for path in git_dir.rglob("*.lock") if not path.is_relative_to(state)]
        for path in (state / "sessions").glob("*/record.json"):
            record = json.loads(path.read_bytes())
            found += [path] if record["host"] and record["end"] is None else []
            found += [Path(record[key]) for key in ("socket", "cgroup") if record.get(key)]
        return sorted(str(path) for path in found if path.exists())

    def held_locks(self) -> list[str]:
        """Kernel locks on files below the state folder and the worktrees. Linux only; elsewhere nothing is found."""
        state = self.root / ".git" / "coordinate-agents"
        held = {folder: _locked_inodes(folder) for folder in (state, self.worktrees) if folder.is_dir()}
        return [
            str(path)
            for folder, inodes in held.items()
            for path in folder.rglob("*")
            if path.is_file() and path.stat().st_ino in inodes
        ]


def _locked_inodes(folder: Path) -> set[int]:
    """Of the file system that holds the folder: other file systems have the same numbers for other files.

    How the kernel's table names that file system is learned from a lock of our own (`st_dev` may be another number).
    """
    table = Path("/proc/locks")
    if not table.exists():
        return set()
    with tempfile.TemporaryFile(dir=folder) as probe:
        fcntl.flock(probe, fcntl.LOCK_EX)
        own = os.fstat(probe.fileno()).st_ino
        lines = [line.split() for line in table.read_text().splitlines() if " -> " not in line]
    # number: kind, mode, access, process id, device:inode, from, to
    held = [(*fields[5].rsplit(":", 1), fields[4]) for fields in lines]
    devices = {device for device, inode, pid in held if (inode, pid) == (str(own), str(os.getpid()))}
    return {int(inode) for device, inode, _ in held if device in devices} - {own}


@contextmanager
def shared_world(place: Path) -> Iterator[World]:
    """A World that several tests look at and none changes, with a HOME of its own; no process of it may stay."""
    for name in ("home", "run", "place"):
        (place / name).mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        for name in foreign_variables():
            patch.delenv(name)
        for name, value in isolated_environment(place / "home").items():
            patch.setenv(name, value)
        patch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
        world = World(place / "place", place / "home")
    yield world
    assert world.processes() == []


def until(look: Callable[[], Found | None], what: str, *, tell: Callable[[], object] | None = None) -> Found:
    """Wait, bounded, until `look` finds something; what it found."""
    deadline = time.monotonic() + EVENT_LIMIT_S
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {EVENT_LIMIT_S:.0f} s in vain: {what}; {tell() if tell else ''}")
        time.sleep(_LOOK_EVERY_S)
    return found


__all__ = ["FIXTURES", "Done", "World", "commit_file", "differences", "git", "make_repo", "shared_world", "until"]
