"""The configuration file: YAML text to Config, or every problem found, each with line and column.

The project's and the user's file have one shape. A project's file comes with the repository, so what it says about
programs, environment, paths and permissions must wait until the user trusts that very file: `inert_keys` lists such
keys, `without` gives the rest. Reads no files.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from yaml.events import ScalarEvent

from coordinate_agents.graph import scope, yaml_nodes
from coordinate_agents.graph.config import ADAPTER_NAMES, AgentConfig, Command, Config, Notify, Ports
from coordinate_agents.graph.document_shape import command
from coordinate_agents.graph.errors import GraphError, Problem
from coordinate_agents.graph.ids import NAME_PATTERN, shown
from coordinate_agents.graph.reading import (
    BROKEN,
    Broken,
    Findings,
    Key,
    argument,
    checked,
    choice,
    duration,
    each,
    fields,
    integer,
    mapping,
    near,
    text,
)
from coordinate_agents.graph.relative_paths import path_problem
from coordinate_agents.graph.yaml_nodes import MappingNode, Node
from coordinate_agents.graph.yaml_text import decode

Source = Literal["project", "user"]

TEMPLATE_WORDS: Final = (
    "prompt",
    "promptFile",
    "worktree",
    "root",
    "graph",
    "subtask",
    "agent",
    "session",
    "externalSession",
)
MAX_CONFIG_BYTES: Final = 1 << 20

# The keys of a project's file that do nothing until it is trusted; any of them makes its whole agent wait.
_WAITING: Final = frozenset(["worktree_root", "state_root", "setup", "teardown", "copy", "link", "notify"])
# A driver is among them: with another one an adapter starts another program.
_WAITING_OF_AGENT: Final = frozenset(["adapter", "command", "args", "resume_args", "driver", "env", "permissions"])

_BRACE_WORD: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIZE: Final = re.compile(r"([0-9]{1,15}) ?(B|KiB|MiB|GiB|TiB)?")
_SIZES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_HINTS: Final = {
    "agent": "write 'agents', a mapping from names",
    "subtasks": "this looks like a graph file; the configuration holds agents and commands",
    "default": "write 'defaultAgent'",
}


def parse(data: bytes, *, name: str, source: Source) -> Config:
    """The configuration in the file; an empty one is empty. `sources` of everything that it sets is `source`.

    Raises: GraphError(INVALID_AGENT_CONFIG) with all problems.
    """
    findings = Findings()
    config = _parse(findings, data, source)
    problems = findings.sorted()
    if not problems:
        return config
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise GraphError(
        "INVALID_AGENT_CONFIG",
        f"{name}:{first.line}:{first.column}: {first.message}{more}",
        kept="Nothing was started or changed.",
        next="correct the file, then: coordinate-agents setup-discover",
        stage="configuration",
        problems=problems,
        facts={"file": name},
    )


def inert_keys(project: Config) -> tuple[str, ...]:
    """The keys of a project's configuration that must wait for trust, as `agents.backend.command`, sorted."""
    found = [spell(name) for name in project.sources if name in _WAITING]
    for agent in project.agents:
        found += [f"agents.{agent.name}.{spell(name)}" for name in agent.sources if name in _WAITING_OF_AGENT]
    return tuple(sorted(found))


def without(project: Config) -> Config:
    """The configuration without what must wait. An agent that is half inert would be another agent: it goes whole."""
    agents = tuple(agent for agent in project.agents if not _WAITING_OF_AGENT & agent.sources.keys())
    kept = {name: source for name, source in project.sources.items() if name not in _WAITING and name != "agents"}
    values: dict[str, Any] = {name: getattr(project, name) for name in kept}
    return Config(**values, agents=agents, sources=kept)


def spell(name: str) -> str:
    """The key of a field: `worktree_root` is `worktreeRoot`."""
    first, *rest = name.removesuffix("_bytes").split("_")
    return first + "".join(part.capitalize() for part in rest)


def field_of(key: str) -> str:
    """The field of a key of the configuration or of an agent: `spell` turned round."""
    return {**CONFIG_KEYS, **AGENT_KEYS}[key].field


def _parse(findings: Findings, data: bytes, source: Source) -> Config:
    if len(data) > MAX_CONFIG_BYTES:
        findings.record(Problem(1, 1, "", f"the file has {len(data)} bytes; at most {MAX_CONFIG_BYTES} (1 MiB)"))
        return Config()
    content = decode(data)
    if isinstance(content, Problem):
        findings.record(content)
        return Config()
    loaded = yaml_nodes.load(content)
    for problem in loaded.problems:
        findings.record(problem)
    if loaded.root is None:
        return Config()
    root = mapping(findings, loaded.root, "")
    if isinstance(root, Broken):
        return Config()
    values = fields(findings, root, "", known=CONFIG_KEYS, hints=_HINTS)
    if source == "user":
        _refuse_relative_programs(findings, root)
    values.pop("version", None)
    agents = tuple(replace(agent, sources=dict.fromkeys(agent.sources, source)) for agent in values.pop("agents", ()))
    _know_default_agent(findings, root, values, agents, source)
    return Config(**values, agents=agents, sources=dict.fromkeys(values, source))


