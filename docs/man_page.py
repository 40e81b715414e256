"""The manual page, made from the verb table: coordinate-agents(1). `docs/generate.py` writes it."""

from collections.abc import Iterator
from typing import Final

from coordinate_agents.graph.operations.table import VERBS, Param, Verb

_HEADINGS: Final = {
    "begin": "Begin",
    "run": "Run",
    "look": "Look (these change nothing)",
    "change": "Change",
    "session": "Sessions",
    "set up": "Set up",
}


def lines(exits: dict[int, str]) -> Iterator[str]:
    """The page in the macros of man(7)."""
    yield '.\\" Made by docs/generate.py from the verb table; changes here are lost.'
    yield '.TH COORDINATE\\-AGENTS 1 "" "coordinate\\-agents" "User Commands"'
    yield ".SH NAME"
    yield "coordinate\\-agents, cag \\- run a graph of coding subtasks over one git repository"
    yield ".SH SYNOPSIS"
    yield ".B coordinate\\-agents"
    yield ".I VERB"
    yield "[ARGUMENTS] [\\-\\-root DIR] [\\-\\-json]"
    yield ".SH DESCRIPTION"
    yield "A YAML file names subtasks and their dependencies. Every subtask gets a git worktree of its own and an agent"
    yield "that works in it; the graph moves forward only on commits and checks that were verified. The prefix"
    yield ".B graph\\-"
    yield "of a verb may be left out. GRAPH may be left out when exactly one graph is unfinished, and GRAPH/SUBTASK is"
    yield "understood where a subtask is meant. With"
    yield ".B \\-\\-json"
    yield "exactly one JSON document is printed."
    yield ".SH VERBS"
    for group, heading in _HEADINGS.items():
        yield f".SS {heading}"
        for verb in VERBS:
            if verb.group == group:
                yield from _verb(verb)
    yield ".SH EXIT STATUS"
    for code, meaning in exits.items():
        yield from (".TP", f".B {code}", _text(meaning))
    yield ".SH FILES"
    yield from (".TP", ".I .coordinate\\-agents.yaml", "configuration of a repository, inert until it is trusted")
    yield from (".TP", ".I $XDG_CONFIG_HOME/coordinate\\-agents/config.yaml", "configuration of the user")
    yield ".SH SEE ALSO"
    yield ".BR git (1),"
    yield ".BR git\\-worktree (1)"


def _verb(verb: Verb) -> Iterator[str]:
    words = [_text(verb.name)]
    for param in verb.params:
        if param.positional:
            words.append(param.name.upper() if param.required else f"[{param.name.upper()}]")
    yield ".TP"
    yield f".B {' '.join(words)}"
    yield _text(f"{verb.summary[0].upper()}{verb.summary[1:]}.")
    options = [param for param in verb.params if not param.positional]
    if options:
        yield ".RS"
        for param in options:
            yield from (".TP", f".B {_option(param)}", _text(param.help))
        yield ".RE"


def _option(param: Param) -> str:
    name = _text(f"--{param.name}")
    match param.kind:
        case "flag":
            return name
        case "choice":
            return f"{name} {_text('|'.join(param.choices))}"
        case _:
            return f"{name} {param.kind.upper()}"


def _text(text: str) -> str:
    """Text in which nothing is a request or an escape of roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
