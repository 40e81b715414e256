"""Every verb that the program's own words name exists: advice that leads nowhere is worse than none."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinate_agents.graph.operations.table import VERBS, verb_named

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    path for package in ("graph", "worktrees", "sessions", "cli") for path in (ROOT / package).rglob("*.py")
)

_PROGRAM = re.compile(r"coordinate-agents ([a-z][a-z-]*[a-z])")
# `graph-file` in prose is no verb; a name in words is one only with a prefix of ours and a known shape.
_NAMED = re.compile(r"(?<![\w/.-])((?:graph|session|setup|task|evidence|recover)-[a-z]+(?:-[a-z]+)*)(?![\w.-])")
# Named before they are built, each with the words "not yet" or "not built" beside them.
_NOT_BUILT = re.compile(r"not (?:yet|built)")
# Words of that shape that are no verbs: kinds of things.
_OTHER_WORDS = frozenset({"graph-file", "knows", "processes", "that"})
_COMMON_OPTIONS = frozenset({"--root", "--json", "--help"})


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of the module that is not documentation; an f-string as one, with {} for its values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inner = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }  # parts of f-strings are seen as a whole
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(_part(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation | inner:
            yield node.lineno, node.value


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    # `f"{PROGRAM} graph-status"` reads like the program's name.
    value = node.value if isinstance(node, ast.FormattedValue) else None
    return "coordinate-agents" if isinstance(value, ast.Name) and value.id == "PROGRAM" else "{}"


def _named(text: str) -> Iterator[str]:
    yield from (word for word in (*_PROGRAM.findall(text), *_NAMED.findall(text)) if word not in _OTHER_WORDS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_verb_that_a_text_names_exists_or_is_marked_as_not_built(path: Path) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for line, text in _texts(path)
        for name in _named(text)
        if verb_named(name) is None and not _NOT_BUILT.search(text)
    ]
    assert wrong == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_option_that_a_command_of_a_text_shows_exists(path: Path) -> None:
    wrong = []
    for line, text in _texts(path):
        for name, rest in re.findall(r"coordinate-agents ([a-z][a-z-]*[a-z])([^,;.`\n]*)", text):
            verb = verb_named(name)
            options = set(re.findall(r"--[a-z][a-z-]*", rest))
            if verb is not None and not options <= _COMMON_OPTIONS | {f"--{param.name}" for param in verb.params}:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {name}{rest}")
    assert wrong == []


def test_the_looking_finds_names_in_every_kind_of_string(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""graph-nothing in documentation."""\n'
        'a = "coordinate-agents graph-gone x"\n'
        'b = f"{PROGRAM} session-gone {c}"\n'
        'c = f"say graph-lost {a}, then setup-lost"\n'
    )
    found = [name for _, text in _texts(module) for name in _named(text)]
    assert sorted(set(found)) == ["graph-gone", "graph-lost", "session-gone", "setup-lost"]


def test_there_are_verbs_to_name() -> None:
    assert {"graph-run", "session-open", "setup-configure"} <= {verb.name for verb in VERBS}
