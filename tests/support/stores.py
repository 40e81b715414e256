"""A store with one graph, and child processes that speak with the test in lines."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinate_agents.graph.errors import GraphError as GraphError
from coordinate_agents.graph.store.place import StatePlace as StatePlace
from coordinate_agents.graph.store.rows import NewDocument, NewEvent, RunRow
from coordinate_agents.graph.store.store import Store

GRAPH = "checkout"
DOCUMENT = NewDocument("Build the checkout", "0" * 40, '{"tasks":[]}', "digest-1", "{}")
_LIMIT_S = 30.0

# Every child starts with this: the store, a line out, a line in.
PRELUDE = """
import sys, os, time
from pathlib import Path
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.lease import Lease, holder
from coordinate_agents.graph.store.rows import NewDocument, NewEvent, RequestResult, RunRow
from coordinate_agents.graph.store.place import StatePlace as StatePlace
from coordinate_agents.graph.store.store import Store
state = Path(sys.argv[1])
def say(*words): print(*words, flush=True)
def hear(): return sys.stdin.readline().strip()
"""


def state_of(tmp_path: Path) -> Path:
    return tmp_path / "common" / "coordinate-agents"


def create_graph(store: Store, graph_id: str = GRAPH, *, subtasks: int = 1) -> None:
    runs = [RunRow(f"s{number}", '{"state":"WAITING"}') for number in range(subtasks)]
    store.create_graph(
        graph_id, DOCUMENT, first_event=NewEvent("GraphCreated", {"who": "ann"}), runs=runs, summary="{}", now=1.0
    )


def seeded(tmp_path: Path, *, events: int = 0) -> Path:
    """A closed state folder with one graph at generation 1 and so many events besides the first."""
    state = state_of(tmp_path)
    with Store.open(state) as store:
        create_graph(store)
        generation = store.next_generation(GRAPH)
        for number in range(events):
            store.append(GRAPH, generation, [NewEvent("Noted", {"number": number})], now=2.0 + number)
    return state


class Child:
    """A Python process that runs `code` after the prelude; `lines` talk with it."""

    def __init__(self, state: Path, code: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> str:
        """The next line it says; its standard error when it ended instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(f"the child ended: {self.process.stderr.read()}")
        return line.strip()

    def say(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        """Wait for its end; exit code and what it still said."""
        out, err = self.process.communicate(timeout=_LIMIT_S)
        assert self.process.returncode <= 0 or not err, err
        return self.process.returncode, out

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=_LIMIT_S)

    def stop(self) -> None:
        """SIGSTOP, and wait until it has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)


@contextmanager
def child(state: Path, code: str, **environment: str) -> Iterator[Child]:
    """A child that is gone after the block."""
    running = Child(state, code, **environment)
    try:
        yield running
    finally:
        running.kill()


def digests(folder: Path) -> dict[str, str]:
    """Every name in the folder with the digest of its bytes, mode and modification time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (
            f"{hashlib.sha256(content).hexdigest()} {about.st_mode:o} {about.st_mtime_ns}"
        )
    return found


def until(condition: Callable[[], bool]) -> None:
    """Wait, bounded, until the condition holds."""
    deadline = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)
