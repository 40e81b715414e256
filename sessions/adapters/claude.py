"""Anthropic's claude, one shot (`-p`), prompt through stdin.

With `edits` it may change files but not run commands, so what it leaves is committed by the Runtime.
Source: docs.claude.com, "Headless mode" and "CLI reference".
"""

from coordinate_agents.sessions.adapters.base import Adapter

ADAPTER = Adapter(
    name="claude",
    command="claude",
    subcommand=("-p",),
    permissions={
        "deny": ("--permission-mode", "plan"),
        "edits": ("--permission-mode", "acceptEdits"),
        "allow": ("--permission-mode", "bypassPermissions"),
    },
    delivery="stdin",
    commit="auto",
)
