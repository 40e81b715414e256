"""Custody on Windows, as far as it can be looked at elsewhere: layouts, decisions, and types as Windows has them.

The decisions run against a small kernel of the test's own; none of this has seen Windows.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

import coordinate_agents.sessions.windows as package
from coordinate_agents.sessions.windows import kernel, processes
from coordinate_agents.sessions.windows.jobs import Job

ME = 100


class Few:
    """A kernel with few processes: {pid: start}. `forks`: a process that is ended leaves these behind, once."""

    def __init__(self, started: dict[int, int], *, strangers: tuple[int, ...] = (), forks: dict[int, int]) -> None:
        self.started, self.strangers, self.forks = started, strangers, forks
        self.ended: list[int] = []
        self.open_handles: list[int] = []

    def own_pid(self) -> int:
        return ME

    def new_job(self) -> int:
        return 7

    def assign(self, job: int, pid: int) -> None:
        assert (job, pid) == (7, ME)

    def pids_of(self, job: int) -> list[int]:
        return [ME, *self.started]

    def open(self, pid: int) -> int | None:
        if pid not in self.started:
            return None
        self.open_handles.append(pid)
        return pid

    def is_in(self, process: int, job: int) -> bool:
        return process not in self.strangers

    def start_time(self, process: int) -> int:
        return self.started[process]

    def terminate(self, process: int, code: int) -> None:
        self.ended.append(process)
        if process in self.forks:
            self.started[self.forks.pop(process)] = 1
        del self.started[process]

    def wait(self, process: int, timeout_ms: int) -> bool:
        return process not in self.started

    def close(self, handle: int) -> None:
        self.open_handles.remove(handle)


def test_everything_in_the_job_but_the_host_is_ended_round_by_round() -> None:
    few = Few({1: 1, 2: 1}, forks={2: 3, 3: 4})
    job = Job(few)
    assert job.members() == [1, 2]
    assert job.end(10) == []
    assert few.ended == [1, 2, 3, 4]
    assert few.open_handles == []


def test_number_that_is_somebody_elses_by_now_is_left_alone_and_named() -> None:
    few = Few({1: 1, 2: 1}, strangers=(2,), forks={})
    assert Job(few).end(0.01) == [2]
    assert set(few.ended) == {1}


def test_process_is_its_number_and_its_start() -> None:
    few = Few({5: 123}, forks={})
    assert processes.start_time(few, 5) == 123
    asked = ((5, 123), (5, 124), (6, 123))
    assert [processes.is_same(few, pid, started) for pid, started in asked] == [True, False, False]
    assert few.open_handles == []


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="the sizes of 64 bits")
def test_structures_have_the_sizes_that_windows_expects() -> None:
    assert ctypes.sizeof(kernel.ExtendedLimits) == 144
    assert kernel.ExtendedLimits.basic.offset == 0
    assert ctypes.sizeof(kernel.pid_list(1)) == 16
    assert ctypes.sizeof(kernel.pid_list(64)) == 8 + 64 * 8


def test_types_are_right_for_windows(tmp_path: Path) -> None:
    """mypy as on Windows, over what is meant for it: a call that Python has not there is an error."""
    base = str(package.__path__[0])
    command = [sys.executable, "-m", "mypy", "--platform", "win32", "--strict", "--follow-imports=silent"]
    names = [f"coordinate_agents.sessions.{name}" for name in ("windows", "address", "drivers.winpty", "host.inputs")]
    options = [f"--cache-dir={tmp_path}", "--config-file=", "--explicit-package-bases", "--namespace-packages"]
    packages = [word for name in names for word in ("-p", name)]
    found = subprocess.run(
        [*command, *options, *packages], capture_output=True, text=True, env={"MYPYPATH": str(Path(base).parents[2])}
    )
    assert found.returncode == 0, found.stdout + found.stderr
