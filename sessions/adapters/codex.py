"""OpenAI's codex. One shot, the prompt goes through stdin: it may be longer than an argument, and `ps` shows arguments.

Its workspace-write sandbox ends at the worktree, so it cannot commit to the repository: the Runtime commits.
Interactive, `--no-daemon` keeps its app server inside: otherwise all Sessions of one CODEX_HOME, the user's own
included, share one that the first of them started, with that one's environment.
Source: `codex --help`, `codex exec --help`, developers.openai.com/codex/noninteractive; seen with 0.171.
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

# Seen with 0.171. In the dialog of trust a number does nothing but the second; Enter takes what is marked.
_QUESTIONS = (
    QuestionRule(
        "trust",
        near_end(phrase("Trust this folder?") + r"[\s\S]{0,600}›\s*" + phrase("1. Trust and continue")),
        allow=("Enter",),
        deny=("2",),
    ),
    QuestionRule("trust", near_end(phrase("Trust this folder?"))),
    QuestionRule("trust", near_end(phrase("Do you trust the contents of this"))),
    QuestionRule("login", near_end(phrase("Sign in with ChatGPT"))),
    # The keys stand in the dialog; the command or the edit before them may be long.
    QuestionRule(
        "permission",
        near_end(phrase("Would you like to") + r"[^\n]{1,100}\?[\s\S]{0,3500}" + phrase("1. Yes, proceed (y)")),
        allow=("y",),
        deny=("Escape",),
    ),
    QuestionRule("permission", near_end(phrase("Would you like to run the following command?"))),
    QuestionRule("permission", near_end(phrase("Would you like to make the following edits?"))),
    QuestionRule("other", near_end(phrase("Update available!") + r"[\s\S]{0,300}" + phrase("Skip until next version"))),
    YES_NO,
)

ADAPTER = Adapter(
    name="codex",
    command="codex",
    subcommand=("exec", "--skip-git-repo-check"),
    permissions={
        "deny": ("--sandbox", "read-only"),
        "edits": ("--sandbox", "workspace-write"),
        "allow": ("--sandbox", "danger-full-access"),
    },
    args=("-",),
    resume=("resume", "{externalSession}", "-"),
    delivery="stdin",
    commit="runtime",
    writes_git_dir=False,
    session_pattern=r"(?:session id: |codex resume )([0-9a-f]{8}-[0-9a-f-]{27})",
    questions=_QUESTIONS,
    limits=(
        LimitRule(
            "AUTH_REQUIRED",
            r"(?i)401 unauthorized|not logged in|please log ?in|codex login",
            said=r"(?:ERROR: )?unexpected status 401 Unauthorized\b",
        ),
        LimitRule(
            "QUOTA_EXHAUSTED",
            r"(?i)you(?:'|’)?ve hit your usage limit|usage limit reached|quota exceeded",
            said=r"(?:ERROR: )?(?:You(?:'|’)ve hit your usage limit\b|Quota exceeded\. Check your plan)",
        ),
        LimitRule(
            "RATE_LIMITED",
            r"(?i)429 too many requests|rate limit (?:reached|exceeded)",
            said=r"(?:ERROR: )?(?:stream (?:error|disconnected)[^\n]{0,200}Rate limit reached"
            r"|exceeded retry limit, last status: 429\b)",
        ),
        # The network is gone; it tried several times by itself.
        LimitRule("RATE_LIMITED", r"error sending request for url \(https?://"),
    ),
    acp=Acp("codex-acp"),
    usage=(
        # With --json among its args.
        UsageRule(
            r'"type"\s*:\s*"turn\.completed"',
            {
                "input": (r'"input_tokens"\s*:\s*',),
                "cached": (r'"cached_input_tokens"\s*:\s*',),
                "output": (r'"output_tokens"\s*:\s*',),
            },
            is_running_total=True,
            is_of_conversation=True,
        ),
        UsageRule(
            r"(?m)^tokens used\b:?\s*",
            {"total": (r"tokens used\b:?\s*",)},
            is_running_total=True,
            is_of_conversation=True,
        ),
    ),
    interactive=Interactive(
        args=("--no-daemon",),
        resume=("resume", "--no-daemon", "{externalSession}"),
        input=InputRules(
            paste="bracketed",
            # The composer's own status line; the start picture shows the same composer before a dialog covers it.
            ready=(near_end(phrase("Ask Codex to do anything") + r"[\s\S]{0,400}\s·\s*[/~]"),),
            questions=_QUESTIONS,
        ),
        idle=(near_end(phrase("Ask Codex to do anything")),),
        busy=(near_end(phrase("esc to interrupt")),),
    ),
)
