"""Google's gemini, one shot. It works without asking only in a folder that it trusts. Source: geminicli.com/docs."""

from coordinate_agents.sessions.adapters.base import Adapter

ADAPTER = Adapter(
    name="gemini",
    command="gemini",
    permissions={
        "deny": ("--approval-mode", "plan"),
        "edits": ("--approval-mode", "auto_edit"),
        "allow": ("--approval-mode", "yolo"),
    },
    args=("--prompt", "{prompt}"),
    commit="auto",
)
