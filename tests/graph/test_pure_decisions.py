"""The deciding modules import nothing that acts, and nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import coordinate_agents.graph

PACKAGE = Path(next(iter(coordinate_agents.graph.__path__)))
PURE = [
    "canonical", "certificate", "errors", "evidence", "facts", "frontier", "integration", "model", "names", "order",
    "prompt", "schedule", "scope", "text",
]  # fmt: skip
ALLOWED = {
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "re",
    "types",
    "typing",
    "unicodedata",
}
HEAVY = {"pydantic", "networkx", "git", "rich", "anyio", "asyncio", "yaml", "sqlite3", "click", "subprocess", "socket"}


@pytest.mark.parametrize("name", PURE)
def test_deciding_module_imports_only_pure_ones(name: str) -> None:
    imported = set()
    for node in ast.walk(ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or ".")
    ours = {module for module in imported if module.startswith("coordinate_agents.")}
    assert {module.split(".")[0] for module in imported - ours} <= ALLOWED
    pure = {f"coordinate_agents.graph.{module}" for module in PURE}
    assert ours <= pure | {f"coordinate_agents.worktrees.{name}" for name in ("model", "values")}


def test_all_deciding_modules_together_load_nothing_heavy() -> None:
    modules = ", ".join(f"coordinate_agents.graph.{name}" for name in PURE)
    program = f"import sys; before = set(sys.modules); import {modules}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = done.stdout.split()
    assert "coordinate_agents.graph.scope" in loaded
    assert {name.split(".")[0] for name in loaded} & HEAVY == set()
