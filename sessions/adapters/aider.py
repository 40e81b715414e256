"""aider, one shot, prompt in a file. Its histories stay out of the worktree. Source: aider.chat/docs/config/options."""

from coordinate_agents.sessions.adapters.base import Adapter, LimitRule
from coordinate_agents.sessions.model import QuestionRule

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
    questions=(QuestionRule("yes-no", r"\(Y\)es/\(N\)o[^\n]{0,80}:\s*\Z", ("y", "Enter"), ("n", "Enter")),),
    limits=(
        LimitRule("AUTH_REQUIRED", r"AuthenticationError|(?i:no api key|missing api key)"),
        LimitRule("QUOTA_EXHAUSTED", r"insufficient_quota"),
        LimitRule("RATE_LIMITED", r"RateLimitError|\b429\b"),
    ),
)
