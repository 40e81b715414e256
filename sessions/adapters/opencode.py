"""opencode, one shot. Its own configuration decides about permissions, but for `allow`.

Its events are printed as JSON, since only they name the conversation. Source: opencode.ai/docs/cli; seen with 1.18.
"""

from coordinate_agents.sessions.adapters.base import Acp, Adapter, LimitRule, UsageRule

ADAPTER = Adapter(
    name="opencode",
    command="opencode",
    subcommand=("run", "--format", "json"),
    permissions={"allow": ("--auto",)},
    resume=("--session", "{externalSession}"),
    delivery="stdin",
    commit="auto",
    writes_git_dir=True,
    session_pattern=r'"sessionID":"(ses_[A-Za-z0-9]{1,64})"',
    acp=Acp("opencode", ("acp",)),
    limits=(
        LimitRule(
            "AUTH_REQUIRED",
            r"(?i)opencode auth login|(?:invalid|incorrect) api key|\"statusCode\":401|ProviderAuthError",
        ),
        LimitRule("QUOTA_EXHAUSTED", r"(?i)insufficient_quota|usage limit (?:reached|exceeded)"),
        LimitRule("RATE_LIMITED", r"(?i)\"statusCode\":429|rate.?limit(?:ed| exceeded| reached)|too many requests"),
        # The network is gone.
        LimitRule("RATE_LIMITED", r"Unable to connect\. Is the computer able to access the url\?"),
    ),
    # One line a step; its input does not contain what was read from or written to a cache.
    usage=(
        UsageRule(
            r'"type":"step_finish"',
            {
                "input": (r'"tokens":\{[^{}]*"input":', r'"cache":\{[^{}]*"read":', r'"cache":\{[^{}]*"write":'),
                "cached": (r'"cache":\{[^{}]*"read":',),
                "output": (r'"tokens":\{[^{}]*"output":', r'"tokens":\{[^{}]*"reasoning":'),
                "cost": (r'"cost":',),
            },
        ),
    ),
)
