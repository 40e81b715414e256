"""What the end of a program's output says. The texts are what the real programs printed, control sequences removed."""

import re

import pytest

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.adapters.base import YES_NO, LimitRule
from coordinate_agents.sessions.keys import KEYS
from coordinate_agents.sessions.questions import (
    external_session,
    find_closing_limit,
    find_limit,
    find_only_limit,
    find_question,
    is_idle,
    is_ready,
    question_text,
)

CODEX_TRUST = (
    "› Ask Codex to do anything   ? for shortcuts /code/repo   Folder access  /code/repo\n"
    "Trust this folder? Codex can read, edit, and run files here, subject to your permission  settings. Folder settings"
    " can run code automatically, even without a model request. Continue  only if you trust these files. Your trust "
    "decision will be saved. › 1. Trust and continue\n  2. Back to Agent Command Center   enter continue · esc back    "
)
# Seen with aider 0.86.
AIDER_LOGIN = (
    "No LLM model was specified and no API keys were provided.\n"
    "OpenRouter provides free and paid access to many LLMs.\n\n"
    "Please open this URL in your browser to connect Aider with OpenRouter:\n\nhttps://openrouter.ai/auth?x=1\n\n"
    "Waiting up to 5 minutes for you to finish in the browser...\nUse Control-C to interrupt.\n"
)
AIDER_RULE = "─" * 120
AIDER_DONE = "Applied edit to by-aider\nCommit 24d2920 docs: add it\nYou can use /undo to undo each aider commit.\n"
CODEX_READY = ">_ OpenAI Codex (v0.171.0)     /code/repo › Ask Codex to do anything   mock default · /code/repo←agens ·"
CODEX_LOGIN = (
    "Welcome to Codex, OpenAI's command-line coding agent\n  Choose how you want to use Codex.\n"
    "> 1. Sign in with ChatGPT\n     Usage included with Plus, Pro, and Enterprise plans\n  Press enter to continue\n"
)
CODEX_PERMISSION = (
    "Would you like to run the following command?\n\n  Environment: local\n\n  Reason: needs it\n\n  $ touch made "
    + "and much more " * 200
    + "\n\n› 1. Yes, proceed (y)\n  2. Yes, and don't ask again for commands that start with `touch made` (p)\n"
    "  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel"
)
CODEX_EDITS = CODEX_PERMISSION.replace("run the following command", "make the following edits")
LINE = "─" * 100
# claude moves the cursor where others print a space.
CLAUDE_TRUST = (
    "Accessingworkspace:\n\n/code/repo\n\nQuicksafetycheck:Isthisaprojectyoucreatedoroneyoutrust?\n\nSecurityguide\n\n"
    "❯1.Yes,Itrustthisfolder\n2.No,exit\n\nEntertoconfirm·Esctocancel\n"
)
CLAUDE_READY = f"❯\xa0 \n{LINE}\n?forshortcuts·←foragents●high·/effort\n"
CLAUDE_PERMISSION = (
    "Thiscommandrequiresapproval\n\nDoyouwanttoproceed?\n❯1.Yes\n2.Yes,anddon'taskagainforgitadd\n3.No\n\n"
    "Esctocancel·Tabtoamend·ctrl+etoexplain\n"
)
CLAUDE_BYPASS = (
    "WARNING:ClaudeCoderunninginBypassPermissionsmode\n\nInBypassPermissionsmode,ClaudeCodewillnotaskforyourapproval\n"
    "Byproceeding,youacceptallresponsibilityforactionstakenwhilerunninginBypassPermissionsmode.\n\n"
    "https://code.claude.com/docs/en/security\n\n❯1.No,exit\n2.Yes,Iaccept\n\nEntertoconfirm·Esctocancel\n"
)
CLAUDE_LOGIN = f"❯\xa0 \n{LINE}\n?forshortcuts·←foragents  Notloggedin·Run/login\n●high·/effort\n"
CLAUDE_BUSY = f"❯\xa0 \n{LINE}\n⏵⏵accepteditson (shift+tabtocycle)·esctointerrupt·←foragents●high·/effort\n"
CLAUDE_DONE = f"●All done.\n✻ Brewed for 0s\n\n❯\xa0 \n{LINE}\n⏵⏵accepteditson (shift+tabtocycle)·←foragents\n"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("codex", CODEX_TRUST, "trust"),
        ("codex", CODEX_LOGIN, "login"),
        ("codex", CODEX_READY, None),
        ("codex", f"{CODEX_TRUST}{'the composer is drawn again ' * 40}", None),
        ("claude", CLAUDE_TRUST, "trust"),
        ("claude", CLAUDE_PERMISSION, "permission"),
        ("codex", CODEX_PERMISSION, "permission"),
        ("codex", CODEX_EDITS, "permission"),
        ("claude", CLAUDE_BYPASS, "permission"),
        ("claude", CLAUDE_BYPASS.replace("Yes,Iaccept", "Ofcourse"), "permission"),
        ("claude", CLAUDE_LOGIN, "login"),
        ("claude", CLAUDE_READY, None),
        ("aider", AIDER_LOGIN, "login"),
        ("aider", "Login to OpenRouter or create a free account? (Y)es/(N)o [Yes]: ", "login"),
        ("aider", "pip install x\n\nRun shell command? (Y)es/(N)o/(D)on't ask again [Yes]: ", "permission"),
        ("aider", "Add https://example.org to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: y\n\n", None),
        ("generic", "Do you trust this folder? [y/N] ", "trust"),
        ("generic", "Overwrite notes.txt? (yes/no): ", "yes-no"),
        ("generic", "Overwrite notes.txt? [y/N] y\nwritten\n", None),
        ("generic", "Password: ", "login"),
        ("generic", "When finished print the line SUBTASK_COMPLETE\n", None),
    ],
)
def test_question_is_told_by_the_end_of_the_output(name: str, text: str, kind: str | None) -> None:
    adapter = ADAPTERS[name]
    rules = adapter.interactive.input.questions if adapter.interactive else adapter.questions
    found = find_question(text, rules)
    assert (found[0] if found else None) == kind


