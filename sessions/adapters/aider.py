"""aider, one shot, prompt in a file. Source: aider.chat/docs/config/options; seen with 0.86.

Its histories stay out of the worktree, and so does the cache of its map of the repository, which it would leave there
untracked: the map is off. It ends with exit code 0 also when its service refused.
"""

from coordinate_agents.sessions.adapters.base import Adapter, LimitRule, UsageRule
from coordinate_agents.sessions.model import QuestionRule

ADAPTER = Adapter(
    name="aider",
    command="aider",
    args=(
        "--yes-always",
        "--no-check-update",
        "--no-gitignore",
        "--map-tokens",
        "0",
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
        LimitRule(
            "AUTH_REQUIRED",
            r"AuthenticationError|(?i:no api key|missing api key)",
            said=r"litellm\.AuthenticationError: ",
        ),
        LimitRule("QUOTA_EXHAUSTED", r"insufficient_quota", said=r"litellm\.RateLimitError: .*\binsufficient_quota\b"),
        LimitRule("RATE_LIMITED", r"RateLimitError|\b429\b", said=r"litellm\.RateLimitError: "),
    ),
    # After each message: "Tokens: 2.3k sent, 1.1k cache hit, 120 received. Cost: $0.01 message, $0.02 session."
    usage=(
        UsageRule(
            r"(?m)^Tokens: (?=[\d.]+[kM]? sent)",
            {
                "input": (r"Tokens: ",),
                "cached": (r"(?:sent|write), (?=[\d.]+[kM]? cache hit)",),
                "output": (r", (?=[\d.]+[kM]? received)",),
                "cost": (r"Cost: \$",),
            },
        ),
    ),
)
