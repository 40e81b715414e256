"""The configuration document: every key, every refusal, merging, and the JSON that is frozen with a graph."""

import pytest

from coordinate_agents.graph import config_document
from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.config import AgentConfig, Command, Config, Notify, Ports, from_json, merge, to_json
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.sessions.agent import AgentSettings

EVERY_KEY = """\
version: 1
defaultAgent: backend
agents:
  backend:
    adapter: generic
    command: ./tools/agent.sh
    args: ["--task", "{promptFile}", "--n", 3, '{"json": {}}']
    resumeArgs: ["--resume", "{externalSession}"]
    mode: oneshot
    delivery: file
    driver: pty
    env: {LEVEL: "2"}
    permissions: edits
    commit: runtime
  antigravity: {adapter: claude, command: agy-proxy}
worktreeRoot: /fast/disk/trees
stateRoot: /fast/disk/state
setup: [{run: [npm, ci], timeout: 5m}, "make deps"]
teardown: []
copy: [".env"]
link: node_modules
keep: ["*.sqlite"]
ports: {base: 20000, size: 20}
notify: [{on: [attention, ended], run: [notify-send, coordinate-agents]}]
minFreeDisk: 500MiB
x-note: mine
"""


def _parse(text: str, source: config_document.Source = "project") -> Config:
    return config_document.parse(text.encode(), name="c.yaml", source=source)


def _problems(text: str, source: config_document.Source = "project") -> list[str]:
    with pytest.raises(GraphError) as raised:
        _parse(text, source)
    assert raised.value.code == "INVALID_AGENT_CONFIG"
    assert raised.value.exit_code == 2
    return [f"{each.line}:{each.column}: {each.message}" for each in raised.value.problems]


def test_every_key_is_read() -> None:
    config = _parse(EVERY_KEY)
    assert config == Config(
        default_agent="backend",
        agents=(
            AgentConfig(
                "antigravity",
                adapter="claude",
                command="agy-proxy",
                sources={"adapter": "project", "command": "project"},
            ),
            AgentConfig(
                "backend",
                adapter="generic",
                command="./tools/agent.sh",
                args=("--task", "{promptFile}", "--n", "3", '{"json": {}}'),
                resume_args=("--resume", "{externalSession}"),
                mode="oneshot",
                delivery="file",
                driver="pty",
                env={"LEVEL": "2"},
                permissions="edits",
                commit="runtime",
                sources=dict.fromkeys(_AGENT_FIELDS, "project"),
            ),
        ),
        worktree_root="/fast/disk/trees",
        state_root="/fast/disk/state",
        setup=(Command(("npm", "ci"), 300.0), Command(("make", "deps"), 600.0)),
        teardown=(),
        copy=(".env",),
        link=("node_modules",),
        keep=("*.sqlite",),
        ports=Ports(20000, 20),
        notify=(Notify(("attention", "ended"), ("notify-send", "coordinate-agents")),),
        min_free_disk_bytes=500 << 20,
        sources=dict.fromkeys(_FIELDS, "project"),
    )


_AGENT_FIELDS = [
    *("adapter", "command", "args", "resume_args", "mode", "delivery", "driver", "env", "permissions", "commit")
]
_FIELDS = [
    *("default_agent", "worktree_root", "state_root", "setup", "teardown", "copy", "link", "keep", "ports", "notify"),
    "min_free_disk_bytes",
]


def test_frozen_json_gives_the_same_configuration() -> None:
    config = _parse(EVERY_KEY)
    assert from_json(to_json(config)) == config
    assert from_json(to_json(Config())) == Config()


def test_json_of_a_later_version_is_still_read() -> None:
    assert from_json('{"default_agent": "x", "new_field": [1], "agents": [{"name": "x", "newer": 2}]}') == Config(
        default_agent="x", agents=(AgentConfig("x"),)
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "version: 1\n", "agents:\n"])
def test_empty_file_is_an_empty_configuration(text: str) -> None:
    config = _parse(text)
    assert (config.agents, config.default_agent, config.setup) == ((), None, ())


