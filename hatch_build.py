"""Build hook: for an editable install, lay the four packages out under ``build/dev/coordinate_agents``.

The folders stand at the top level of the project but are imported as ``coordinate_agents.<name>``. A wheel maps
them with ``sources``; an editable install needs real paths that interpreters and type checkers can follow, so this
hook makes one directory link for each (a junction on Windows, where links need a privilege).
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("graph", "worktrees", "sessions", "cli")


class DevLinks(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            return
        namespace = Path(self.root, "build", "dev", "coordinate_agents")
        namespace.mkdir(parents=True, exist_ok=True)
        for name in PACKAGES:
            link = namespace / name
            if link.exists():
                continue
            if sys.platform == "win32":
                subprocess.run(["cmd", "/c", "mklink", "/J", str(link), str(Path(self.root, name))], check=True)
            else:
                link.symlink_to(Path("..", "..", "..", name))
