"""Whatever agents print, name and commit: nothing of it acts on a person's terminal, through any verb.

What a command writes for people is printable text and newlines, and on a terminal our own colours and cursor
movement besides. The agents are fixtures/agents/hostile.py.
"""

import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from world import FIXTURES, World, git

from coordinate_agents.graph.operations.table import VERBS
from coordinate_agents.sessions.sequences import Control, Csi, Escape, Splitter, Text

pytestmark = pytest.mark.story

HOSTILE = "\x1b]52;c;UFdORUQ=\x07\x1b[2J\x9b31m\u202etxet\u200b\u2028\rINJECTED\nINJECTED"
# In a YAML document with escapes, as somebody else's graph file would hold it.
ESCAPED = "\\e]52;c;UFdORUQ=\\a\\e[2J\\x9b31m\\u202etxet\\u200b\\u2028\\rINJECTED\\nINJECTED"
ONE_LINE = ESCAPED.split("\\u2028")[0]  # what a title may be
WAYS = ("print", "names", "dirty", "staged", "branch", "summary")

# Verbs that print something foreign, and the arguments to show all of it, in the order of the calls. `{}` is each
# subtask, then each Session; {hostile} stands for words of whoever types them, which somebody else may have made.
LOOKS = {
    "graph-status": ["plan"],
    "graph-list": [],
    "graph-inspect": [
        "plan",
        "plan {}",
        "plan --part failure",
        "plan {} --part failure",
        "plan {} --part screen",
        "plan {} --part diff",
        "plan {} --part events",
        "plan --part diff",
        "plan --part events",
    ],
    "graph-events": ["plan", "plan {}"],
    "graph-diff": ["plan", "plan {}"],
    "graph-path": ["plan {}"],
    "graph-export": ["plan", "plan --format dot", "plan --format mermaid"],
    "graph-report": ["plan", "plan --format markdown"],
    "graph-verify": ["plan"],
    "graph-plan": ["{file}", "plan --format mermaid", "plan --format dot"],
    "graph-why": ["plan {}"],
    "graph-amend": ["plan {file} --dry-run"],
    "graph-deliver": ["plan --branch delivered", "plan --branch {hostile}"],
    "graph-validate": ["{file}"],
    "graph-create": ["{file}"],
    "graph-run": ["plan"],
    "graph-wait": ["plan"],
    "graph-integrate": ["plan"],
    "graph-stop": ["plan"],
    "graph-init": [],
    "session-list": ["--all"],
    "session-status": ["plan/{}"],
    "session-inspect": ["plan/{}", "plan/{} --screen"],
    "session-read": ["plan/{}"],
    "session-write": ["plan/{} x"],
    "session-answer": ["plan/{} --text x"],
    "session-interrupt": ["plan/{}"],
    "session-close": ["plan/{}"],
    "session-attach": ["plan/{}"],
    "setup-discover": [],
    "doctor": [],
    "graph-recover": ["plan"],
    "recover-inspect": ["plan"],
    "graph-check": ["plan dirty", "plan print"],
    "graph-hold": ["plan names"],
    "graph-tell": ["plan print {hostile}", "plan names {hostile}"],
    "graph-release": ["plan names"],
    "graph-accept": ["plan print --reason {hostile}", "plan dirty --reason x --waive {hostile}"],
    "graph-resolve": ["plan both", "plan both --continue", "plan both --abort"],
    "graph-cleanup": ["plan --dry-run", "plan --discard dirty", "plan --all"],
    "graph-undo": ["plan"],
    "graph-dispatch": ["plan names"],
    "graph-resume": ["plan print --say {hostile}", "plan names --redo"],
}
# These print nothing that is not the user's own words or ours, or are looked at in a test of their own.
OTHERS = {"graph-schema", "graph-import", "session-open", "setup-configure", "setup-trust", "evidence-submit"}
OTHERS |= {"completion"}
OF_THEIR_OWN = {"mcp", "graph-review", "graph-forget", "graph-watch"}
OF_THEIR_OWN |= {f"task-{name}" for name in ("create", "dispatch", "status", "inspect", "review", "resume", "stop")}


def unsafe(text: str) -> list[str]:
    """The characters that could act, hide, or make a line look like another."""
    return [c for c in text if c not in " \n" and unicodedata.category(c)[0] in "CZ"]


