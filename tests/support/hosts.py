"""Launch values and bounded waits for tests of Sessions."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinate_agents.sessions import process
from coordinate_agents.sessions.model import Launch, SessionId

AGENTS = Path(__file__).parents[2] / "fixtures" / "agents"
WAIT_S = 20.0


def launch(
    name: str, *argv: str | Path, cwd: Path | str = "/", env: dict[str, str] | None = None, **more: Any
) -> Launch:
    """A Session of these words. The first word is an absolute path, or the name of a fixture agent."""
    words = [str(word) for word in argv]
    if not words[0].startswith("/"):
        words[0] = str(AGENTS / words[0])
    variables = {**os.environ, **(env or {})}
    return Launch(SessionId(name), "agent", tuple(words), str(cwd), variables, **{"close_bound_s": 2.0, **more})


def shell(name: str, script: str, **more: Any) -> Launch:
    return launch(name, "/bin/sh", "-c", script, **more)


def until(condition: Callable[[], Any], bound_s: float = WAIT_S) -> Any:
    """What the condition returns once it is true. Fails the test after the bound."""
    end = time.monotonic() + bound_s
    while not (value := condition()):
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)
    return value


def text_of(path: Path) -> str:
    """The file's content once it exists and is not empty."""
    return str(until(lambda: path.exists() and path.read_text())).strip()


def lives(pid: int) -> bool:
    seen = process.stat(pid)
    return seen is not None and not seen.is_zombie
