"""Google's gemini, one shot. It works without asking only in a folder that it trusts. Source: geminicli.com/docs; its
flags, turns of both kinds, what they took, and what it says without a login seen with 0.61.
"""

from coordinate_agents.sessions.adapters.base import YES_NO, Acp, Adapter, LimitRule, UsageRule, near_end, phrase
from coordinate_agents.sessions.model import QuestionRule

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
    questions=(
        QuestionRule("trust", near_end(phrase("Do you trust this folder?"))),
        QuestionRule("login", near_end(phrase("How would you like to authenticate for this project?"))),
        YES_NO,
    ),
    acp=Acp("gemini", ("--acp",), tells_tokens=True),
    limits=(
        LimitRule("AUTH_REQUIRED", r"(?i)please set an auth method|api key not valid|UNAUTHENTICATED"),
        LimitRule("QUOTA_EXHAUSTED", r"(?i)exceeded your (?:current|daily) quota|quota exceeded|exhausted your"),
        LimitRule("RATE_LIMITED", r"RESOURCE_EXHAUSTED|(?i:too many requests)|\b429\b"),
    ),
    usage=(
        # With --output-format stream-json among its args.
        UsageRule(
            r'"type":"result"[^\n]*?"stats":',
            {
                "input": (r'"stats":\{[^{}]*?"input_tokens":',),
                "cached": (r'"stats":\{[^{}]*?"cached":',),
                "output": (r'"stats":\{[^{}]*?"output_tokens":',),
            },
        ),
        # With --output-format json: a part for each model, and in it, further in, one for each role of it.
        UsageRule(
            r'(?m)^ {8}"tokens": \{',
            {
                "input": (r'"prompt": ',),
                "cached": (r'"cached": ',),
                "output": (r'"candidates": ', r'"thoughts": '),
            },
            end="}",
        ),
    ),
)
