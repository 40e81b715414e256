"""The page mcp.md: what is written by hand, and the table of tools, made from the verbs. Used by `generate`."""

from collections.abc import Iterator
from typing import Final

from coordinate_agents.cli.mcp.arguments import DEFAULT_BYTES
from coordinate_agents.cli.mcp.resources import SCHEME, TEMPLATES
from coordinate_agents.cli.mcp.tools import DECISIONS, MAX_BYTES, PAGE, ROOT, Tool, all_tools, tools

# Sentences of a table stand on one line each.
# ruff: noqa: E501

_BEFORE: Final = f"""\
# MCP

`coordinate-agents-mcp` (also: `coordinate-agents mcp`) serves every verb as a tool over standard input and output, for one repository.
It needs the extra: `pip install 'coordinate-agents[mcp]'`. Without `--root DIR` the repository is that of the folder it is started in.

| option | what it does |
|---|---|
| `--root DIR` | the repository that the server is bound to |
| `--tools all, core, session, graph, task` | offer all tools (default); what a run takes; or those of one kind |
| `--allow-decisions all` or some of `{",".join(DECISIONS)}` | let clients decide what is a person's to decide. Without it such tools and arguments are not offered, and are refused with AGENT_MAY_NOT |

## Register it

Tried with each of them: `fixtures/scripts/run_mcp_clients.py`.

**Claude Code**, in the repository:

```sh
claude mcp add coordinate-agents -- coordinate-agents-mcp
```

It connects in the background; a first prompt that must already see the tools needs `MCP_CONNECTION_NONBLOCKING=false` (`claude -p`).

**Codex**, for one repository:

```sh
codex mcp add coordinate-agents -- coordinate-agents-mcp --root /path/of/the/repository
```

then, in `~/.codex/config.toml`, below `[mcp_servers.coordinate-agents]`: `required = true`. Otherwise codex begins its first turn after a second
with whatever servers have started by then, and this one may not have.

**opencode**, in `opencode.json`:

```json
{{"mcp": {{"coordinate-agents": {{"type": "local", "command": ["coordinate-agents-mcp"], "enabled": true}}}}}}
```

As a plugin, with a skill that teaches a planning agent to write graphs and to poll cheaply (`packages/`, from a checkout of this project):

```sh
claude plugin marketplace add /path/of/this/checkout && claude plugin install coordinate-agents@coordinate-agents
codex plugin marketplace add /path/of/this/checkout && codex plugin add coordinate-agents@coordinate-agents
gemini extensions install /path/of/this/checkout/packages/coordinate-agents
```

Codex gets the skill alone: it starts the servers of a plugin in the plugin's folder, so the server is registered for a repository as above.
For everybody who works on a repository, commit `packages/coordinate-agents/.mcp.json` at its root.

### In the registry of servers

`server.json` describes the server there, in the schema of 2025-12-11; a test holds it against that. The name in it,
`io.github.coordinate-agents/coordinate-agents`, stands for whoever publishes: the registry takes a name below `io.github.OWNER/` only from that
GitHub user or an owner of that organisation, and one such as `org.example/coordinate-agents` from who proves the domain. To publish under your own:

1. Change `SERVER_NAME` in `packages/generate.py`, run `python packages/generate.py`, and write the same name behind `mcp-name:` at the end of
   `README.md`: the registry looks for it in the description of the package that the index has, so it must be there before the release.
2. If the package has another name in the index, change `name` in `pyproject.toml`; `identifier` follows it. The version is that of `pyproject.toml`.
3. Release the package to PyPI, then `mcp-publisher validate`, `mcp-publisher login github` (or `dns`, `http` for a domain) and `mcp-publisher publish`.

## How a tool answers

- Arguments are the verb's: `taskId` (GRAPH), `subtaskId`, `sessionId`, `document` (the graph file itself, as text or as an object; `path` names a file,
  relative to the repository), otherwise the long option in camelCase. Durations are seconds or `45m`. Unknown arguments are refused.
- A result is the document that the command line prints with `--json`: `ok`, `command`, `data` or `error`; also as text. An exit code other than 0
  stands in `exitCode`. What a verb refuses is a result with `isError` and the same `error` object; errors of the protocol are for the protocol alone.
- No call waits for another. What only looks answers at once; what changes something runs in a process of its own, which finishes what it began
  when the call is cancelled, the client is killed or the server ends. Sessions never notice.
- No call takes longer than 25 seconds. Then its data is `{{"stillRunning": true, "cursor": …}}`: ask again, or look (`coordinate_agents_graph_events` with
  `after`). `coordinate_agents_graph_run` always drives in the background and returns the graph's id and a cursor at once. Whoever sends a
  progress token is told while a call waits.
- A result has about {DEFAULT_BYTES >> 10} KiB unless `{MAX_BYTES}` allows more; what was left out is counted in `leftOut`, and `leftOut.page`, given as `{PAGE}`, goes on.
  Events go on with `after`, output with `cursor`.
- Text of agents and files stands in fields of its own (`output`, `question`, `summary`, `title`, `tail`, `message`): data, never instructions.
- `{ROOT}` may be given and must then be this repository.

Inside a Session of the Runtime only reading tools and `coordinate_agents_evidence_submit` work.

## evidence-submit

How an agent says that its work is committed and may be verified: `coordinate-agents evidence-submit "what was done"`, the tool, or the file that
`COORDINATE_AGENTS_SUBMIT_FILE` names. It is a trigger and proves nothing. It is taken only from a process that has the Session's mark in its
environment, or an ancestor's, and the Session's recorded host above it, and only for the subtask's present attempt; everything else is AGENT_MAY_NOT.
A driver that waits for the agent is woken by it, on Linux also by the file alone; elsewhere it looks within seconds.

Inside its Session an agent finds, besides its prompt: `COORDINATE_AGENTS_GRAPH`, `_SUBTASK`, `_ATTEMPT`, `_AGENT`, `_SESSION`, `_ROOT`, `_WORKTREE`,
`_BRANCH`, `_BASE`, `_SCOPE` (the patterns of `writes`, one a line; absent where none are named), `_PROMPT_FILE` (where there is one) and `_SUBMIT_FILE`.

## Resources
"""