def test_every_mistake_is_reported_at_once() -> None:
    text = """\
version: 2
defaultagent: x
agent: {}
agents:
  no: {command: x}
  "a b": {command: x}
  one: {adapter: codecs, comand: x, mode: fast, delivery: mail, driver: ssh, permissions: all, commit: me}
  two: {command: " x", args: "{promt}", resumeArgs: ["{worktree}{elsewhere}"], env: {1A: x, COORDINATE_AGENTS_TOKEN: x}}
  three: {command: x, env: {LEVEL: 2, GIT_DIR: x}}
setup: [{timeout: 5m}, make && make, {run: [x], timeout: soon}]
copy: [/etc/passwd, ../x]
keep: ["!x"]
ports: {base: 80}
notify: [{on: [always], run: [x]}, {run: [x]}]
minFreeDisk: lots
worktreeRoot: ""
"""
    assert _problems(text) == [
        "1:10: version 2 is not known; this program reads version 1",
        "2:1: unknown key 'defaultagent': did you mean 'defaultAgent'? (a key of your own begins with 'x-')",
        "3:1: unknown key 'agent': write 'agents', a mapping from names",
        "5:3: 'no' is not text to every YAML reader: quote it, \"no\"",
        "6:3: 'a b' is not a name: letters a-z and A-Z, digits, '.', '_' and '-', at most 64",
        "7:18: 'codecs' is not known; adapter is one of codex, claude, opencode, gemini, aider, acp, generic",
        "7:26: unknown key 'comand': did you mean 'command'? (a key of your own begins with 'x-')",
        "7:43: 'fast' is not known; mode is one of oneshot, interactive",
        "7:59: 'mail' is not known; delivery is one of argument, stdin, file, paste",
        "7:73: 'ssh' is not known; driver is one of pty, pipe, acp",
        "7:91: 'all' is not known; permissions is one of ask, edits, allow, deny",
        "7:104: 'me' is not known; commit is one of agent, runtime, auto",
        "8:18: ' x' begins or ends with a space; arguments go into 'args'",
        "8:30: {promt} is no template; did you mean 'prompt'?",
        "8:54: {elsewhere} is no template; known are {prompt}, {promptFile}, {worktree}, {root}, {graph}, {subtask}, "
        "{agent}, {session}, {externalSession}",
        "8:86: '1A' is not the name of a variable: letters, digits and '_', not beginning with a digit",
        "8:93: COORDINATE_AGENTS_TOKEN is set by the Runtime alone: configuration can add variables but cannot set "
        "identity",
        "9:36: '2' is not text to every YAML reader: quote it, \"2\"",
        "9:39: GIT_DIR would lead git out of the worktree; leave it out",
        "10:9: a command needs `run`, a string or an argument list",
        "10:24: '&&' is for a shell, and a string is not run by one; write [sh, -c, 'make && make'] for a shell, or an "
        "argument list",
        "10:58: 'soon' is not a duration; write 90s, 45m, 2h, 1h30m or seconds, at most a year",
        "11:8: path '/etc/passwd' is absolute; write it relative",
        "11:21: path '../x' holds '..' and may leave its folder; write it without",
        '12:8: \'!x\' begins with "!": patterns only add; a name that begins so is "./!name"',
        "13:8: ports needs `base` and `size`; 'size' is missing",
        "13:15: 80 is outside the range of base, 1024 to 65535",
        "14:16: 'always' is not known; on[0] is one of attention, ended",
        "14:36: a notification needs `on` and `run`; 'on' is missing",
        "15:14: a size is needed, such as 500MiB, 2GiB, or a number of bytes",
        "16:15: '' is not a folder; write a path",
    ]


def test_relative_program_in_the_users_file_would_run_out_of_any_repository() -> None:
    text = "agents: {a: {command: tools/x}, b: {command: /bin/x}, c: {command: x}, d: {command: ~/bin/x}}"
    assert _problems(text, "user") == [
        "1:23: command 'tools/x' is relative; in the user's file write an absolute path or a name on PATH"
    ]
    assert len(_parse(text, "project").agents) == 4


def test_default_agent_that_does_not_exist_is_refused_in_the_users_file() -> None:
    text = "defaultAgent: backedn\nagents: {backend: {command: x}}"
    assert _problems(text, "user") == ["1:15: defaultAgent 'backedn': there is no such agent; did you mean 'backend'?"]
    assert _parse("defaultAgent: codex", "user").default_agent == "codex"


def test_merging_takes_each_field_from_the_project_first() -> None:
    user = _parse("agents: {b: {command: /u, args: [u], env: {A: x}}, c: {command: c}}\ncopy: [u]\nlink: [u]", "user")
    project = _parse("agents: {b: {args: [], mode: interactive}}\ncopy: []\ndefaultAgent: b", "project")
    merged = merge(project, user)
    assert merged == Config(
        default_agent="b",
        agents=(
            AgentConfig(
                "b",
                command="/u",
                args=(),
                env={"A": "x"},
                mode="interactive",
                sources={"command": "user", "args": "project", "env": "user", "mode": "project"},
            ),
            AgentConfig("c", command="c", sources={"command": "user"}),
        ),
        copy=(),
        link=("u",),
        sources={"copy": "project", "link": "user", "default_agent": "project"},
    )


