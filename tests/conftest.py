"""Every test runs without the user's configuration, and leaves no process behind."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings
from isolated import foreign_variables, isolated_environment

# A loaded machine is no failure, and no test leaves an example database behind.
settings.register_profile("suite", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# A shell that starts the tests in the background ignores these for it, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

__all__ = ["isolated_environment"]
_MARK = "COORDINATE_AGENTS_TEST_MARK"


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: a third of the time of the stories is waiting for real programs."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.fixture(autouse=True)
def isolation(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A HOME of its own; afterwards no process that inherited this test's mark may live."""
    home = tmp_path_factory.mktemp("home")
    runtime = tmp_path_factory.mktemp("run")
    runtime.chmod(0o700)
    for name in foreign_variables():
        monkeypatch.delenv(name)
    for name, value in isolated_environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    mark = f"{os.getpid()}-{home.name}-{home.parent.name}"
    monkeypatch.setenv(_MARK, mark)
    yield home
    left = _marked(mark)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):  # It may end meanwhile.
            process.kill()
    assert not left, f"left running: {[(p.pid, p.info['cmdline']) for p in left]}"


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["environ", "cmdline", "status"]):
        environ = process.info["environ"] or {}
        if environ.get(_MARK) == mark and process.pid != os.getpid() and process.info["status"] != "zombie":
            found.append(process)
    return found