def assert_harmless(what: str, *streams: bytes) -> None:
    for stream in streams:
        text = stream.decode()
        assert unsafe(text) == [], f"{what}: {text!r}"
        if not any(shows_output in what for shows_output in ("--part screen", "session-read", "session-inspect")):
            assert [line for line in text.split("\n") if line.startswith("INJECTED")] == [], f"{what}: {text}"


def assert_harmless_on_a_terminal(what: str, data: bytes) -> None:
    """Only text, line ends, colours, and what moves and hides the cursor for the live view."""
    for part in Splitter().feed(data):
        match part:
            case Text(text):
                assert unsafe(text) == [], f"{what}: {text!r}"
            case Control(char):
                assert char in "\r\n", f"{what}: {char!r} in {data!r}"
            case Csi(prefix, parameters, "", final):
                assert (prefix, final) in {("", "m"), ("", "A"), ("", "K")} or (prefix, parameters) == ("?", "25"), part
            case Csi() | Escape():
                raise AssertionError(f"{what}: {part} in {data!r}")
    for mark in (b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\xc2\x9b", b"\xc2\x9d"):
        assert mark not in data, f"{what}: {data!r}"


def filled(word: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        word = word.replace(name, value)
    return word


def call(world: World, *words: str, variables: dict[str, str] | None = None) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        world.command(*words),
        cwd=world.root,
        env={**world.environment, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def call_on_a_terminal(world: World, *words: str) -> bytes:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        world.command(*words),
        cwd=world.root,
        env=world.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # Linux: EIO when the last one who had it open closed it
            break
        shown += data
    os.close(ours)
    child.wait(60)
    return shown


def prepare(world: World) -> Path:
    """The graph file; its agents and checks are hostile, and so is everything around."""
    agent = FIXTURES / "agents" / "hostile.py"
    printing = world.place / "check.py"
    printing.write_text(f"import sys\nprint({HOSTILE!r}, flush=True)\nsys.exit(3)\n")
    configured: dict[str, tuple[str | Path, ...]] = {way: (sys.executable, agent, way) for way in WAYS}
    configured["one"] = (sys.executable, agent, "summary")
    world.configure(configured)
    title = f'title: "{ONE_LINE}"'
    check = f'{{name: "{ONE_LINE}", run: [{sys.executable}, "{printing}"]}}'
    lines = ["id: plan", title, "subtasks:"]
    lines += [f'  - {{id: {way}, agent: {way}, {title}, spec: "{ESCAPED}"}}' for way in WAYS]
    lines += [
        "  - {id: second, agent: names, spec: x}",
        "  - {id: after, agent: names, spec: x, dependsOn: [summary, names]}",
        "  - {id: both, agent: names, spec: x, dependsOn: [names, second]}",
        f"  - {{id: checked, agent: one, spec: x, checks: [{check}]}}",
    ]
    (world.root / "package.json").write_text(
        '{"scripts": {"test": "x", "\\u001b[2Jtest\\u202e": "\\u001b]0;t\\u0007"}}'
    )
    git(world.root, "add", "package.json")
    git(world.root, "commit", "-q", "-m", HOSTILE.replace("\n", " "))
    return world.graph("\n".join(lines) + "\n")


# "second" and "after" are the agent of "names" once more.
SUBTASKS = (*WAYS, "checked", "both")


def test_every_verb_is_looked_at_here() -> None:
    assert {verb.name for verb in VERBS} == set(LOOKS) | OTHERS | OF_THEIR_OWN


@pytest.mark.timeout(600)
def test_nothing_that_agents_say_or_name_acts_on_a_terminal(world: World) -> None:
    file = prepare(world)
    code, out, err = call(world, "graph-run", str(file), "--integrate")
    assert code == 5, (out, err)
    assert_harmless("graph-run", out, err)
    states = {item["id"]: item["state"] for item in world.status("plan")["subtasks"]}
    assert states["names"] == states["second"] == states["summary"] == "SUCCEEDED", states
    assert states["print"] == states["dirty"] == states["branch"] == states["checked"] == "FAILED", states
    leaks = []
    for verb, looks in LOOKS.items():
        for look in looks:
            for subtask in SUBTASKS if "{}" in look else ("",):
                named = {"{}": subtask, "{file}": str(file), "{hostile}": HOSTILE}
                words = [verb, *(filled(word, named) for word in look.split())]
                _, out, err = call(world, *words)
                try:
                    assert_harmless(" ".join(words).replace(HOSTILE, "HOSTILE"), out, err)
                except AssertionError as leak:
                    leaks.append(str(leak).split("\nassert")[0][:600])
    assert leaks == [], "\n\n".join(leaks)


def test_nothing_acts_on_a_terminal_while_it_is_reviewed_removed_or_a_task_of_its_own(world: World) -> None:
    prepare(world)
    file = world.graph(
        f'id: good\nsubtasks: [{{id: names, agent: names, title: "{ONE_LINE}", spec: x}}]\n', "good.yaml"
    )
    assert call(world, "graph-run", str(file), "--integrate")[0] == 0
    commit = world.status("good")["integration"]["commit"]
    ask = ("graph-review", "good", "names", "--decision", "CHANGES_REQUESTED", "--feedback", HOSTILE)
    for words in (
        ["graph-review", "good"],
        ["graph-review", "good", "--decision", "REVIEW_APPROVED", "--commit", HOSTILE],
        ask,
        ["graph-status", "good"],
        ["graph-inspect", "good", "names"],
        ["graph-run", "good", "--integrate"],
        ["graph-review", "good", "--decision", "REVIEW_APPROVED", "--feedback", HOSTILE],
        ["graph-review", "good", "--decision", "REVIEW_APPROVED", "--commit", commit, "--feedback", HOSTILE],
        ["graph-events", "good"],
        ["graph-cleanup", "good", "--dry-run", "--all", "--early", "--branches"],
        ["graph-cleanup", "good", "--all", "--early", "--branches"],
        ["graph-forget", "good", "--dry-run"],
        ["graph-forget", "good"],
        ["graph-undo", "good"],
        ["task-create", HOSTILE, "--title", HOSTILE],
        ["task-create", HOSTILE, "--as", "mine", "--agent", "names"],
        ["task-dispatch", "mine"],
        ["task-status", "mine"],
        ["task-inspect", "mine"],
        ["task-review", "mine"],
        ["task-review", "mine", "--decision", "CHANGES_REQUESTED", "--feedback", HOSTILE],
        ["task-resume", "mine", "--say", HOSTILE],
        ["task-stop", "mine", "--reason", HOSTILE],
    ):
        _, out, err = call(world, *words)
        assert_harmless(" ".join(words).replace(HOSTILE, "HOSTILE"), out, err)


def test_text_of_a_tool_acts_on_no_terminal(world: World) -> None:
    pytest.importorskip("mcp", reason="pip install -e '.[dev]'")
    from mcp_client import McpClient

    prepare(world)
    text = "id: two\nsubtasks: [{id: names, agent: names, spec: x}, {id: print, agent: print, spec: x}]\n"
    assert call(world, "graph-run", str(world.graph(text, "two.yaml")))[0] == 4
    calls: list[tuple[str, dict[str, object]]] = [
        ("graph_status", {"graph": "two"}),
        ("graph_inspect", {"graph": "two", "subtask": "names"}),
        ("graph_inspect", {"graph": "two", "subtask": "print", "part": "screen"}),
        ("graph_diff", {"graph": "two", "subtask": "names"}),
        ("graph_events", {"graph": "two"}),
        ("session_read", {"session": "two/print"}),
        ("session_inspect", {"session": "two/print", "screen": True}),
        ("graph_cleanup", {"graph": "two", "dryRun": True}),
        ("graph_status", {"graph": HOSTILE}),
        ("session_open", {"agent": HOSTILE}),
    ]
    with McpClient(world) as client:
        for tool, arguments in calls:
            result = client.call(tool, **arguments)
            (content,) = result["content"]
            assert unsafe(content["text"]) == [], f"{tool} {arguments}: {content['text']!r}"
            assert json.loads(content["text"]) == result["structuredContent"]
        session = client.data("session_list", all=True)["sessions"][0]["id"]
        for uri in ("graphs/two", "graphs/two/subtasks/names", f"sessions/{session}"):
            answer = client.wait(client.send("resources/read", {"uri": f"coordinate-agents://{uri}"}))
            assert unsafe(answer["result"]["contents"][0]["text"]) == [], uri


@pytest.mark.timeout(600)
def test_nothing_acts_on_a_terminal_that_is_one(world: World) -> None:
    file = prepare(world)
    shown = call_on_a_terminal(world, "graph-run", str(file))
    assert b"names: verified" in shown
    assert_harmless_on_a_terminal("graph-run", shown)
    for words in (
        ["graph-status", "plan"],
        ["graph-inspect", "plan", "names"],
        ["graph-diff", "plan", "names"],
        ["graph-events", "plan"],
        ["graph-inspect", "plan", "print", "--part", "screen"],
        ["graph-inspect", "plan", "print", "--json"],
        ["session-read", "plan/print"],
        ["session-read", "plan/print", "--raw"],
        ["graph-validate", HOSTILE],
        ["doctor"],
    ):
        assert_harmless_on_a_terminal(" ".join(words), call_on_a_terminal(world, *words))


@pytest.mark.parametrize(
    "words",
    [
        ["graph-status", HOSTILE],
        ["graph-inspect", "plan", HOSTILE],
        ["graph-validate", HOSTILE],
        ["graph-run", HOSTILE, "--integrate"],
        ["graph-import", HOSTILE],
        [HOSTILE],
        [f"--{HOSTILE}"],
        ["graph-status", f"--{HOSTILE}"],
        ["graph-export", "--format", HOSTILE],
        ["graph-wait", "--timeout", HOSTILE],
        ["graph-events", "--after", HOSTILE],
        ["--root", HOSTILE, "graph-list"],
        ["session-status", HOSTILE],
        ["session-read", HOSTILE],
        ["session-attach", HOSTILE],
        ["session-open", HOSTILE, "--agent", HOSTILE],
        ["setup-configure", "--agent", HOSTILE, "--command", HOSTILE],
        ["setup-trust", "--digest", HOSTILE],
        ["evidence-submit", HOSTILE],
        ["graph-tell", "plan", HOSTILE, HOSTILE],
        ["graph-accept", HOSTILE, HOSTILE, "--reason", HOSTILE],
        ["graph-review", HOSTILE, HOSTILE, "--decision", HOSTILE, "--feedback-file", HOSTILE],
        ["graph-cleanup", HOSTILE, "--discard", HOSTILE, "--confirm", HOSTILE],
        ["graph-resume", HOSTILE, HOSTILE, "--agent", HOSTILE, "--accept-shared", HOSTILE],
        *([verb, HOSTILE, HOSTILE] for verb in ("graph-check", "graph-hold", "graph-release", "graph-resolve")),
        *([verb, HOSTILE, HOSTILE] for verb in ("graph-dispatch", "graph-recover", "graph-undo")),
        ["graph-forget", HOSTILE],
        ["mcp", "--tools", HOSTILE],
        ["mcp", "--allow-decisions", HOSTILE],
    ],
)
def test_errors_repeat_words_harmlessly(world: World, words: list[str]) -> None:
    _, out, err = call(world, *words)
    assert_harmless(repr(words), out, err)


@pytest.mark.parametrize(
    "text",
    [
        f'"{ESCAPED}": 1',
        f'id: "{ESCAPED}"',
        f'subtasks: [{{id: "{ESCAPED}", spec: x, dependsOn: "{ESCAPED}"}}]',
        f'subtasks: [{{id: a, spec: x, "{ESCAPED}": 2, checks: [{{name: "{ESCAPED}", run: "{ESCAPED}"}}]}}]',
        f'subtasks: [{{id: a, spec: x, writes: "{ESCAPED}", agent: "{ESCAPED}"}}]',
        f'base: "{ESCAPED}"\nsubtasks: [{{id: a, spec: x}}]',
    ],
)
def test_problems_of_a_graph_file_are_told_harmlessly(world: World, text: str) -> None:
    file = world.graph(text + "\n")
    for verb in ("graph-validate", "graph-plan", "graph-run"):
        _, out, err = call(world, verb, str(file))
        assert_harmless(f"{verb} {text}", out, err)


def test_problems_of_a_configuration_are_told_harmlessly(world: World) -> None:
    world.configure({"one": (HOSTILE,)})
    for verb in ("setup-discover", "doctor", "graph-list"):
        _, out, err = call(world, verb)
        assert_harmless(verb, out, err)
    world.configure_text(f'"{ESCAPED}": 1\nagents: {{"{ESCAPED}": {{adapter: "{ESCAPED}"}}}}\n')
    _, out, err = call(world, "setup-discover")
    assert_harmless("setup-discover", out, err)
