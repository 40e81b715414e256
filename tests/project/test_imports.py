"""Who may import whom, read from the source: the purity of the core, and the places where implementations are named.

The arrows between the four packages are also contracts of import-linter; what that cannot say stands here.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("graph", "worktrees", "sessions", "cli")

# Values in, values out.
PURE = (
    "graph/model.py", "graph/document.py", "graph/dag.py", "graph/states.py", "graph/events.py", "graph/effects.py",
    "graph/snapshot.py", "graph/machine.py", "graph/frontier.py", "graph/schedule.py", "graph/scope.py",
    "graph/evidence.py", "graph/recovery.py", "graph/ports.py", "graph/errors.py", "worktrees/model.py",
    "sessions/model.py", "sessions/agent.py",
)  # fmt: skip
# A clock, a file, a process, a socket, the environment, chance, a log, or a task group.
IMPURE = (
    "anyio", "asyncio", "datetime", "glob", "io", "logging", "multiprocessing", "os", "pathlib", "psutil", "random",
    "secrets", "selectors", "shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading",
    "time", "uuid",
)  # fmt: skip


def _imports(path: Path) -> set[str]:
    """Full names of the modules that a file imports anywhere; names imported from one of ours count as modules."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "pathlib" and all(alias.name.startswith("Pure") for alias in node.names):
                continue  # Pure paths are text.
            found.add(str(node.module))
            if str(node.module).startswith("coordinate_agents"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _ours(name: str) -> Path | None:
    """The file of one of our modules, or None."""
    parts = name.split(".")
    if parts[0] != "coordinate_agents" or len(parts) < 2:
        return None
    path = ROOT.joinpath(*parts[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return file
    return None


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_reaches_no_clock_file_process_or_chance(name: str) -> None:
    """Also through what it imports of ours."""
    seen: set[Path] = set()
    todo = [ROOT / name]
    wrong = []
    while todo:
        path = todo.pop()
        seen.add(path)
        for imported in _imports(path):
            if imported.split(".")[0] in IMPURE:
                wrong.append(f"{path.relative_to(ROOT)}: {imported}")
            file = _ours(imported)
            if file is not None and file not in seen:
                todo.append(file)
    assert wrong == []


def test_only_the_wiring_and_the_setup_name_implementations_of_worktrees_and_sessions() -> None:
    """Other code of graph and cli sees values and errors of the two packages.

    cli/setup is the second place: doctor, discovery and trust look at git and agents before a runtime can be wired.
    """
    allowed = {
        f"coordinate_agents.{package}.{module}"
        for package in ("worktrees", "sessions")
        for module in ("model", "errors")
    }
    # What of an agent's output reaches a person's terminal: pure, and of the terminal's side. How values are declared.
    allowed |= {"coordinate_agents.sessions.terminal", "coordinate_agents.worktrees.values"}
    # The values of agents and of turns.
    allowed |= {"coordinate_agents.sessions.agent", "coordinate_agents.sessions.turns.model"}
    wrong = []
    for path in [*ROOT.glob("graph/**/*.py"), *ROOT.glob("cli/**/*.py")]:
        if path == ROOT / "cli" / "wiring.py" or path.parent == ROOT / "cli" / "setup":
            continue
        for imported in _imports(path):
            module = imported if _ours(imported) else imported.rpartition(".")[0]
            if (
                module.startswith(("coordinate_agents.worktrees", "coordinate_agents.sessions"))
                and module not in allowed
            ):
                wrong.append(f"{path.relative_to(ROOT)}: {imported}")
    assert wrong == []


def test_every_import_of_ours_is_absolute_and_under_the_namespace() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for package in PACKAGES
        for path in (ROOT / package).glob("**/*.py")
        for name in _imports(path)
        if name.split(".")[0] in PACKAGES
    ]
    assert wrong == []


def test_no_top_level_name_is_taken_by_importing_everything() -> None:
    names = sorted(
        "coordinate_agents." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in (ROOT / package).glob("**/*.py")
        if path.name != "__main__.py"
    )
    code = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {PACKAGES!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd="/", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_the_namespace_has_no_init_of_its_own() -> None:
    code = "import coordinate_agents; print(coordinate_agents.__file__)"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd="/", capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "None", done.stderr
