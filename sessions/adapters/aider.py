"""aider, one shot, prompt in a file. Its histories stay out of the worktree. Source: aider.chat/docs/config/options."""

from coordinate_agents.sessions.adapters.base import Adapter

ADAPTER = Adapter(
    name="aider",
    command="aider",
    args=(
        "--yes-always",
        "--no-check-update",
        "--no-gitignore",
        "--chat-history-file",
        "/dev/null",
        "--input-history-file",
        "/dev/null",
        "--message-file",
        "{promptFile}",
    ),
    delivery="file",
    commit="auto",
)
