"""What is handed to other programs is made from one source, valid for those who read it, and true."""

import json
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from documents import parse

from coordinate_agents.cli.mcp.tools import DECISIONS, all_tools
from coordinate_agents.graph.view import KINDS

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "packages" / "coordinate-agents"
SKILL = (PLUGIN / "skills" / "coordinate-agents" / "SKILL.md").read_text()
TOOLS = {tool.name: tool for tool in all_tools(DECISIONS)}


def _generator() -> ModuleType:
    spec = spec_from_file_location("generate_packages", ROOT / "packages" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_is_as_the_generator_writes_it() -> None:
    made = _generator().files()
    old = [path for path, text in made.items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert old == [], f"{sys.executable} packages/generate.py"
    folders = (PLUGIN, PLUGIN.with_name("codex"))
    there = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("*") if path.is_file()}
    assert there == {path for path in made if path.startswith("packages/")}


def test_the_linter_of_skills_and_plugins_finds_nothing() -> None:
    """Manifests, marketplaces, skill and server.json, the last against the registry's own schema."""
    pytest.importorskip("skillsaw", reason="pip install -e '.[dev]'")
    done = subprocess.run(
        [sys.executable, "-m", "skillsaw", "lint", "--strict", "--format", "json", str(ROOT)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert (done.returncode, found["violations"]) == (0, []), done.stdout + done.stderr


def test_the_skill_names_tools_arguments_and_kinds_that_there_are() -> None:
    assert set(re.findall(r"coordinate_agents_\w+", SKILL)) <= TOOLS.keys()
    (poll,) = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", SKILL, re.M | re.S))
    for name in ("graph", "task"):
        assert poll.keys() <= {each.name for each in TOOLS[f"coordinate_agents_{name}_status"].arguments}
    kinds = re.search(r"\| kind \|.*?\n\n", SKILL, re.S)
    assert kinds is not None
    named = {word for row in kinds[0].splitlines()[2:] for word in re.findall(r"`([a-z]+)`", row.split(" | ")[0])}
    assert named == set(KINDS)


def test_the_graph_of_the_skill_is_valid() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", SKILL, re.M | re.S)
    graph = parse(text)
    assert [task.id for task in graph.tasks] == ["schema", "api", "audit"]
    assert graph.task(graph.tasks[2].id).expect == "nothing"


def test_versions_and_programs_are_those_of_the_distribution() -> None:
    server = json.loads((ROOT / "server.json").read_text())
    (package,) = server["packages"]
    plugin = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert server["version"] == package["version"] == plugin["version"]
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text(), "it proves whose package it is"
    command = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["coordinate-agents"]["command"]
    assert Path(sys.executable).with_name(command).is_file()