def _know_default_agent(
    findings: Findings, root: MappingNode, values: Mapping[str, Any], agents: tuple[AgentConfig, ...], source: Source
) -> None:
    """The default must be an agent. Of a project's file it may be the user's, which is not known here."""
    name = values.get("default_agent")
    known = [agent.name for agent in agents] + list(ADAPTER_NAMES)
    if source == "user" and name is not None and name not in known:
        said = f"defaultAgent {shown(name)}: there is no such agent{near(name, tuple(known))}"
        findings.add(root.entries["defaultAgent"][1], "defaultAgent", said)


def _refuse_relative_programs(findings: Findings, root: MappingNode) -> None:
    """A relative program in the user's file would be run out of whatever repository is at hand, trusted or not."""
    agents = root.entries.get("agents")
    if agents is None or not isinstance(agents[1], MappingNode):
        return
    for name, (_, agent) in agents[1].entries.items():
        entry = agent.entries.get("command") if isinstance(agent, MappingNode) else None
        if entry is None or not isinstance(entry[1], ScalarEvent):
            continue
        written = entry[1].value
        if "/" in written and not written.startswith(("/", "~/")) and not re.match(r"[A-Za-z]:[/\\]", written):
            said = f"command {shown(written)} is relative; in the user's file write an absolute path or a name on PATH"
            findings.add(entry[1], f"agents.{name[:60]}.command", said)


def _agents(findings: Findings, node: Node, path: str) -> tuple[AgentConfig, ...] | Broken:
    found = mapping(findings, node, path)
    if isinstance(found, Broken):
        return BROKEN
    agents: list[AgentConfig] = []
    for name, (key, value) in found.entries.items():
        where = f"{path}.{name[:60]}"
        read_name = checked(text, _name_problem)(findings, key, where)
        body = mapping(findings, value, where)
        if isinstance(body, Broken) or isinstance(read_name, Broken):
            continue
        values = fields(findings, body, where, known=AGENT_KEYS, hints={"model": "write it into 'args'"})
        agents.append(AgentConfig(read_name, **values, sources=dict.fromkeys(values, "")))
    return tuple(sorted(agents, key=lambda agent: agent.name))


def _env(findings: Findings, node: Node, path: str) -> dict[str, str] | Broken:
    found = mapping(findings, node, path)
    if isinstance(found, Broken):
        return BROKEN
    values: dict[str, str] = {}
    for name, (key, value) in found.entries.items():
        reason = _variable_problem(name)
        if reason:
            findings.add(key, f"{path}.{name[:60]}", reason)
            continue
        read = text(findings, value, f"{path}.{name}")
        if not isinstance(read, Broken):
            values[name] = read
    return values


def _variable_problem(name: str) -> str | None:
    if not _VARIABLE.fullmatch(name):
        return f"{shown(name)} is not the name of a variable: letters, digits and '_', not beginning with a digit"
    if name.upper().startswith("COORDINATE_AGENTS_"):
        return f"{name} is set by the Runtime alone: configuration can add variables but cannot set identity"
    if name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"):
        return f"{name} would lead git out of the worktree; leave it out"
    return None


def _args(findings: Findings, node: Node, path: str) -> tuple[str, ...] | Broken:
    words: tuple[str, ...] | Broken = each(checked(argument, _template_problem), at_most=1024)(findings, node, path)
    return words


def _template_problem(word: str) -> str | None:
    unknown = next((found for found in _BRACE_WORD.findall(word) if found not in TEMPLATE_WORDS), None)
    if unknown is None:
        return None
    known = ", ".join(f"{{{each}}}" for each in TEMPLATE_WORDS)
    return f"{{{unknown[:60]}}} is no template{near(unknown, TEMPLATE_WORDS) or f'; known are {known}'}"


def _command_with_timeout(findings: Findings, node: Node, path: str) -> Command | Broken:
    if not isinstance(node, MappingNode):
        words = command(findings, node, path)
        return words if isinstance(words, Broken) else Command(words)
    values = fields(findings, node, path, known=COMMAND_KEYS, hints={"command": "write 'run'", "cmd": "write 'run'"})
    if "run" not in values:
        if "run" not in node.entries:
            findings.add(node, path, "a command needs `run`, a string or an argument list")
        return BROKEN
    return Command(**values)


