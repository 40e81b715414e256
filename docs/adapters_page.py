"""The page adapters.md, made from the adapters themselves. Used by `generate`."""

from collections.abc import Iterable, Iterator
from typing import Final

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.adapters.base import Adapter

# Sentences of a table stand on one line each.
# ruff: noqa: E501

_MODES: Final = ("ask", "edits", "allow", "deny")
# What was run with the scripted model (fixtures/scripts/run_real_agents.py), and what is written from documentation.
_SEEN: Final = {
    "generic": "fixture agents, in every test",
    "codex": "codex-cli 0.171",
    "claude": "Claude Code 2.1",
    "opencode": "opencode 1.18, one shot only",
    "gemini": "gemini 0.61, one shot, in a folder that it trusts",
    "aider": "aider 0.86; it runs no shell commands",
    "acp": "see below",
}
# The same over the Agent Client Protocol (fixtures/scripts/run_acp_agents.py).
_SEEN_SPEAKING: Final = {
    "generic": "",
    "codex": "codex-acp 0.16",
    "claude": "claude-agent-acp 0.49",
    "opencode": "opencode 1.18",
    "gemini": "gemini 0.61",
    "acp": "fixture agents, in the tests; one of them is made with the protocol's own SDK",
}
# By itself, with an option among its args, as a program that stays, over the Agent Client Protocol.
_USED: Final = {
    "codex": ("the sum of tokens", "`--json`: tokens in, cached, out", "nothing", "nothing of a turn"),
    "claude": (
        "nothing",
        "`--output-format json`: tokens in, cached, out, cost",
        "nothing",
        "tokens in, cached, out, cost",
    ),
    "opencode": ("tokens in, cached, out, cost", "", "", "cost; the tokens are those of its last step, and left out"),
    "gemini": (
        "nothing",
        "`--output-format json` or `stream-json`: tokens in, cached, out",
        "",
        "tokens in, out",
    ),
    "aider": ("tokens in, cached, out, cost", "", "tokens in, cached, out, cost", ""),
    "acp": ("", "", "", "cost"),
}


def lines() -> Iterator[str]:
    yield "# Adapters"
    yield ""
    yield "What is known of each kind of agent, as data (`sessions/adapters/`). Configuration overrides each field on its own,"
    yield "see [Configuration](configuration.md#agents)."
    yield from ("", "## How a turn is started", "")
    yield "The flags of the permission mode (default: `edits`) stand where `FLAGS` stands."
    yield ""
    yield "| adapter | command | one shot | a further turn | as a program that stays | tried with |"
    yield "|---|---|---|---|---|---|"
    for adapter in ADAPTERS.values():
        yield _row(
            f"`{adapter.name}`",
            _code(adapter.command or "") or "from the configuration",
            _one_shot(adapter, adapter.args),
            "" if adapter.resume is None else _one_shot(adapter, adapter.resume),
            _stays(adapter),
            _SEEN[adapter.name],
        )
    for adapter in ADAPTERS.values():
        if adapter.env:
            words = _code(" ".join(f"{name}={value}" for name, value in adapter.env.items()))
            yield from (
                "",
                f"`{adapter.name}` gets {words} in its environment, where the configuration does not set that.",
            )
    yield from ("", "## Permissions", "")
    yield f"| adapter | {' | '.join(f'`{mode}`' for mode in _MODES)} |"
    yield f"|---|{'---|' * len(_MODES)}"
    for adapter in ADAPTERS.values():
        yield _row(f"`{adapter.name}`", *(_code(" ".join(adapter.permissions.get(mode, ()))) for mode in _MODES))
    yield ""
    yield "An empty cell adds nothing: the agent's own settings decide. With `driver: acp` a mode adds no flags; it answers the"
    yield "agent's requests (below)."
    yield from ("", "## Prompt, commits, conversation", "")
    yield "| adapter | prompt (one shot) | who commits | its sandbox writes a linked worktree's git dir | id of its conversation |"
    yield "|---|---|---|---|---|"
    for adapter in ADAPTERS.values():
        yield _row(f"`{adapter.name}`", adapter.delivery, adapter.commit, _git_dir(adapter), _conversation(adapter))
    yield from _speaking()
    yield from ("", "## What is recognised", "")
    yield "Questions give the subtask's slot back and wait for a person (`inputTimeout`); a login ends the turn as AUTH_REQUIRED."
    yield "None is ever answered by itself. Limits cost no attempt and hold only that agent's starts."
    yield ""
    yield "| adapter | questions | of a program that stays | says when it takes a prompt | refusals |"
    yield "|---|---|---|---|---|"
    for adapter in ADAPTERS.values():
        interactive = adapter.interactive
        yield _row(
            f"`{adapter.name}`",
            _names(rule.kind for rule in adapter.questions),
            "" if interactive is None else _names(rule.kind for rule in interactive.input.questions),
            "" if interactive is None else ("yes" if interactive.input.ready else "when it reads its terminal"),
            _names(rule.code for rule in adapter.limits),
        )
    yield from ("", "## What a turn took", "")
    yield "What an agent says about it is recorded with the turn, added up over all attempts, and shown by `graph-status --json`"
    yield "(`usage`), `graph-inspect` and `graph-report`. It is what the agent says, unverified; what it does not say is left out. By"
    yield "itself codex prints only the sum, claude and gemini nothing: give the agent `args` with the option to have all of it. What an"
    yield "agent writes into files of its own is not read."
    yield ""
    yield "| adapter | one shot, by itself | one shot, with | as a program that stays | over the Agent Client Protocol |"
    yield "|---|---|---|---|---|"
    for adapter in ADAPTERS.values():
        yield _row(f"`{adapter.name}`", *_USED.get(adapter.name, ("nothing", "", "nothing", "cost")))
    yield from (
        "",
        "Patterns are matched on the end of the output, whatever its spacing. They are triggers to look, never proof.",
    )


