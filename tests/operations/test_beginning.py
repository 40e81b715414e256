"""The verbs before a run: starter file, validation, schema, import, plan."""

import json
from pathlib import Path

import pytest
from world import PROGRAM, World, git

V1 = {
    "schemaVersion": 1,
    "parentTask": {"id": "task-shop-v1", "title": "Shop slice", "spec": "Small shop.", "implementer": "one"},
    "subtasks": [
        {"id": "store", "implementer": "one", "title": "Storage", "spec": "Add it.", "dependsOn": []},
        {"id": "routes", "implementer": "one", "spec": "Add the routes.", "dependsOn": ["store"]},
    ],
}
INTENTS = {
    "schemaVersion": 1,
    "parentTaskId": "task-shop-v1",
    "scopePolicy": "strict",
    "subtasks": [{"id": "store", "writeIntent": ["src/**"]}, {"id": "routes", "writeIntent": ["web/**"]}],
}


@pytest.mark.parametrize(
    ("name", "text", "check"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "pytest -q"),
        ("package.json", '{"scripts": {"test": "vitest"}}', "npm test"),
        ("Cargo.toml", "[package]\n", "cargo test"),
        ("go.mod", "module x\n", "go test ./..."),
        ("Makefile", "all:\n\ntest: all\n\techo\n", "make test"),
        ("package.json", '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}', None),
        ("package.json", "[]", None),
        ("Makefile", "all:\n", None),
    ],
)
def test_the_starter_file_is_valid_and_guesses_the_check(world: World, name: str, text: str, check: str | None) -> None:
    (world.root / name).write_text(text)
    data = world.run("init", "--json").data
    assert [each["run"] for each in data["checks"]] == ([check] if check else [])
    starter = world.run("init").out
    assert starter == data["document"]
    assert world.run("validate", world.graph(starter)).code == 0
    assert git(world.root, "status", "--porcelain") == f"?? {name}"


def test_the_starter_file_can_be_run_as_it_is(world: World) -> None:
    done = world.run("run", world.graph(world.run("init").out), "--json")
    assert (done.code, done.data["graph"]["state"]) == (0, "SUCCEEDED")


def test_an_agent_on_the_path_needs_no_configuration(world: World) -> None:
    world.configure_text("version: 1\n")
    programs = world.place / "programs"
    programs.mkdir()
    world.environment["PATH"] = f"{programs}:{PROGRAM.parent}:/usr/bin:/bin"
    words = ("run", "--spec", "Add the parser.", "--check", "test -s parser.txt", "--json")
    refused = world.run(*words)
    assert (refused.code, refused.document["error"]["code"]) == (2, "INVALID_AGENT_CONFIG")
    assert "none is configured or found on PATH" in refused.document["error"]["message"]
    claude = programs / "claude"
    claude.write_text("#!/bin/sh\ncat >parser.txt\n")
    claude.chmod(0o755)
    found = world.run("setup-discover", "--json").data
    assert (found["defaultAgent"], [each["agent"] for each in found["agents"]]) == ("claude", ["claude"])
    done = world.run(*words)
    assert (done.code, done.data["subtasks"][0]["agent"]) == (0, "claude"), str(done)
    # The next one that is installed is no change of the graph, and the new graph is told to choose.
    (programs / "codex").write_bytes(claude.read_bytes())
    (programs / "codex").chmod(0o755)
    assert world.run(*words).code == 0
    several = world.run("run", "--spec", "Add another.")
    assert several.code == 2
    assert "Found on PATH: claude, codex." in several.err
    assert several.err.splitlines()[-1] == "Next: coordinate-agents setup-configure --default-agent claude"
    assert "claude and codex are there, and none is the default" in world.run("doctor").out
    assert world.run("setup-configure", "--default-agent", "claude").code == 0
    assert "none is the default" not in world.run("doctor").out


@pytest.mark.parametrize("name", ["übung", "...", "1st", "x" * 300, "two words", "-x"])
def test_the_starter_id_is_valid_whatever_the_folder_is_called(world: World, name: str) -> None:
    folder = world.place / name[:200]
    folder.mkdir()
    git(folder, "init", "-q")
    starter = world.run("init", "--root", folder).out
    assert world.run("validate", world.graph(starter)).code == 0