@pytest.mark.parametrize(
    ("name", "text", "allow", "deny"),
    [
        ("codex", CODEX_TRUST, ("Enter",), ("2",)),
        ("codex", CODEX_TRUST.replace("› 1. Trust", "  1. Trust"), (), ()),  # marked is the other one
        ("codex", CODEX_PERMISSION, ("y",), ("Escape",)),
        ("codex", CODEX_EDITS, ("y",), ("Escape",)),
        ("codex", CODEX_LOGIN, (), ()),
        ("claude", CLAUDE_TRUST, ("1",), ("2",)),
        ("claude", CLAUDE_TRUST.replace("2.No", "3.No"), (), ()),
        ("claude", CLAUDE_PERMISSION, ("1",), ("Escape",)),
        ("claude", CLAUDE_BYPASS, ("2",), ("1",)),
        ("claude", CLAUDE_BYPASS.replace("Yes,Iaccept", "Ofcourse"), (), ()),
        ("generic", "Overwrite notes.txt? (yes/no): ", ("y", "Enter"), ("n", "Enter")),
        ("aider", "Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: ", ("y", "Enter"), ("n", "Enter")),
    ],
)
def test_keys_of_an_answer_are_known_for_the_dialogs_that_were_seen_only(
    name: str, text: str, allow: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    rule = next(rule for rule in ADAPTERS[name].questions if re.search(rule.pattern, text[-4096:]))
    assert (rule.allow, rule.deny) == (allow, deny)


def test_keys_of_answers_are_keys_that_exist() -> None:
    rules = [rule for adapter in ADAPTERS.values() for rule in adapter.questions]
    for rule in rules:
        assert not {*rule.allow, *rule.deny} - set(KEYS), rule


@pytest.mark.parametrize(
    ("name", "text", "ready"),
    [
        ("codex", CODEX_READY, True),
        ("codex", CODEX_TRUST, False),
        ("codex", "› Ask Codex to do anything   ? for shortcuts /code/repo", False),
        ("codex", CODEX_LOGIN, False),
        ("claude", CLAUDE_READY, True),
        ("claude", CLAUDE_TRUST, False),
        ("claude", "Welcome to Claude Code", False),
    ],
)
def test_prompt_is_typed_only_into_a_composer(name: str, text: str, ready: bool) -> None:
    adapter = ADAPTERS[name]
    assert adapter.interactive is not None
    assert is_ready(text, adapter.interactive.input.ready) == ready


@pytest.mark.parametrize(
    ("name", "text", "idle"),
    [
        ("claude", CLAUDE_DONE, True),
        ("claude", CLAUDE_BUSY, False),
        ("claude", CLAUDE_PERMISSION, False),
        ("claude", "", False),
        ("aider", f"{AIDER_DONE}{AIDER_RULE}\nby-aider\nlib/two.py\n\n>", True),
        ("aider", f"{AIDER_RULE}\nask>", True),
        ("aider", f"{AIDER_RULE}\n> # Do this.\n>\n> RUN: x\n>\n\nWaiting for openai/mock", False),
        ("aider", f"{AIDER_RULE}\n> # Do this.\n>\n> a prompt whose last line is empty\n>", False),
        ("aider", f"{AIDER_DONE}Apply it? (Y)es/(N)o [Yes]:", False),
    ],
)
def test_turn_looks_over_when_the_composer_is_back_and_nothing_is_interruptible(
    name: str, text: str, idle: bool
) -> None:
    adapter = ADAPTERS[name]
    assert adapter.interactive is not None
    assert is_idle(text, adapter.interactive) == idle


def test_question_text_is_its_last_lines_and_bounded() -> None:
    assert question_text("old\n\n──────\n  Overwrite? \n [y/N] \n") == "old\nOverwrite?\n[y/N]"
    assert len(question_text("word " * 1000)) == 600
    assert question_text("\n".join(str(number) for number in range(100))).splitlines()[0] == "88"


def test_only_the_end_of_a_long_output_is_searched() -> None:
    assert find_question("[y/N] " + "x" * 5000, [YES_NO]) is None


@pytest.mark.parametrize(
    ("name", "text", "code", "retry_at"),
    [
        ("claude", "Claude AI usage limit reached|1700003600", "QUOTA_EXHAUSTED", 1700003600.0),
        ("claude", 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}', "RATE_LIMITED", None),
        ("claude", "Not logged in · Please run /login", "AUTH_REQUIRED", None),
        (
            "codex",
            "ERROR: You've hit your usage limit. Upgrade to Pro or try again in 3 hours 20 minutes.",
            "QUOTA_EXHAUSTED",
            1700000000.0 + 12000,
        ),
        ("codex", "exceeded retry limit, last status: 429 Too Many Requests", "RATE_LIMITED", None),
        ("codex", "unexpected status 401 Unauthorized: Missing bearer", "AUTH_REQUIRED", None),
        ("gemini", '"status": "RESOURCE_EXHAUSTED", retry in 20.5s', "RATE_LIMITED", 1700000020.5),
        ("aider", "litellm.RateLimitError: retry-after: 30", "RATE_LIMITED", 1700000030.0),
        ("opencode", '{"error":{"name":"APIError","data":{"statusCode":429}}}', "RATE_LIMITED", None),
        ("claude", "API Error: Request rejected (429) · This may be temporary.", "RATE_LIMITED", None),
        ("claude", "API Error: Unable to connect to API (ECONNRESET)", "RATE_LIMITED", None),
        ("claude", "API Error (Connection error.)", "RATE_LIMITED", None),
        ("claude", "Failed to connect to api.example.com: ENOTFOUND", "RATE_LIMITED", None),
        (
            "codex",
            "ERROR: stream disconnected before completion: error sending request for url (https://x.example/responses)",
            "RATE_LIMITED",
            None,
        ),
        ("opencode", "Error: Unable to connect. Is the computer able to access the url?", "RATE_LIMITED", None),
        ("generic", "429 Too Many Requests", None, None),
        ("codex", "All tests pass.", None, None),
    ],
)
def test_refusal_of_the_service_is_told_with_its_time(
    name: str, text: str, code: str | None, retry_at: float | None
) -> None:
    found = find_limit(f"first line\n{text}\n", ADAPTERS[name].limits, now=1700000000.0)
    assert (found.code if found else None) == code
    assert (found.retry_at if found else None) == retry_at
    if found:
        assert found.line == text


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        (
            "claude",
            "● Reading the file.\n  ⎿  You've hit your session limit · resets 3pm (UTC)\n❯\n  ? for shortcuts",
            "Q",
        ),
        ("claude", "Claude AI usage limit reached|1700003600\n", "Q"),
        ("claude", "● 5-hour limit reached ∙ resets 3pm (UTC)\n", "Q"),
        ("claude", "● API Error: Request rejected (429) · this may be a temporary capacity issue\n", "R"),
        (
            "codex",
            "■ You've hit your usage limit. Try again at 3:05 PM.\n› Ask Codex to do anything\n",
            "Q",
        ),
        ("codex", "■ exceeded retry limit, last status: 429 Too Many Requests\n", "R"),
        ("codex", "• Added a limiter: clients now get 429 Too Many Requests, usage limit reached.\n", None),
        ("claude", "  ⎿\xa0 Invalid API key · Fix external API key\n✻ Sautéed for 3m 11s\n❯\n", "A"),
        ("claude", "● Invalid API keys are refused now.\n", None),
        (
            "codex",
            "■ unexpected status 401 Unauthorized: Incorrect API key provided., url: http://x\n› Ask Codex\n",
            "A",
        ),
        ("claude", '● Done. Users see "You\'ve hit your limit" now.\n', None),
        ("claude", "You've hit your session limit\n" + "and then it went on\n" * 20, None),
        ("generic", "You've hit your usage limit\n", None),
        (
            "aider",
            "litellm.AuthenticationError: AuthenticationError: The api_key\nclient option\n",
            "A",
        ),
        ("aider", "litellm.RateLimitError: RateLimitError: Rate limit reached. Try again in 20s.\n", "R"),
        ("aider", "The API provider has rate limited you. Try again later or check your quotas.\n", "R"),
        ("aider", "No LLM model was specified and no API keys were provided.\n", "A"),
        ("aider", "Added a handler for litellm.RateLimitError: it waits.\n", None),
    ],
)
def test_turn_without_an_error_was_refused_only_by_the_program_s_own_last_words(
    name: str, text: str, code: str | None
) -> None:
    found = find_closing_limit(text, ADAPTERS[name].limits, now=1700000000.0)
    codes = {"A": "AUTH_REQUIRED", "Q": "QUOTA_EXHAUSTED", "R": "RATE_LIMITED", None: None}
    assert (found.code if found else None) == codes[code]


