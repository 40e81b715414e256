"""Google's gemini, one shot. It works without asking only in a folder that it trusts. Source: geminicli.com/docs; its
flags, a turn and what it says without a login seen with 0.61.
"""

from coordinate_agents.sessions.adapters.base import YES_NO, Acp, Adapter, LimitRule, near_end, phrase
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
    acp=Acp("gemini", ("--experimental-acp",)),
    limits=(
        LimitRule("AUTH_REQUIRED", r"(?i)please set an auth method|api key not valid|UNAUTHENTICATED"),
        LimitRule("QUOTA_EXHAUSTED", r"(?i)exceeded your (?:current|daily) quota|quota exceeded|exhausted your"),
        LimitRule("RATE_LIMITED", r"RESOURCE_EXHAUSTED|(?i:too many requests)|\b429\b"),
    ),
)