def _speaking() -> Iterator[str]:
    yield from ("", "## Over the Agent Client Protocol", "")
    yield "With `driver: acp` (`adapter: acp` has no other) the agent is a program that speaks the protocol, started once and given all"
    yield "its turns ([Sessions](sessions.md#agents-that-are-spoken-to)). An adapter without a program is refused with UNSUPPORTED_CAPABILITY."
    yield ""
    yield "| adapter | program | tried with |"
    yield "|---|---|---|"
    for adapter in ADAPTERS.values():
        if adapter.acp is not None:
            program = " ".join((adapter.acp.command or "", *adapter.acp.args)).strip()
            yield _row(f"`{adapter.name}`", _code(program) or "from the configuration", _SEEN_SPEAKING[adapter.name])
    yield ""
    yield "| permissions | a request of the agent is |"
    yield "|---|---|"
    yield "| `ask` (default) | shown; a person answers (`session-answer --option ID`), or nobody until `inputTimeout` |"
    yield "| `edits` | allowed once where it reads, searches or changes files; else shown |"
    yield "| `allow` | allowed once; where the agent offers only that, always |"
    yield "| `deny` | refused once; without such an option answered as cancelled |"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _one_shot(adapter: Adapter, args: tuple[str, ...]) -> str:
    flags = ("FLAGS",) if adapter.permissions else ()
    return _code(" ".join((*adapter.subcommand, *flags, *args)))


def _stays(adapter: Adapter) -> str:
    if adapter.interactive is None:
        return "not built in"
    flags = ("FLAGS",) if adapter.permissions else ()
    first = _code(" ".join((*adapter.interactive.args, *flags))) or "no arguments"
    resume = adapter.interactive.resume
    return first if resume is None else f"{first}; further: {_code(' '.join((*resume, *flags)))}"


def _git_dir(adapter: Adapter) -> str:
    return {True: "yes", False: "no", None: "not known"}[adapter.writes_git_dir]


def _conversation(adapter: Adapter) -> str:
    if adapter.chooses_session:
        return "given by the Runtime"
    return "from its output" if adapter.session_pattern else "none"


def _names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
