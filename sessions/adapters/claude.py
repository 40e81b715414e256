"""Anthropic's claude. One shot (`-p`), the prompt goes through stdin.

With `edits` it may change files but not run commands, so what it leaves is committed by the Runtime. It takes the id
of its conversation from us. Source: docs.claude.com, "Headless mode" and "CLI reference"; seen with 2.1.
"""

from coordinate_agents.sessions.adapters.base import (
    YES_NO,
    Acp,
    Adapter,
    Interactive,
    LimitRule,
    UsageRule,
    near_end,
    phrase,
)
from coordinate_agents.sessions.model import InputRules, QuestionRule

# A number chooses and confirms at once; Escape denies and ends the turn. Seen with 2.1.197.
_QUESTIONS = (
    QuestionRule(
        "trust",
        near_end(phrase("1. Yes, I trust this folder") + r"\s*" + phrase("2. No, exit")),
        allow=("1",),
        deny=("2",),
    ),
    QuestionRule("trust", near_end(phrase("Yes, I trust this folder"))),
    QuestionRule(
        "permission",
        near_end(
            phrase("in Bypass Permissions mode")
            + r"[\s\S]{0,900}"
            + phrase("1. No, exit")
            + r"\s*"
            + phrase("2. Yes, I accept")
        ),
        allow=("2",),
        deny=("1",),
    ),
    QuestionRule("permission", near_end(phrase("Claude Code running in Bypass Permissions mode"), 1200)),
    QuestionRule("trust", near_end(phrase("Do you trust the files in this folder?"))),
    QuestionRule("login", near_end(phrase("Select login method:"))),
    QuestionRule("login", near_end(phrase("Paste code here if prompted"))),
    QuestionRule("login", near_end(phrase("Not logged in · Run /login"), 200)),
    QuestionRule("login", near_end(phrase("Unable to connect to Anthropic services"))),
    QuestionRule(
        "permission",
        near_end(
            phrase("Do you want to") + r"[^\n]{0,200}\?\s*❯\s*1\.\s*Yes\b(?=[\s\S]*" + phrase("Esc to cancel") + ")",
            400,
        ),
        allow=("1",),
        deny=("Escape",),
    ),
    QuestionRule("permission", near_end(phrase("Do you want to") + r"[^\n]{0,200}\?\s*❯\s*1\.", 400)),
    QuestionRule("other", near_end(phrase("Detected a custom API key in your environment"))),
    QuestionRule("other", near_end(phrase("Choose the text style that looks best"), 1500)),
    YES_NO,
)
# The empty composer between its two lines, with the status line below it.
_COMPOSER = near_end(r"❯\s+─{10,}\s*(?:\?\s*for\s*shortcuts|⏵⏵|⏸)", 200)

ADAPTER = Adapter(
    name="claude",
    command="claude",
    subcommand=("-p",),
    permissions={
        "deny": ("--permission-mode", "plan"),
        "edits": ("--permission-mode", "acceptEdits"),
        "allow": ("--permission-mode", "bypassPermissions"),
    },
    args=("--session-id", "{externalSession}"),
    resume=("--resume", "{externalSession}"),
    delivery="stdin",
    commit="auto",
    writes_git_dir=True,
    chooses_session=True,
    questions=_QUESTIONS,
    limits=(
        LimitRule(
            "AUTH_REQUIRED",
            r"(?i)not logged in|please run /login|invalid api key|authentication_error",
            said=r"(?:Invalid API key|Not logged in|OAuth token [\w ]{1,30}|Please run /login) · |API Error:? \(?401\b",
        ),
        LimitRule(
            "QUOTA_EXHAUSTED",
            r"(?i)(?:usage|\d-hour|spend) limit reached|hit your (?:[\w-]+ ){0,3}limit|credit balance (?:is )?too low",
            said=r"You've (?:hit|reached) your (?:[\w-]+ ){0,3}limit\b|Claude (?:AI )?usage limit reached\b"
            r"|\d-hour limit reached\b|Credit balance (?:is )?too low\b",
        ),
        LimitRule(
            "RATE_LIMITED",
            r"(?i)rate_limit_error|api error:? ?(?:request rejected )?\(?429|overloaded_error|api error:? ?\(?529",
            said=r"API Error:? (?:\(?(?:429|529)\b|Request rejected \(429\))",
        ),
        # The network is gone, as after a suspended laptop woke up; it tried ten times by itself.
        LimitRule(
            "RATE_LIMITED",
            r"API Error:? \(?(?:Connection error|Unable to connect to API|Internet connection is unreliable)"
            r"|" + phrase("Failed to connect to") + r"\s*[\w.-]{1,100}:\s*E[A-Z_]{4,20}",
            said=r"API Error:? \(?(?:Connection error|Unable to connect to API|Internet connection is unreliable)",
        ),
    ),
    acp=Acp("claude-agent-acp", tells_tokens=True),
    # With --output-format json or stream-json among its args; the sum stands in the one line of the result.
    usage=(
        UsageRule(
            r'"type"\s*:\s*"result"',
            {
                "input": tuple(
                    rf'"usage"\s*:\s*\{{[^{{}}]*?"{name}"\s*:\s*'
                    for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
                ),
                "cached": (r'"usage"\s*:\s*\{[^{}]*?"cache_read_input_tokens"\s*:\s*',),
                "output": (r'"usage"\s*:\s*\{[^{}]*?"output_tokens"\s*:\s*',),
                "cost": (r'"total_cost_usd"\s*:\s*',),
            },
            is_running_total=True,
        ),
    ),
    interactive=Interactive(
        args=("--session-id", "{externalSession}"),
        resume=("--resume", "{externalSession}"),
        input=InputRules(
            paste="bracketed",
            ready=(_COMPOSER,),
            questions=_QUESTIONS,
        ),
        idle=(r"\n❯\s*\n─{10,}\n[^\n]*(?:\n[^\n]*){0,3}\Z",),
        busy=(near_end(phrase("esc to interrupt"), 400),),
    ),
)