def test_keys_that_run_or_open_something_wait_for_trust() -> None:
    project = _parse(EVERY_KEY)
    assert config_document.inert_keys(project) == (
        "agents.antigravity.adapter",
        "agents.antigravity.command",
        "agents.backend.adapter",
        "agents.backend.args",
        "agents.backend.command",
        "agents.backend.driver",
        "agents.backend.env",
        "agents.backend.permissions",
        "agents.backend.resumeArgs",
        *("copy", "link", "notify", "setup", "stateRoot", "teardown", "worktreeRoot"),
    )
    assert config_document.without(project) == Config(
        default_agent="backend",
        keep=("*.sqlite",),
        ports=Ports(20000, 20),
        min_free_disk_bytes=500 << 20,
        sources=dict.fromkeys(["default_agent", "keep", "ports", "min_free_disk_bytes"], "project"),
    )


def test_every_key_is_either_inert_or_known_to_be_harmless() -> None:
    keys = {key.field for key in config_document.CONFIG_KEYS.values()}
    harmless = {"version", "default_agent", "agents", "keep", "ports", "min_free_disk_bytes"}
    assert keys - harmless == {
        field for field in keys if config_document.inert_keys(Config(sources={field: "project"}))
    }
    of_agent = {key.field for key in config_document.AGENT_KEYS.values()}
    waiting = {
        field
        for field in of_agent
        if config_document.inert_keys(Config(agents=(AgentConfig("a", sources={field: "project"}),)))
    }
    assert of_agent - waiting == {"mode", "delivery", "commit"}


def test_agent_of_a_subtask_that_names_none() -> None:
    assert _parse("agents: {a: {command: x}}").only_agent() == "a"
    assert _parse("agents: {a: {command: x}, b: {command: x}}").only_agent() is None
    assert _parse("defaultAgent: b\nagents: {a: {command: x}, b: {command: x}}").only_agent() == "b"
    assert Config().only_agent() is None
    assert Config(found=("codex",)).only_agent() == "codex"
    assert Config(found=("claude", "codex")).only_agent() is None
    assert Config(default_agent="gemini", found=("claude", "codex")).only_agent() == "gemini"


@pytest.mark.parametrize(
    ("found", "said", "following"),
    [
        ((), "and none is configured or found on PATH. Configured: none.", "--agent NAME --command PROGRAM"),
        (
            ("claude", "codex"),
            "there is no defaultAgent, and there are several. Configured: none. Found on PATH: claude, codex.",
            "--default-agent claude",
        ),
    ],
)
def test_a_subtask_without_an_agent_is_refused_with_what_there_is(
    found: tuple[str, ...], said: str, following: str
) -> None:
    with pytest.raises(GraphError) as raised:
        agent_for(Config(found=found), None, subtask="api")
    assert said in str(raised.value)
    assert raised.value.next == f"coordinate-agents setup-configure {following}"


def test_settings_of_an_agent_name_adapter_and_sources() -> None:
    config = _parse(EVERY_KEY)
    assert config.settings_of("antigravity") == AgentSettings(
        "antigravity", "claude", command="agy-proxy", sources={"adapter": "project", "command": "project"}
    )
    assert config.settings_of("codex") == AgentSettings("codex", "codex")


@pytest.mark.parametrize("name", ["nobody", "generic", "acp"])
def test_unknown_agent_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(GraphError) as raised:
        _parse(EVERY_KEY).settings_of(name)
    assert raised.value.code == "INVALID_AGENT_CONFIG"
    assert str(raised.value) == (
        f"There is no agent {name!r}. Configured: antigravity, backend. Known without configuration: codex, claude, "
        "opencode, gemini, aider."
    )


def test_agent_without_any_command_is_refused_when_it_is_used() -> None:
    with pytest.raises(GraphError) as raised:
        _parse("agents: {b: {mode: oneshot}}").settings_of("b")
    assert str(raised.value) == (
        "Agent 'b' has no command, and the adapter generic brings none. Write `command`, or the `adapter` of a known "
        "agent."
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"agents: {a: {command: x}}\n---\nb: 1\n", "a second document begins here; write one graph in one file"),
        (b"a: caf\xe9", "byte 6 (0xE9) is not UTF-8; is the file Latin-1? Save it as UTF-8"),
        (b"#" * (1 << 20) + b"#", "the file has 1048577 bytes; at most 1048576 (1 MiB)"),
        (b"[" * 50_000, "not YAML: exceeded maximum nesting depth; at most 32 levels are read"),
        (b"- a", "the document must be a mapping (`key: value`), not a list"),
    ],
)
def test_hostile_file_is_one_clear_problem(data: bytes, said: str) -> None:
    with pytest.raises(GraphError) as raised:
        config_document.parse(data, name="c.yaml", source="project")
    assert [problem.message for problem in raised.value.problems] == [said]
