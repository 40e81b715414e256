"""The environment of tests: nothing of the user's."""

import os
from pathlib import Path


def foreign_variables() -> list[str]:
    """Names of what is set here and could change what git or the product does."""
    return [name for name in os.environ if name.startswith(("GIT_", "COORDINATE_AGENTS_", "XDG_", "CI"))]


def isolated_environment(home: Path) -> dict[str, str]:
    """Variables that keep git and the product away from the user's files."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_AUTHOR_NAME": "Ann User",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Ann User",
        "GIT_COMMITTER_EMAIL": "ann@example.org",
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
    }