def _notify(findings: Findings, node: Node, path: str) -> Notify | Broken:
    found = mapping(findings, node, path)
    if isinstance(found, Broken):
        return BROKEN
    values = fields(findings, found, path, known=NOTIFY_KEYS, hints={})
    missing = [key for key in NOTIFY_KEYS if key not in found.entries]
    if missing:
        findings.add(node, path, f"a notification needs `on` and `run`; {missing[0]!r} is missing")
    return Notify(**values) if len(values) == len(NOTIFY_KEYS) else BROKEN


def _ports(findings: Findings, node: Node, path: str) -> Ports | Broken:
    found = mapping(findings, node, path)
    if isinstance(found, Broken):
        return BROKEN
    values = fields(findings, found, path, known=PORTS_KEYS, hints={})
    missing = [key for key in PORTS_KEYS if key not in found.entries]
    if missing:
        findings.add(node, path, f"ports needs `base` and `size`; {missing[0]!r} is missing")
    if len(values) < len(PORTS_KEYS):
        return BROKEN
    ports = Ports(**values)
    if ports.base + ports.size > 65536:
        return findings.add(node, path, f"ports {ports.base} + {ports.size} pass 65535; choose a lower base")
    return ports


def _bytes(findings: Findings, node: Node, path: str) -> int | Broken:
    match = _SIZE.fullmatch(node.value) if isinstance(node, ScalarEvent) else None
    if match is None:
        return findings.add(node, path, "a size is needed, such as 500MiB, 2GiB, or a number of bytes")
    return int(match[1]) * _SIZES[match[2] or "B"]


def _place(findings: Findings, node: Node, path: str) -> str | Broken:
    value = text(findings, node, path)
    if isinstance(value, str) and (not value.strip() or any(ord(character) < 32 for character in value)):
        return findings.add(node, path, f"{shown(value)} is not a folder; write a path")
    return value


def _version(findings: Findings, node: Node, path: str) -> int | Broken:
    value = integer(0, 10**18 - 1)(findings, node, path)
    if value in (1, BROKEN):
        return value  # type: ignore[no-any-return]
    return findings.add(node, path, f"version {value} is not known; this program reads version 1")


def _name_problem(value: str) -> str | None:
    if NAME_PATTERN.fullmatch(value):
        return None
    return f"{shown(value)} is not a name: letters a-z and A-Z, digits, '.', '_' and '-', at most 64"


def _program_problem(value: str) -> str | None:
    if not value.strip() or any(ord(character) < 32 for character in value):
        return f"{shown(value)} is not a program; write a path or a name on PATH"
    if value != value.strip():
        return f"{shown(value)} begins or ends with a space; arguments go into 'args'"
    return None


def _pattern_problem(value: str) -> str | None:
    try:
        scope.parse_pattern(value)
    except ValueError as error:
        return str(error)
    return None


_paths: Final = each(checked(text, path_problem), at_most=256)

AGENT_KEYS: Final[Mapping[str, Key]] = {
    "adapter": Key("adapter", choice(*ADAPTER_NAMES)),
    "command": Key("command", checked(text, _program_problem)),
    "args": Key("args", _args),
    "resumeArgs": Key("resume_args", _args),
    "mode": Key("mode", choice("oneshot", "interactive")),
    "delivery": Key("delivery", choice("argument", "stdin", "file", "paste")),
    "driver": Key("driver", choice("pty", "pipe", "acp")),
    "env": Key("env", _env),
    "permissions": Key("permissions", choice("ask", "edits", "allow", "deny")),
    "commit": Key("commit", choice("agent", "runtime", "auto")),
}
COMMAND_KEYS: Final[Mapping[str, Key]] = {"run": Key("run", command), "timeout": Key("timeout_s", duration)}
NOTIFY_KEYS: Final[Mapping[str, Key]] = {
    "on": Key("on", each(choice("attention", "ended"))),
    "run": Key("run", command),
}
PORTS_KEYS: Final[Mapping[str, Key]] = {
    "base": Key("base", integer(1024, 65535)),
    "size": Key("size", integer(1, 1000)),
}
CONFIG_KEYS: Final[Mapping[str, Key]] = {
    "version": Key("version", _version),
    "defaultAgent": Key("default_agent", checked(text, _name_problem)),
    "agents": Key("agents", _agents),
    "worktreeRoot": Key("worktree_root", _place),
    "stateRoot": Key("state_root", _place),
    "setup": Key("setup", each(_command_with_timeout, at_most=64)),
    "teardown": Key("teardown", each(_command_with_timeout, at_most=64)),
    "copy": Key("copy", _paths),
    "link": Key("link", _paths),
    "keep": Key("keep", each(checked(text, _pattern_problem), at_most=256)),
    "ports": Key("ports", _ports),
    "notify": Key("notify", each(_notify, at_most=16)),
    "minFreeDisk": Key("min_free_disk_bytes", _bytes),
}
