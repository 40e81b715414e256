"""A sessions root of its own for every test; afterwards every host and every tree is gone."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import winpty_stand_in

from coordinate_agents.sessions import custodian, process, starting, strays
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.drivers import DRIVERS
from coordinate_agents.sessions.forking import ForkServer
from coordinate_agents.sessions.model import Driver


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state") / "sessions"


@pytest.fixture
def hosts(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionHosts]:
    yield SessionHosts(root, runtime_dir=tmp_path_factory.mktemp("s"))
    for _, seen in custodian.every_record(root):
        if seen.record is None or seen.record.host is None:
            continue
        host = process.stat(seen.record.host.pid)
        if host is not None and host.start_ticks == seen.record.host.start_ticks:
            process.send(host, signal.SIGCONT)
            process.send(host, signal.SIGKILL)
            _wait_for_end(host)
        strays.end(custodian.traces_of([seen.record]), 2.0)


_NOT_OVER_WINPTY = {
    "test_program_sees_the_name_it_was_called_by": "pywinpty gives a program no other name than its path",
    "test_ended_at_the_same_time_every_exit_code_matches_its_session": "forty interpreters, and nothing new",
    "test_flood_is_followed_and_what_was_missed_is_counted": "one flood is enough, and the other one runs",
}


@pytest.fixture(params=[*sorted(DRIVERS), "winpty"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Every driver of this system, and the one of Windows in the place of `pty`, over a stand-in for pywinpty."""
    name: str = request.param
    if name == "winpty":
        if reason := _NOT_OVER_WINPTY.get(request.node.originalname):
            pytest.skip(reason)
        base = Path(starting.__file__).absolute().parents[2]
        program = winpty_stand_in.bootstrap(base, strays.HOST_WORDS.decode())
        monkeypatch.setattr(starting, "bootstrap", lambda: program)
        monkeypatch.setattr(ForkServer, "fork", lambda *_: None)
        name = "pty"
    return name  # type: ignore[return-value]


def _wait_for_end(host: process.Stat) -> None:
    end = time.monotonic() + 5
    while process.is_same(host.pid, host.start_ticks) and time.monotonic() < end:
        try:
            os.waitpid(host.pid, os.WNOHANG)
        except ChildProcessError:
            time.sleep(0.01)