def test_refusal_above_a_composer_is_still_among_the_last_words() -> None:
    text = "You've hit your usage limit. Try again at 3:05 PM.\n" + "\n".join(f"chrome {n}" for n in range(10))
    rules = ADAPTERS["codex"].limits
    assert find_closing_limit(text, rules, now=0.0) is None
    assert find_closing_limit(text, rules, now=0.0, has_composer=True) is not None


def test_first_rule_decides_and_the_line_is_bounded() -> None:
    rules = [LimitRule("QUOTA_EXHAUSTED", "quota"), LimitRule("RATE_LIMITED", "rate")]
    found = find_limit("rate and quota " + "x" * 1000, rules, now=0.0)
    assert found is not None
    assert (found.code, len(found.line)) == ("QUOTA_EXHAUSTED", 300)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "codex",
            "sandbox: read-only\nsession id: 01a22bb1-b62a-7013-9a5e-f2766d3c41b9\n--------",
            "01a22bb1-b62a-7013-9a5e-f2766d3c41b9",
        ),
        (
            "codex",
            "To continue this session, run codex resume 01a22bb1-b62a-7013-9a5e-f2766d3c41b9",
            "01a22bb1-b62a-7013-9a5e-f2766d3c41b9",
        ),
        ("codex", "session id: -", None),
        ("opencode", '{"type":"text","sessionID":"ses_dd44de9edffeiy7MU2go6d5H8R"}', "ses_dd44de9edffeiy7MU2go6d5H8R"),
        ("generic", "session id: 01a22bb1-b62a-7013-9a5e-f2766d3c41b9", None),
    ],
)
def test_conversation_is_known_from_what_the_program_prints(name: str, text: str, found: str | None) -> None:
    assert external_session(text, ADAPTERS[name].session_pattern) == found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[turn t0]\nInvalid API key · Fix external API key\n", "AUTH_REQUIRED"),
        ("[turn t0]\nModel metadata not found.\nPlease log in to go on.\n", "AUTH_REQUIRED"),
        ("[turn t0]\nRate limit reached. Try again in 20s.\n", "RATE_LIMITED"),
        ("[turn t0]\nYou've hit your usage limit.\n", "QUOTA_EXHAUSTED"),
        ("[turn t0]\n[tool] read api.py: completed\nIt says 401 Unauthorized, as it should.\n", None),
        (f"[turn t0]\n{'The handler of this answer was there already. ' * 11}401 Unauthorized\n", None),
        ("[turn t0]\nThere is nothing to do.\n", None),
    ],
)
def test_turn_that_says_hardly_more_than_a_refusal_is_supposed_to_be_one(text: str, code: str | None) -> None:
    found = find_only_limit(text, ADAPTERS["acp"].limits, now=1700000000.0)
    assert (found.code if found else None) == code
