"""Any program that speaks the Agent Client Protocol: the configuration names it and its arguments.

What it leaves uncommitted after a turn that ended well is committed by the Runtime: many such agents edit and no more.
Its refusals are looked for in its errors, and in a turn that says nothing else; the words are those of many programs.
"""

from coordinate_agents.sessions.adapters.base import Acp, Adapter, LimitRule

ADAPTER = Adapter(
    name="acp",
    driver="acp",
    commit="auto",
    questions=(),
    limits=(
        LimitRule(
            "AUTH_REQUIRED",
            r"(?i)please (?:run /?log ?in|log ?in|sign in|authenticate)|run /login|not (?:logged|signed) in"
            r"|(?:invalid|incorrect|expired|missing) (?:x-)?api[- ]key|api key (?:not valid|is missing|has expired)"
            r"|authentication[ _](?:required|failed|error)|\b401\b|unauthorized",
        ),
        LimitRule(
            "QUOTA_EXHAUSTED",
            r"(?i)insufficient_quota|quota (?:exceeded|exhausted)|exceeded your (?:\w+ )?quota"
            r"|(?:usage|spend) limit (?:reached|exceeded)|hit your (?:[\w-]+ ){0,3}limit"
            r"|credit balance (?:is )?too low",
        ),
        LimitRule(
            "RATE_LIMITED",
            r"(?i)rate[ _-]?limit(?:ed|_error| reached| exceeded)|too many requests|\b429\b|overloaded_error|\b529\b",
        ),
    ),
    acp=Acp(),
)
