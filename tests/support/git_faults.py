"""A `git` that fails, is killed or hangs at its n-th call; agents' own calls are left alone.

It stands first on PATH in a World. What it did is in `fired`: the number and the arguments of the call, or nothing when
there were fewer calls.
"""

import shutil
import sys
from pathlib import Path
from typing import Final, Literal

from world import PROGRAM, World

Fault = Literal["fails", "killed", "hangs"]

_ACTS: Final = {
    "fails": 'echo "fatal: simulated failure" >&2; exit 128',
    # After its work: what it did stands, and nobody was told.
    "killed": '"{git}" "$@"; kill -9 $$',
    "hangs": "exec sleep 300",
}
_PROGRAM: Final = """#!/bin/sh
if [ -z "$COORDINATE_AGENTS_SUBTASK" ] && [ "$1" != version ]; then
    echo "$*" >>"{place}/calls"
    if [ "$(wc -l <"{place}/calls")" -ge {number} ] && mkdir "{place}/once" 2>/dev/null; then
        echo "$*" >"{place}/fired"
        {act}
    fi
fi
exec "{git}" "$@"
"""
# A hang is bounded by a minute and more; here by a second and a half. Nothing else of the program is different.
HURRIED: Final = """
import importlib, pkgutil, sys
import coordinate_agents.worktrees as package
for found in pkgutil.iter_modules(package.__path__, "coordinate_agents.worktrees."):
    importlib.import_module(found.name)
def hurry(owner):
    for name, value in list(vars(owner).items()):
        if name.endswith("TIMEOUT_S"):
            setattr(owner, name, min(value, 1.5))
        elif isinstance(value, type) and value.__module__.startswith(package.__name__):
            hurry(value)
        elif "timeout_s" in (getattr(value, "__kwdefaults__", None) or {}):
            value.__kwdefaults__["timeout_s"] = 1.5
for name, module in list(sys.modules.items()):
    if name.startswith("coordinate_agents.worktrees."):
        hurry(module)
sys.argv[0] = "coordinate-agents"
from coordinate_agents.cli.main import main
sys.exit(main())
"""


class FaultyGit:
    """In effect from its making until `mend`."""

    def __init__(self, world: World, fault: Fault, number: int) -> None:
        self._world, self._path = world, world.environment["PATH"]
        self._place = world.place / "faulty"
        self._place.mkdir()
        git = shutil.which("git", path=self._path)
        act = _ACTS[fault].format(git=git)
        program = self._place / "git"
        program.write_text(_PROGRAM.format(place=self._place, number=number, act=act, git=git))
        program.chmod(0o755)
        world.environment["PATH"] = f"{self._place}:{self._path}"

    def mend(self) -> None:
        self._world.environment["PATH"] = self._path

    @property
    def fired(self) -> str | None:
        told = self._place / "fired"
        return told.read_text().strip() if told.exists() else None


def hurried_command(*arguments: str | Path) -> list[str]:
    """The command line with short git time limits."""
    python = PROGRAM.parent / Path(sys.executable).name
    return [str(python), "-c", HURRIED, *(str(argument) for argument in arguments)]
