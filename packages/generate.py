"""Writes what is handed to other programs: plugin packages, their skill, marketplaces, and the server's description.

    python packages/generate.py

One source: pyproject.toml for what the package is, this file for how it is started, `skill.md` for what a planning
agent is taught, the table of verbs for its tools, docs/graph-file.md for its reference. A test compares the files with
what this would write, and lints them.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from coordinate_agents.cli.mcp.tools import tools

ROOT: Final = Path(__file__).resolve().parents[1]
PLUGIN: Final = "packages/coordinate-agents"
# A package of its own: codex starts the server of a plugin in the plugin's folder, which is no repository of anybody's.
CODEX: Final = "packages/codex"

# Source: the schema's own identifier, as published with the registry of servers.
SERVER_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
# Reverse DNS, as a name there must be. Whoever publishes it under another name changes it here.
SERVER_NAME: Final = "io.github.coordinate-agents/coordinate-agents"
TITLE: Final = "coordinate-agents"
# At most 100 characters there.
SHORT: Final = "Run a graph of coding subtasks: a git worktree and agent each, progress only on verified commits"
OWNER: Final = {"name": "The coordinate-agents authors"}
COMMAND: Final = "coordinate-agents-mcp"

_README: Final = f"""\
# coordinate-agents for Claude Code and Gemini CLI

{SHORT}. This package registers the MCP server `{COMMAND}` and brings a skill for the agent that plans.

The program itself is installed apart, so that `{COMMAND}` is on PATH: `pipx install 'coordinate-agents[mcp]'`.

To register the server alone, for everybody who works on a repository, copy `.mcp.json` to its root.
"""
_CODEX_README: Final = f"""\
# coordinate-agents for Codex

{SHORT}. This package brings a skill for the agent that plans.

The program itself is installed apart: `pipx install 'coordinate-agents[mcp]'`. Its server works on one repository and
is registered for that, since Codex starts the servers of a plugin in the plugin's folder:
`codex mcp add coordinate-agents -- {COMMAND} --root /path/of/the/repository`.
"""


def files() -> dict[str, str]:
    """Every generated file, by its path from the project's root."""
    made: dict[str, Any] = {
        "server.json": _server(),
        ".claude-plugin/marketplace.json": _claude_marketplace(),
        ".agents/plugins/marketplace.json": _codex_marketplace(),
        f"{PLUGIN}/.claude-plugin/plugin.json": _about(),
        f"{CODEX}/.codex-plugin/plugin.json": {**_about(), "skills": "./skills/"},
        f"{PLUGIN}/.mcp.json": {"mcpServers": {TITLE: {"command": COMMAND, "args": []}}},
        f"{PLUGIN}/gemini-extension.json": _gemini(),
    }
    texts = {f"{PLUGIN}/README.md": _README, f"{CODEX}/README.md": _CODEX_README}
    for package in (PLUGIN, CODEX):
        skill = f"{package}/skills/coordinate-agents"
        texts |= {f"{skill}/SKILL.md": _skill(), f"{skill}/references/graph-file.md": _graph_file()}
    return {**{path: json.dumps(value, indent=2) + "\n" for path, value in made.items()}, **texts}


def _project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def _about() -> dict[str, Any]:
    project = _project()
    return {
        "name": TITLE,
        "version": project["version"],
        "description": SHORT,
        "author": OWNER,
        "license": project["license"],
        "keywords": project["keywords"],
    }


def _server() -> dict[str, Any]:
    """How a client starts the server from the package index: `uvx --with mcp… coordinate-agents@VERSION mcp`."""
    project = _project()
    [needs] = project["optional-dependencies"]["mcp"]
    root = {
        "type": "named",
        "name": "--root",
        "description": "The repository that the server is bound to; without it that of the folder it is started in.",
        "format": "filepath",
        "isRequired": False,
    }
    package = {
        "registryType": "pypi",
        "identifier": project["name"],
        "version": project["version"],
        "runtimeHint": "uvx",
        "runtimeArguments": [{"type": "named", "name": "--with", "value": needs}],
        "packageArguments": [{"type": "positional", "value": "mcp"}, root],
        "transport": {"type": "stdio"},
    }
    about = {"name": SERVER_NAME, "title": TITLE, "description": SHORT, "version": project["version"]}
    return {"$schema": SERVER_SCHEMA, **about, "packages": [package]}


def _claude_marketplace() -> dict[str, Any]:
    about = _about()
    plugin = {key: about[key] for key in ("name", "version", "description", "license", "keywords")}
    return {"name": TITLE, "description": SHORT, "owner": OWNER, "plugins": [{**plugin, "source": f"./{PLUGIN}"}]}


def _codex_marketplace() -> dict[str, Any]:
    plugin = {
        "name": TITLE,
        "source": {"source": "local", "path": f"./{CODEX}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    return {"name": TITLE, "plugins": [plugin]}


def _gemini() -> dict[str, Any]:
    about = {key: _about()[key] for key in ("name", "version", "description")}
    return {**about, "mcpServers": {TITLE: {"command": COMMAND, "cwd": "${workspacePath}"}}}


def _skill() -> str:
    text = (ROOT / "packages" / "skill.md").read_text(encoding="utf-8")
    return text.replace("{{license}}", _project()["license"]).replace("{{tools}}", "\n".join(_tools()))


def _graph_file() -> str:
    """The page of the documentation, whose other pages are not here."""
    text = (ROOT / "docs" / "graph-file.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!#)[^)]*\.md[^)]*\)", r"\1", text)


def _tools() -> Iterator[str]:
    """The core, and the single Task's: what planning takes."""
    yield "| tool | what it does |"
    yield "|---|---|"
    names = {tool.name for tool in (*tools("core", ()), *tools("task", ()))}
    for tool in tools("all", ()):
        if tool.name in names and tool.verb.name != "evidence-submit":
            yield f"| `{tool.name}` | {tool.verb.summary} |"


def main() -> int:
    for path, text in files().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
