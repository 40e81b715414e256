"""What the program tells people to type next exists: every verb and option that stands in its own texts."""

import re
from pathlib import Path

import pytest

from coordinate_agents.graph.operations.table import Verb, verb_named

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("graph", "worktrees", "sessions", "cli") for path in (ROOT / folder).rglob("*.py"))
COMMON_OPTIONS = {"--root", "--json", "--help", "--version"}
# A verb after the program's name, or as `next`; what follows up to the next comma.
_CALL = re.compile(
    r"(?:coordinate-agents |\{PROGRAM\} |next=f?\")((?:graph|session|setup|task)-[a-z]+|doctor)([^\"\n,;]*)"
)


def _options(verb: Verb) -> set[str]:
    return {f"--{param.name}" for param in verb.params if not param.positional} | COMMON_OPTIONS


def _wrong(text: str) -> list[str]:
    found = []
    for name, rest in _CALL.findall(text):
        verb = verb_named(name)
        given = set(re.findall(r"--[a-z][a-z-]*", rest))
        if verb is None or not given <= _options(verb):
            found.append(f"{name}{rest}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_a_module_names_exist(path: Path) -> None:
    assert _wrong(path.read_text()) == []


def test_a_command_that_does_not_exist_is_found() -> None:
    text = (
        'next=f"coordinate-agents graph-run {graph} --take-over"\nnext="graph-juggle"\nf"{PROGRAM} graph-list --json"'
    )
    assert _wrong(text) == ["graph-run {graph} --take-over", "graph-juggle"]
