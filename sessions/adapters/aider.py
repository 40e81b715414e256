"""aider: one shot with the prompt in a file, or as a program that stays. Source: aider.chat/docs/config/options; seen
with 0.86.

It asks for most of what it does, and only `--yes-always` makes it work alone; a shell command that it suggests is then
not run. That option says yes to everything else, too: it would read every address in a prompt, install a browser for
that, agree to analytics, and open pages on the user's screen. What leads there is turned off, and where no option does,
`BROWSER` names a program that does nothing.

Its histories stay out of the worktree, and so does the cache of its map of the repository, which it would leave there
untracked: the map is off. It commits each edit by itself, as the user, and names itself as co-author. It ends with
exit code 0 also when its service refused.
"""

from coordinate_agents.sessions.adapters.base import Adapter, Interactive, LimitRule, UsageRule, near_end, phrase
from coordinate_agents.sessions.model import InputRules, QuestionRule

_ALONE = (
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--no-analytics",
    "--no-gitignore",
    "--no-detect-urls",
    "--disable-playwright",
    "--map-tokens",
    "0",
    "--chat-history-file",
    "/dev/null",
    "--input-history-file",
    "/dev/null",
)
_CHOICE = r"\(Y\)es/\(N\)o[^\n]{0,80}:\s*\Z"
_QUESTIONS = (
    # Without a key it offers a login in the browser, and waits for that for five minutes.
    QuestionRule("login", near_end(phrase("Please open this URL in your browser to connect Aider"), 1500)),
    QuestionRule("login", phrase("Login to OpenRouter or create a free account?") + rf"[^\n]{{0,20}}{_CHOICE}"),
    QuestionRule(
        "permission", r"(?:Run shell command|Run pip install)s?\?\s*" + _CHOICE, ("y", "Enter"), ("n", "Enter")
    ),
    QuestionRule("yes-no", _CHOICE, ("y", "Enter"), ("n", "Enter")),
)
# A line, the files that it was given, and its empty prompt, which may name the mode ("ask> ").
_PROMPT = r"─{20,}[ ]*\n(?:[^\n─>]*\n){0,20}[ ]*(?:[a-z]+(?: multi)?)?>\s*\Z"

ADAPTER = Adapter(
    name="aider",
    command="aider",
    permissions={
        "deny": ("--yes-always", "--chat-mode", "ask"),
        "edits": ("--yes-always",),
        "allow": ("--yes-always",),
    },
    # Without its drawing nothing is said twice, and no line is cut where the terminal ends.
    args=(*_ALONE, "--no-pretty", "--message-file", "{promptFile}"),
    env={"BROWSER": "true"},
    delivery="file",
    commit="auto",
    writes_git_dir=True,
    questions=_QUESTIONS,
    limits=(
        LimitRule(
            "AUTH_REQUIRED",
            r"AuthenticationError|(?i:no (?:llm model was specified and no )?api keys? |missing api key)",
            said=r"litellm\.AuthenticationError: |The API provider is not able to authenticate you\."
            r"|No LLM model was specified and no API keys were provided\.",
        ),
        LimitRule("QUOTA_EXHAUSTED", r"insufficient_quota", said=r"litellm\.RateLimitError: .*\binsufficient_quota\b"),
        LimitRule(
            "RATE_LIMITED",
            r"RateLimitError|\b429\b",
            said=r"litellm\.RateLimitError: |The API provider has rate limited you\.",
        ),
    ),
    # After each message: "Tokens: 2.3k sent, 1.1k cache hit, 120 received. Cost: $0.01 message, $0.02 session."; the
    # money stands on a line of its own after both kinds of cache.
    usage=(
        UsageRule(
            r"(?m)^(?:Tokens: (?=[\d.]+[kM]? sent)|Cost: (?=\$[\d.]+ message))",
            {
                "input": (r"Tokens: ",),
                "cached": (r"(?:sent|write), (?=[\d.]+[kM]? cache hit)",),
                "output": (r", (?=[\d.]+[kM]? received)",),
                "cost": (r"Cost: \$(?=[\d.]+ message)",),
            },
        ),
    ),
    interactive=Interactive(
        args=_ALONE,
        input=InputRules(paste="bracketed", ready=(_PROMPT,), questions=_QUESTIONS),
        idle=(_PROMPT,),
        busy=(r"Waiting for [^\n]{1,100}\s*\Z",),
        prints_usage=True,
    ),
)