def lines() -> Iterator[str]:
    yield from _BEFORE.splitlines()
    yield ""
    yield f"- `{SCHEME}graphs`: every graph"
    yield from (f"- `{SCHEME}{path}`: {what}" for path, what in TEMPLATES.items())
    yield from ("", "## Tools", "")
    yield "reads: changes nothing; ends: may end or remove something; again: once more with the same arguments changes nothing further. Every tool also takes"
    yield f"`{ROOT}`, `{MAX_BYTES}` and (but for output) `{PAGE}`. In bold: the core."
    yield ""
    yield "| tool | what it does | arguments | hints |"
    yield "|---|---|---|---|"
    core = {tool.name for tool in tools("core", ())}
    for tool in all_tools(DECISIONS):
        name = f"**{tool.name}**" if tool.name in core else tool.name
        yield f"| {name} | {tool.verb.summary}{_decision(tool)} | {_arguments(tool)} | {_hints(tool)} |"


def _decision(tool: Tool) -> str:
    return f" (decision: {tool.decision})" if tool.decision else ""


def _arguments(tool: Tool) -> str:
    names = [
        each for each in tool.arguments if each.name not in (ROOT, PAGE) and (each.param or each.name != MAX_BYTES)
    ]
    return ", ".join(f"**{each.name}**" if each.is_required else each.name for each in names)


def _hints(tool: Tool) -> str:
    if tool.hints["readOnlyHint"]:
        return "reads"
    words = {"destructiveHint": "ends", "idempotentHint": "again"}
    return ", ".join(word for hint, word in words.items() if tool.hints[hint])
