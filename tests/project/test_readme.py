"""What the documentation tells people to type exists."""

import re
import shlex
from pathlib import Path

import pytest

from coordinate_agents.graph import document
from coordinate_agents.graph.operations.table import Verb, verb_named

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMMON_OPTIONS = {"--root", "--json", "--help", "--version"}


def _blocks(page: Path, *languages: str) -> list[str]:
    fences = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.M | re.S)
    return [text for language, text in fences if language in languages]


def _command_lines(page: Path) -> list[list[str]]:
    """The words of each line of the shell blocks, prompts and comments removed."""
    lines = [line.removeprefix("$ ").strip() for text in _blocks(page, "sh", "console") for line in text.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line and not line.startswith("#")]


def _verb_calls(page: Path) -> list[list[str]]:
    return [words for words in _command_lines(page) if words and Path(words[0]).name in ("coordinate-agents", "cag")]


def _options(verb: Verb) -> set[str]:
    return {f"--{param.name}" for param in verb.params if not param.positional} | COMMON_OPTIONS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_and_option_that_a_page_shows_exists(page: Path) -> None:
    wrong = []
    for words in _verb_calls(page):
        given = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
        if len(words) > 1 and words[1] in COMMON_OPTIONS:
            continue
        verb = verb_named(words[1])
        if verb is None or not set(given) <= _options(verb):
            wrong.append(words)
    assert wrong == []


def test_the_readme_shows_how_to_run_check_and_look() -> None:
    shown = {verb.name for words in _verb_calls(ROOT / "README.md") if (verb := verb_named(words[1]))}
    assert {"graph-validate", "graph-run", "graph-status", "graph-inspect", "graph-stop", "doctor"} <= shown


def test_the_two_commands_of_the_readme_exist() -> None:
    scripts = [words[1] for words in _command_lines(ROOT / "README.md") if words[0] == "python3" and words[1] != "-m"]
    assert scripts == ["fixtures/demo/demo.py", "tests/run.py"]
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_whole_graph_file_that_a_page_shows_is_valid(page: Path) -> None:
    shown = [text for text in _blocks(page, "yaml") if re.search(r"^subtasks:", text, re.M) and "..." not in text]
    for text in shown:
        document.parse(text.encode(), name=page.name, stem="plan", read_spec_file=None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)]+)\)", page.read_text()) if "://" not in t]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_the_index_links_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]
    assert [name for name in pages if f"({name})" not in index] == []