def test_validate_says_what_the_graph_is(world: World) -> None:
    plan = world.graph("id: p\ntitle: T\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n")
    assert world.run("validate", plan, "--json").data == {
        "valid": True,
        "graph": {"id": "p", "title": "T", "subtasks": 2, "edges": 1, "maxConcurrency": 4},
        "warnings": [],
    }
    assert world.run("validate", plan).out == "p is valid: 2 subtasks, 1 dependency, at most 4 at a time\n"


def test_a_file_that_is_not_there_is_named(world: World) -> None:
    done = world.run("validate", "nowhere.yaml")
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            "TASK_GRAPH_INVALID: nowhere.yaml cannot be read: No such file or directory.",
            "Kept: everything as it is",
            "Next: name a file that can be read",
        ],
    )


def test_a_folder_is_no_graph_file(world: World) -> None:
    done = world.run("validate", ".")
    assert (done.code, done.err.splitlines()[0]) == (2, "TASK_GRAPH_INVALID: . cannot be read: Is a directory.")


def test_the_schema_is_json_schema(world: World) -> None:
    text = json.loads(world.run("schema").out)
    assert text["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert world.run("schema", "--json").data == text


def test_an_imported_graph_is_valid_and_keeps_its_write_intents(world: World, tmp_path: Path) -> None:
    source, intents = tmp_path / "v1.json", tmp_path / "intents.json"
    source.write_text(json.dumps(V1))
    intents.write_text(json.dumps(INTENTS))
    text = world.run("import", source, "--intent-map", intents).out
    plan = world.graph(text)
    assert world.run("create", plan).code == 0
    tasks = world.run("export", "task-shop-v1", "--json").data["document"]["tasks"]
    assert [(task["id"], task["writes"], task["agent"]) for task in tasks] == [
        ("store", ["src/**"], "one"),
        ("routes", ["web/**"], "one"),
    ]


def test_a_plan_of_a_file_creates_nothing_and_says_what_would_start(world: World) -> None:
    plan = world.graph(
        "id: p\nmaxConcurrency: 2\nsubtasks:\n"
        "  - {id: a, spec: x, writes: [src/**]}\n"
        "  - {id: b, spec: x, writes: [src/main.py]}\n"
        "  - {id: c, spec: x, dependsOn: a, agent: nobody}\n"
    )
    data = world.run("plan", plan, "--json").data
    agent = str(Path(__file__).resolve().parents[2] / "fixtures" / "agents" / "fake_one_commit.sh")
    assert data["graph"] == {"id": "p", "title": "p", "recorded": False, "subtasks": 3, "maxConcurrency": 2}
    assert data["start"] == ["a"]
    decisions = {each["id"]: each for each in data["decisions"]}
    assert decisions["a"] == {
        "id": "a",
        "decision": "start",
        "reason": None,
        "agent": "one",
        "command": agent,
        "commandSource": "user",
        "next": None,
    }
    assert (decisions["b"]["decision"], decisions["b"]["reason"].split(":")[0]) == ("wait", "WRITE_INTENT_CONFLICT")
    assert (decisions["c"]["decision"], decisions["c"]["reason"].split(":")[0]) == ("error", "INVALID_AGENT_CONFIG")
    assert data["conflicts"] == [{"a": "a", "b": "b", "patterns": ["src/**", "src/main.py"]}]
    assert data["criticalPath"] == ["a", "c"]
    assert data["disk"]["newWorktrees"] == 3
    assert data["disk"]["perWorktreeBytes"] == (world.root / "README.md").stat().st_size
    assert not (world.root / ".git" / "coordinate-agents").exists()


def test_a_plan_after_a_run_says_what_ended(world: World) -> None:
    plan = world.graph("id: p\nsubtasks: [{id: a, spec: x}]\n")
    world.run("run", plan)
    data = world.run("plan", "p", "--json").data
    assert (data["start"], data["decisions"][0]["decision"], data["criticalPath"]) == ([], "succeeded", [])
    assert data["disk"]["newWorktrees"] == 0


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_size_of_a_checkout_is_read_from_every_index_version(world: World, version: str) -> None:
    (world.root / ("deep/" * 20)).mkdir(parents=True)
    for number in range(50):
        (world.root / ("deep/" * 20) / f"file-{number:03}").write_text("x" * number)
    git(world.root, "add", "-A")
    git(world.root, "update-index", f"--index-version={version}")
    sizes = [(world.root / name).stat().st_size for name in git(world.root, "ls-files").splitlines()]
    data = world.run("plan", world.graph("id: p\nsubtasks: [{id: a, spec: x}]\n"), "--json").data
    assert data["disk"]["perWorktreeBytes"] == sum(sizes)
