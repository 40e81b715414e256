"""graph-init: a commented starter graph file for this repository, to be read before it is run. Writes nothing.

Guesses the checks from files that are there and says from which; a wrong guess costs one edited line.
"""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

_MAX_READ: Final = 1 << 20
_MAKE_TEST: Final = re.compile(r"^(?:test|check)\s*:", re.MULTILINE)


@value_class
class Request:
    pass


@value_class
class Guess:
    """A check and the file that spoke for it."""

    name: str
    command: str
    seen: str


def execute(runtime: Runtime | None, request: Request) -> Result:
    """`document` is the text of the file; `checks` what was guessed and why."""
    root = runtime.root if runtime is not None else Path.cwd()
    guesses = guess_checks(root)
    text = "\n".join(_lines(_graph_id(root.name), guesses)) + "\n"
    return Result(
        {
            "document": text,
            "checks": [{"name": each.name, "run": each.command, "seen": each.seen} for each in guesses],
        }
    )


def guess_checks(root: Path) -> list[Guess]:
    """The checks that the files of this folder suggest, the most telling first. Empty when nothing does."""
    found = [guess for look in _LOOKS for guess in look(root)]
    return list({guess.command: guess for guess in found}.values())


def _pytest(root: Path) -> Iterable[Guess]:
    config = _text(root / "pyproject.toml")
    if "[tool.pytest" in config:
        yield Guess("tests", "pytest -q", "pyproject.toml")
    elif (root / "pytest.ini").is_file():
        yield Guess("tests", "pytest -q", "pytest.ini")
    elif any((root / "tests").glob("test_*.py")):
        yield Guess("tests", "pytest -q", "tests/test_*.py")


def _npm(root: Path) -> Iterable[Guess]:
    try:
        scripts = json.loads(_text(root / "package.json") or "{}").get("scripts", {})
        script = scripts.get("test", "")
    except (ValueError, AttributeError):
        return
    if isinstance(script, str) and script and "no test specified" not in script:
        yield Guess("npm-test", "npm test", "package.json")


def _cargo(root: Path) -> Iterable[Guess]:
    if (root / "Cargo.toml").is_file():
        yield Guess("cargo-test", "cargo test", "Cargo.toml")


def _go(root: Path) -> Iterable[Guess]:
    if (root / "go.mod").is_file():
        yield Guess("go-test", "go test ./...", "go.mod")


def _make(root: Path) -> Iterable[Guess]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        target = _MAKE_TEST.search(_text(root / name))
        if target:
            yield Guess("make", f"make {target[0].rstrip(': ')}", name)
            return


_LOOKS: Final[tuple[Callable[[Path], Iterable[Guess]], ...]] = (_pytest, _npm, _cargo, _go, _make)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def _graph_id(name: str) -> str:
    """An id made from the folder's name: letters, digits, `-` and `_`, beginning with a letter."""
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:64].strip("-_")
    return f"{cleaned}-work" if cleaned[:1].isalpha() and cleaned[:1].isascii() else "first-graph"


def _lines(graph_id: str, guesses: list[Guess]) -> Iterable[str]:
    yield "# A graph of subtasks for coordinate-agents. Each subtask gets a git worktree and an agent of its own."
    yield "#   coordinate-agents graph-validate FILE   says whether this file is right"
    yield "#   coordinate-agents graph-plan FILE       says what would start"
    yield "#   coordinate-agents graph-run FILE        runs it"
    yield f"id: {graph_id}"
    yield "title: What is to be built"
    yield "# base: main            # the commit that work starts from; default: HEAD"
    yield "# maxConcurrency: 4     # agents at a time"
    yield ""
    yield "# A subtask is done when its commit passes these commands, run by the Runtime itself."
    if guesses:
        yield "checks:"
        for guess in guesses:
            yield f"  - {{name: {guess.name}, run: {json.dumps(guess.command)}}}   # because of {guess.seen}"
    else:
        yield "# Nothing here told how this repository is tested. Without a check only the commit itself is judged."
        yield '# checks: ["make test"]'
    yield ""
    yield "subtasks:"
    yield "  - id: first"
    yield "    spec: |"
    yield "      What the agent is to do, in full sentences. It sees nothing else of this conversation."
    yield "    # agent: claude     # default: the configured agent"
    yield '    # writes: ["src/**"]   # what it will change; two that overlap never run at the same time'
    yield ""
    yield "  - id: second"
    yield "    dependsOn: first    # starts from a commit that contains first's work"
    yield "    spec: |"
    yield "      What builds on the first one."
