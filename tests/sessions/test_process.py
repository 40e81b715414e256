"""Identity of processes and signals that cannot hit a stranger."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hosts import lives, until

from coordinate_agents.sessions import process


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads its own group, which is ended in any case."""
    child = subprocess.Popen(words, start_new_session=True)
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_name_with_spaces_and_parentheses_is_read_whole(tmp_path: Path) -> None:
    program = tmp_path / "a) R (b c"
    program.symlink_to("/bin/sleep")
    with running(str(program), "600") as child:
        seen = until(lambda: (s := process.stat(child.pid)) and s.name == "a) R (b c" and s)
        assert (seen.parent, seen.is_zombie, str(seen)) == (os.getpid(), False, f"{child.pid} a) R (b c")


def test_signal_reaches_the_process_it_was_meant_for() -> None:
    with running("sleep", "600") as child:
        seen = process.stat(child.pid)
        assert seen is not None
        assert process.send(seen, signal.SIGTERM)
        assert child.wait() == -signal.SIGTERM
        assert not process.send(seen, signal.SIGTERM)


def test_pid_that_was_given_to_another_process_is_not_signalled() -> None:
    with running("sleep", "600") as child:
        seen = process.stat(child.pid)
        assert seen is not None
        seen.start_ticks -= 1
        assert not process.send(seen, signal.SIGKILL)
        assert not process.is_same(child.pid, seen.start_ticks)
        assert child.poll() is None


def test_zombie_is_not_alive() -> None:
    with running("true") as child:
        until(lambda: not lives(child.pid))
        seen = process.stat(child.pid)
        assert seen is not None
        assert seen.is_zombie
        assert not process.is_same(child.pid, seen.start_ticks)


def test_descendants_are_found_nearest_first_and_ancestors_upwards() -> None:
    script = "sh -c 'sleep 600 & wait' & wait"
    with running("sh", "-c", script) as child:
        tree = until(lambda: (t := process.descendants(child.pid, process.every())) and len(t) == 2 and t)
        until(lambda: [one.name for one in process.descendants(child.pid, process.every())] == ["sh", "sleep"])
        assert {os.getpid(), child.pid, tree[0].pid} <= process.ancestors(tree[1].pid, process.every())


def test_host_modules_load_nothing_slow() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import coordinate_agents.sessions.host.main; "
        "print([m for m in sys.argv[2].split() if m in sys.modules])"
    )
    slow = (
        "typing dataclasses inspect subprocess pathlib shutil tempfile asyncio anyio threading hashlib importlib.util"
    )
    base = str(Path(process.__file__).absolute().parents[2])
    words = [sys.executable, "-I", "-S", "-c", code, base, slow]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[]\n"
