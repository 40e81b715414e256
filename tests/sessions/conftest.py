"""A sessions root of its own for every test; afterwards every host and every tree is gone."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinate_agents.sessions import custodian, process, strays
from coordinate_agents.sessions.client import SessionHosts


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


def _wait_for_end(host: process.Stat) -> None:
    end = time.monotonic() + 5
    while process.is_same(host.pid, host.start_ticks) and time.monotonic() < end:
        try:
            os.waitpid(host.pid, os.WNOHANG)
        except ChildProcessError:
            time.sleep(0.01)
